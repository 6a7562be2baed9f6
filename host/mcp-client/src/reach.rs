//! How a server is reached.

use http::HeaderMap;
use palisade::execution::ServerPlace;
use palisade::internal::Mounts;
use palisade::tool::text::{elided, visible};
use palisade_net::{NetRefused, Network as HttpNetwork, Scheme, Target};
use palisade_shell::{Confinement, Network, ServiceCommand, ShellOptions};
use std::fmt;
use std::path::Path;

/// Stands for the path of the workspace in arguments and in values of variables.
const WORKSPACE: &str = "{workspace}";

/// A program that is a server over its standard input and output. It does not run in the workspace,
/// whose files could be code for it: `{workspace}` in its arguments and in the values of its
/// variables stands for the path.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerCommand {
    /// The program, its arguments and its environment. `PATH` and `HOME` are those of this process
    /// only if they are among the variables.
    pub command: ServiceCommand,
    /// How it is confined, and which program supervises its processes.
    pub options: ShellOptions,
}

/// Leaves out the variables, which may hold secrets.
impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCommand")
            .field("program", &self.command.program)
            .field("arguments", &self.command.arguments)
            .finish_non_exhaustive()
    }
}

impl ServerCommand {
    /// Returns a program without arguments, with all rights of this process: a server of the MCP
    /// registries expects them.
    #[must_use]
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            command: ServiceCommand { program: program.into(), ..ServiceCommand::default() },
            options: ShellOptions::new(Confinement::Unconfined),
        }
    }

    /// Returns the command for calls in a workspace.
    pub(crate) fn within(&self, workspace: &Path) -> ServiceCommand {
        let path = workspace.to_string_lossy();
        let filled = |text: &String| text.replace(WORKSPACE, &path);
        let variables = self.command.variables.iter();
        ServiceCommand {
            arguments: self.command.arguments.iter().map(filled).collect(),
            variables: variables
                .map(|(name, value)| match name.as_str() {
                    "PATH" => {
                        (name.clone(), outside(&filled(value), workspace, &self.command.program))
                    }
                    _ => (name.clone(), filled(value)),
                })
                // An empty `PATH` means the working directory; without one, the system's holds.
                .filter(|(name, value)| name != "PATH" || !value.is_empty())
                .collect(),
            ..self.command.clone()
        }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn arguments<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }
}

/// Returns a search path for programs without the directories of the workspace, where tools could
/// write a program, without relative ones, and without those in which the name of this program is a
/// link into the workspace.
fn outside(path: &str, workspace: &Path, program: &str) -> String {
    let mounts = Mounts::below(workspace);
    let leads_inside = |directory: &Path| {
        let file = (!program.contains('/')).then(|| directory.join(program).canonicalize());
        file.is_some_and(|file| file.is_ok_and(|file| mounts.show(&file)))
    };
    let is_outside = |directory: &&str| {
        let directory = Path::new(directory);
        let real = directory.canonicalize();
        directory.is_absolute()
            && !directory.starts_with(workspace)
            && !real.is_ok_and(|real| mounts.show(&real))
            && !leads_inside(directory)
    };
    path.split(':').filter(is_outside).collect::<Vec<_>>().join(":")
}

/// A server that runs elsewhere, and is reached over HTTP.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerUrl {
    /// The URL.
    pub url: String,
    /// The headers of each request, such as `Authorization`.
    pub headers: HeaderMap,
    /// The network.
    pub network: HttpNetwork,
}

/// Leaves out the headers, which may hold secrets.
impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerUrl").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The error of a URL at which no server is reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is no URL of a server.
    #[error(transparent)]
    Invalid(#[from] NetRefused),
    /// It is not encrypted, and its host is not this machine.
    #[error(
        "without encryption, others could read and change what is sent: `https://` is accepted, and `http://` for `localhost`, `127.0.0.1` and `[::1]`"
    )]
    Unencrypted,
}

