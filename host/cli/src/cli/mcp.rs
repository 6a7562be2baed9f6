//! `palisade mcp`: prints the client configuration that starts palisade as an MCP server or
//! connects to a running one, and looks at the MCP servers whose tools this program offers.

mod program;
mod snippet;

use super::args::{Common, Mcp, McpAction, McpConfig};
use super::exit::{Exit, Failure};
use super::output::{self, Reader};
use super::{mcp_servers, token, wide};
use palisade::SideEffects;
use palisade::tool::text::elided;
use program::{CONSOLE, Program};
use snippet::{NoSnippet, Snippet};
use std::path::{Path, PathBuf};

/// Maximum length of a server name, in characters.
const MAX_NAME: usize = 64;

/// The path of the MCP endpoint; the server answers no other path.
const MCP_PATH: &str = "/mcp";

/// The message does not repeat the address, which may contain a secret.
const NO_ADDRESS: &str = "--http takes an address such as http://127.0.0.1:8080/mcp: a host, a port and a path, without a user, \
                          a password or a query, since no token belongs in a client's configuration";

pub(super) fn run(common: &Common, args: &Mcp) -> Result<Exit, Failure> {
    match &args.action {
        McpAction::Config(config) => print_config(common, config),
        McpAction::Approve(args) => mcp_servers::approve(common, args),
        McpAction::List(args) => mcp_servers::list(common, args),
        McpAction::Revoke(args) => mcp_servers::revoke(common, args),
    }
}

fn print_config(common: &Common, config: &McpConfig) -> Result<Exit, Failure> {
    let name = Name::parse(&config.name)?;
    let launch = launch(common, config)?;
    let snippet = snippet::of(config.client, &name, &launch)?;
    // Skip the remarks if the reader of the output has gone.
    if output::text(&snippet.text)? == Reader::There {
        explain(&snippet);
        warn(&launch);
    }
    Ok(Exit::Ok)
}

/// Prints on standard error where the snippet belongs.
fn explain(snippet: &Snippet) {
    output::note(&format!(
        "goes into {}; where that holds servers already, add this one to them",
        snippet.place
    ));
    if let Some(command) = &snippet.one_step {
        output::note("or let the client write it:");
        output::command(command);
    }
    snippet.notes.iter().for_each(|note| output::note(note));
}

/// Warns of a workspace around the home directory, and of missing directories: the client would
/// show neither that nor why the server does not start.
fn warn(launch: &Launch) {
    let Launch::Program(program) = launch else { return };
    if let Ok(root) = Path::new(&program.workspace).canonicalize() {
        wide::show_at(&root);
    }
    let named = std::iter::once(&program.workspace).chain(&program.plugins);
    for directory in named.filter(|directory| !Path::new(directory).is_dir()) {
        output::note(&format!(
            "there is no directory {directory}: make it before the client starts the server"
        ));
    }
}

fn launch(common: &Common, config: &McpConfig) -> Result<Launch, Failure> {
    match &config.http {
        None => Ok(Launch::Program(Program::here(common, config)?)),
        Some(text) => match of_the_server(config) {
            Some(option) => Err(Failure::usage(format!(
                "{option} is the server's: with --http give it to the `palisade serve` that runs there, and leave it out here",
            ))),
            None => {
                let address = Address::parse(text)?;
                let token = address
                    .place()
                    .and_then(|(host, port)| token::kept(host, port, token::Holder::Client));
                Ok(Launch::Http { address, token })
            }
        },
    }
}

/// Returns the first given option that only applies to starting a server.
fn of_the_server(config: &McpConfig) -> Option<&'static str> {
    let given = [
        ("--allow", !config.allow.is_empty()),
        ("--timeout", config.timeout.is_some()),
        ("--watch", config.watch),
        (CONSOLE, config.console),
        ("--code-mode", config.code_mode),
    ];
    given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
}

/// How a client connects to palisade.
enum Launch {
    /// The client starts the program and speaks to it through pipes.
    Program(Program),
    /// The client connects to a running server.
    Http {
        address: Address,
        /// The token file of a server on this machine that generated its token.
        token: Option<PathBuf>,
    },
}

/// Joins side-effect classes in the form that `--allow` takes.
fn listed<'a>(classes: impl IntoIterator<Item = &'a SideEffects>) -> String {
    classes.into_iter().map(|class| class.as_str()).collect::<Vec<_>>().join(",")
}

/// Joins words into a command line for a POSIX shell.
fn command(words: &[&str], more: &[String]) -> String {
    let words = words.iter().copied().chain(more.iter().map(String::as_str));
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Single quotes cannot be escaped within single quotes: close them, add an escaped quote, and
    // reopen them.
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The name of the server in a client's configuration. Every client accepts it, and no command
/// takes it for an option.
#[derive(Debug)]
struct Name(String);

impl Name {
    fn parse(text: &str) -> Result<Self, Failure> {
        let letter = |c: char| c.is_ascii_alphanumeric();
        let fits = |c: char| letter(c) || c == '-' || c == '_';
        if text.len() <= MAX_NAME && text.starts_with(letter) && text.chars().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(Failure::usage(format!(
            "`{}` is no name for a server: a name has at most {MAX_NAME} letters, digits, `-` and `_`, and begins with a letter or a digit",
            elided(text, MAX_NAME)
        )))
    }

    fn as_str(&self) -> &str {
        &self.0
    }
}

/// The URL of a running server.
#[derive(Debug)]
struct Address(String);

impl Address {
    /// Parses a URL; a URL without a path gets [`MCP_PATH`].
    fn parse(text: &str) -> Result<Self, Failure> {
        let begins = |c: char| c.is_ascii_alphanumeric() || c == '[';
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
        let rest = ["http://", "https://"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.filter(|rest| rest.starts_with(begins) && rest.chars().all(fits));
        match rest.map(|rest| rest.split_once('/')) {
            None => Err(Failure::usage(NO_ADDRESS)),
            Some(None | Some((_, ""))) => {
                Ok(Self(format!("{}{MCP_PATH}", text.trim_end_matches('/'))))
            }
            Some(Some(_)) => Ok(Self(text.to_owned())),
        }
    }

    fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host and port of an `http` URL. A server that stores its token has no TLS, so
    /// that an `https` URL has no token file.
    fn place(&self) -> Option<(&str, u16)> {
        let authority = self.0.strip_prefix("http://")?.split('/').next()?;
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, 80),
        };
        Some((host, port))
    }
}

impl From<NoSnippet> for Failure {
    fn from(error: NoSnippet) -> Self {
        let exit = match &error {
            NoSnippet::Variable { .. } => Exit::Usage,
            NoSnippet::Json(_) | NoSnippet::Toml(_) => Exit::Internal,
        };
        Self::new(exit, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_name_is_valid_for_every_client() {
        let longest = "x".repeat(MAX_NAME);
        for name in ["palisade", "my-tools_2", "7", &longest] {
            assert_eq!(Name::parse(name).expect("a name").as_str(), name);
        }
        let too_long = "x".repeat(MAX_NAME + 1);
        for name in ["", "two words", "-x", "--", "_x", "a.b", "é", "a\"b", &too_long] {
            let refused = Name::parse(name).expect_err("no name");
            assert_eq!(refused.exit(), Exit::Usage, "{name}");
            assert!(refused.to_string().contains("letters, digits"), "{refused}");
        }
    }

    #[test]
    fn address_without_path_gets_the_default_path() {
        for (given, taken) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/mcp"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/mcp"),
            ("http://[::1]:8080/mcp", "http://[::1]:8080/mcp"),
            ("https://tools.example.org/team/mcp", "https://tools.example.org/team/mcp"),
        ] {
            assert_eq!(Address::parse(given).expect("an address").as_str(), taken);
        }
    }

    #[test]
    fn address_has_host_and_port() {
        for (given, place) in [
            ("http://127.0.0.1:8080", Some(("127.0.0.1", 8080))),
            ("http://localhost/mcp", Some(("localhost", 80))),
            ("http://[::1]:8080/mcp", Some(("[::1]", 8080))),
            ("http://[::1]/mcp", Some(("[::1]", 80))),
            ("http://127.0.0.1:70000/mcp", None),
            ("https://127.0.0.1:8080/mcp", None),
        ] {
            assert_eq!(Address::parse(given).expect("an address").place(), place, "{given}");
        }
    }

    #[test]
    fn address_with_a_secret_is_refused_unquoted() {
        for given in
            ["http://ann:hush@host/mcp", "https://host/mcp?token=hush", "https://host/mcp#hush"]
        {
            let refused = Address::parse(given).expect_err("no address").to_string();
            assert!(
                refused.contains("http://127.0.0.1:8080/mcp") && !refused.contains("hush"),
                "{refused}"
            );
        }
    }

    #[test]
    fn invalid_server_address_is_refused() {
        for given in [
            "",
            "8080",
            "127.0.0.1:8080",
            "ftp://host/mcp",
            "http://",
            "http:///mcp",
            "http://:80",
            "http://a b",
        ] {
            assert_eq!(
                Address::parse(given).expect_err("no address").exit(),
                Exit::Usage,
                "{given}"
            );
        }
        for given in
            ["http://host/${HOME}", "http://host/\"", "http://host/\u{202e}", "http://host/a\nb"]
        {
            assert_eq!(
                Address::parse(given).expect_err("no address").exit(),
                Exit::Usage,
                "{given:?}"
            );
        }
    }

    #[test]
    fn quoted_word_survives_a_shell() {
        for (word, expected) in [
            ("a-b_c/d.e:f,g", "a-b_c/d.e:f,g"),
            ("", "''"),
            ("a b", "'a b'"),
            ("'", r"''\'''"),
            ("=x", "'=x'"),
            ("~", "'~'"),
            ("$x", "'$x'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