impl ServerUrl {
    /// Checks a URL.
    ///
    /// # Errors
    ///
    /// [`UrlError`] if it is no URL of a server, or would send calls without encryption.
    pub fn new(url: &str, headers: HeaderMap, network: HttpNetwork) -> Result<Self, UrlError> {
        let target = Target::of_url(url)?;
        if target.scheme == Scheme::Http && !target.host.is_loopback() {
            return Err(UrlError::Unencrypted);
        }
        Ok(Self { url: url.to_owned(), headers, network })
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reach {
    /// By a program that the host starts.
    Command(ServerCommand),
    /// By its URL.
    Url(ServerUrl),
}

impl Reach {
    /// Returns what holds the calls of a server, for a person.
    #[must_use]
    pub fn sandbox(&self) -> &'static str {
        match self {
            Self::Command(command) => match command.options.rights() {
                (Confinement::Unconfined, _) => {
                    "none: the MCP server is a program with all of your rights"
                }
                (Confinement::Landlock, Network::Closed) => {
                    "a program that the kernel confines: the workspace, read-write; no network"
                }
                (Confinement::Landlock, Network::Open) => {
                    "a program that the kernel confines: the workspace, read-write; the network"
                }
            },
            Self::Url(_) => "none on this machine: the MCP server runs elsewhere",
        }
    }

    /// Returns what the server may do on this machine, for a person who is asked about a call.
    #[must_use]
    pub fn rights(&self) -> String {
        /// The longest list of paths, in characters.
        const MAX_PATHS: usize = 300;
        let Self::Command(command) = self else {
            return "nothing on this machine: the MCP server runs elsewhere".to_owned();
        };
        let network = match command.options.rights() {
            (Confinement::Unconfined, _) => {
                return "all of your rights: no sandbox holds the program of the MCP server"
                    .to_owned();
            }
            (Confinement::Landlock, Network::Closed) => "without the network",
            (Confinement::Landlock, Network::Open) => "and the network",
        };
        let paths = command.command.readable.iter();
        let paths = paths.map(|path| format!("`{}`", visible(&path.display().to_string())));
        let read = match paths.collect::<Vec<_>>().join(", ") {
            paths if paths.is_empty() => paths,
            paths => format!(", read-only {}", elided(&paths, MAX_PATHS)),
        };
        format!(
            "the workspace, read-write{read}, {network}: the kernel confines the program of the MCP server"
        )
    }

    /// Returns where the server runs.
    pub(crate) fn server_place(&self) -> ServerPlace {
        match self {
            Self::Command(_) => ServerPlace::ThisMachine,
            Self::Url(server) => match Target::of_url(&server.url) {
                Ok(target) if !target.host.is_loopback() => ServerPlace::Elsewhere,
                _ => ServerPlace::ThisMachine,
            },
        }
    }

    /// Returns the command line, or the URL without its query, which may hold a secret.
    #[must_use]
    pub fn place(&self) -> Vec<&str> {
        match self {
            Self::Command(server) => {
                let command = &server.command;
                let words = std::iter::once(&command.program).chain(&command.arguments);
                words.map(String::as_str).collect()
            }
            Self::Url(server) => vec![server.url.split(['?', '#']).next().unwrap_or_default()],
        }
    }

    /// Returns the text that an approval is bound to: a server that is reached in another way is
    /// another server, and so is a server with other rights. Variables of the environment, which
    /// may hold secrets, are no part of it.
    #[must_use]
    pub fn identity(&self) -> String {
        match self {
            Self::Command(server) => {
                let command = &server.command;
                let words = std::iter::once(&command.program).chain(&command.arguments);
                let words: Vec<&String> = words.collect();
                serde_json::json!({"command": words, "rights": self.sandbox()}).to_string()
            }
            Self::Url(server) => server.url.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn path_of_a_server_has_no_directory_of_the_workspace() {
        let workspace = Path::new("/home/me/project");
        let path = "/usr/bin:.:bin::/home/me/project/.venv/bin:/home/me/bin:/home/me/project";
        assert_eq!(outside(path, workspace, "server"), "/usr/bin:/home/me/bin");
    }

    #[test]
    fn directory_whose_program_is_a_file_of_the_workspace_is_left_out() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap();
        let (workspace, bin) = (root.join("project"), root.join("bin"));
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(workspace.join("server"), "").unwrap();
        std::os::unix::fs::symlink(workspace.join("server"), bin.join("server")).unwrap();
        let path = format!("{}:/usr/bin", bin.display());
        assert_eq!(outside(&path, &workspace, "server"), "/usr/bin");
        assert_eq!(outside(&path, &workspace, "other"), path);
    }

    #[test]
    fn rights_of_a_confined_program_name_what_it_reads() {
        let mut server = ServerCommand::new("x");
        server.options = ShellOptions::new(Confinement::Landlock);
        let said = |server: &ServerCommand| Reach::Command(server.clone()).rights();
        assert!(said(&server).starts_with("the workspace, read-write, without the network"));
        server.command.readable.extend(["/etc".into(), "/a\u{1b}b".into()]);
        let rights = said(&server);
        assert!(rights.contains("read-write, read-only `/etc`, `/a\\u{1b}b`, "), "{rights}");
    }

    #[test]
    fn workspace_is_filled_into_arguments_and_variables() {
        let mut server = ServerCommand::new("x").arguments(["{workspace}/a", "b"]);
        server.command.variables.push(("V".to_owned(), "{workspace}".to_owned()));
        server.command.variables.push(("PATH".to_owned(), "{workspace}/bin:.".to_owned()));
        let command = server.within(Path::new("/w"));
        assert_eq!(command.arguments, ["/w/a", "b"]);
        assert_eq!(command.variables, [("V".to_owned(), "/w".to_owned())]);
    }
}
