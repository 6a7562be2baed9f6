//! Runs real MCP clients against `palisade serve` over stdio and HTTP: the official ones for
//! Python, TypeScript and Rust, the command line of the MCP Inspector, agent frameworks and Claude
//! Code, whose model is a local stand-in. Two that cannot ask their user are also run while an
//! operator answers.
//!
//! They are installed by pip, npm and cargo in the exact versions of `tests/clients`, into a
//! directory below the target directory; nothing else on the machine changes, except cargo's
//! download cache. An unavailable client is skipped with a message. Each client is a separate
//! program that prints one line per promise and fails if one is broken.

mod frameworks;
mod model;
mod rust;
mod stage;

use crate::documents::Profile;
use crate::guests::{self, Request, Selection};
use crate::npm;
use crate::pip;
use crate::place::Place;
use crate::providers;
use crate::served::{self, Served, Transport};
use anyhow::{Context as _, anyhow, ensure};
use model::Model;
use stage::Stage;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// The clients with the lists of their packages.
const PYTHON: &str = "tests/clients/python";
const TYPESCRIPT: &str = "tests/clients/typescript";
/// The scripts of [`TYPESCRIPT`], copied beside the packages that they import.
const SCRIPTS: [&str; 3] = ["common.mjs", "client.mjs", "inspector.mjs"];

/// The package of the guests, and the guests that the clients call.
const PACKAGE: &str = "palisade-test-guests";
const GUESTS: [&str; 5] =
    ["cancel_compute", "contract_errors", "contract_structured", "loader_good", "mcp_conformance"];

/// The timeout of a client.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The transports of a client that runs over each.
const BOTH: &[Transport] = &[Transport::Stdio, Transport::Http];

/// Whether an operator answers the questions of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attended {
    /// Nobody does.
    Never,
    /// The client is run a second time with an operator, since it cannot ask its own user.
    Also,
}

/// The clients of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selected {
    /// The official clients and all agent frameworks.
    All,
    /// The official clients, and one framework per language over HTTP only, because all of them
    /// take too long for each change.
    Sample,
    /// The frameworks with these names, without the official clients.
    Frameworks(Vec<String>),
}

impl Selected {
    /// Reads the arguments of the task.
    pub(crate) fn from_arguments() -> Self {
        Self::read(env::args().skip(2).filter(|word| word != "--debug"))
    }

    fn read(words: impl Iterator<Item = String>) -> Self {
        let words: Vec<String> = words.collect();
        match words.as_slice() {
            [] => Self::All,
            [word] if word == "--sample" => Self::Sample,
            _ => Self::Frameworks(words),
        }
    }
}

/// Runs each selected and available client over each of its transports.
pub(crate) fn run(place: &Place, profile: Profile, selected: &Selected) -> anyhow::Result<()> {
    let home = place.target.join("clients");
    let clients = gather(place, &home, selected)?;
    if clients.is_empty() {
        return Ok(());
    }
    let model = Model::start()?;
    let program = providers::build(place, profile)?;
    let selection = Selection::Examples { package: PACKAGE, names: &GUESTS, features: &["guests"] };
    let built = guests::build(&Request {
        workspace: &place.root,
        target: &place.target,
        guests: selection,
    })?;
    let stage = Stage::make(&home, &program, &built)?;
    let mut failed = Vec::new();
    for transport in BOTH.iter().copied() {
        for client in clients.iter().filter(|client| client.transports.contains(&transport)) {
            for attended in client.runs() {
                let run = client.run_name(transport, *attended);
                println!("{run}");
                if !client.passes(&stage, &model, transport, *attended)? {
                    failed.push(run);
                }
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "promises to these clients are broken: {}; their logs are in {}",
        failed.join(", "),
        stage.place()
    );
    Ok(())
}

/// Returns the available clients. The Rust client is compiled while the others are downloaded.
fn gather(place: &Place, home: &Path, selected: &Selected) -> anyhow::Result<Vec<Client>> {
    let frameworks = frameworks::gather(place, home, selected)?;
    if matches!(selected, Selected::Frameworks(_)) {
        return Ok(frameworks);
    }
    thread::scope(|scope| {
        let rust = scope.spawn(|| rust(place, home));
        let [python, typescript] = [python(place, home)?, typescript(place, home)?];
        let rust = rust.join().map_err(|_| anyhow!("building the client in Rust panicked"))??;
        Ok([python, typescript, rust, frameworks].concat())
    })
}

/// A client, with the arguments that precede those for the server's location.
#[derive(Debug, Clone)]
struct Client {
    name: &'static str,
    program: PathBuf,
    /// The first arguments: the script, if the program is an interpreter.
    words: Vec<OsString>,
    /// The `PYTHONPATH` of a Python client.
    packages: Vec<PathBuf>,
    transports: &'static [Transport],
    attended: Attended,
}

fn python(place: &Place, home: &Path) -> anyhow::Result<Vec<Client>> {
    let list = format!("{PYTHON}/requirements.txt");
    let packages = match pip::Packages::install(place, &list, &home.join("python"))? {
        pip::Packages::At(packages) => packages,
        pip::Packages::OutOfReach(reason) => {
            println!("skipped: the client in Python: {reason}");
            return Ok(Vec::new());
        }
    };
    let script = place.root.join(PYTHON).join("client.py");
    Ok(vec![Client {
        name: "the Python client",
        program: "python3".into(),
        words: vec![script.into()],
        packages: vec![packages],
        transports: BOTH,
        attended: Attended::Never,
    }])
}

fn rust(place: &Place, home: &Path) -> anyhow::Result<Vec<Client>> {
    match rust::build(place, &home.join("rust"))? {
        rust::Built::At(program) => Ok(vec![Client {
            name: "the Rust client",
            program,
            words: Vec::new(),
            packages: Vec::new(),
            transports: BOTH,
            attended: Attended::Never,
        }]),
        rust::Built::OutOfReach(reason) => {
            println!("skipped: the client in Rust: {reason}");
            Ok(Vec::new())
        }
    }
}

fn typescript(place: &Place, home: &Path) -> anyhow::Result<Vec<Client>> {
    let packages = match npm::fetch(place, TYPESCRIPT, home.join("typescript"))? {
        npm::Fetched::Here(packages) => packages,
        npm::Fetched::OutOfReach(reason) => {
            println!("skipped: the client in TypeScript and the Inspector: {reason}");
            return Ok(Vec::new());
        }
    };
    for script in SCRIPTS {
        let from = place.root.join(TYPESCRIPT).join(script);
        fs::copy(&from, packages.directory().join(script))
            .with_context(|| format!("copying {}", from.display()))?;
    }
    let client = |name, script: &str| Client {
        name,
        program: packages.node().to_owned(),
        words: vec![packages.directory().join(script).into()],
        packages: Vec::new(),
        transports: BOTH,
        attended: Attended::Never,
    };
    Ok(vec![
        client("the TypeScript client", "client.mjs"),
        client("the Inspector", "inspector.mjs"),
    ])
}

impl Client {
    /// Returns the servers that the client is run against over each transport.
    fn runs(&self) -> &'static [Attended] {
        match self.attended {
            Attended::Never => &[Attended::Never],
            Attended::Also => &[Attended::Never, Attended::Also],
        }
    }

    fn run_name(&self, transport: Transport, attended: Attended) -> String {
        let (name, transport) = (self.name, transport.name());
        match attended {
            Attended::Never => format!("{name} over {transport}"),
            Attended::Also => format!("{name} over {transport}, with an operator"),
        }
    }

    /// Runs the client. Returns true if every promise is kept; the client prints one line for each.
    fn passes(
        &self,
        stage: &Stage,
        model: &Model,
        transport: Transport,
        attended: Attended,
    ) -> anyhow::Result<bool> {
        let mut command = self.command(stage, model)?;
        if attended == Attended::Also {
            command.arg("--attended");
        }
        match transport {
            Transport::Stdio => {
                command.arg(stage.program()).args(stage.serve(attended));
                if attended == Attended::Also {
                    command.arg("--console");
                }
                finish(command)
            }
            Transport::Http => {
                let mut serve = served::bare(stage.program());
                stage.settle(&mut serve);
                serve.args(stage.serve(attended)).args(["--http", "127.0.0.1:0"]);
                if attended == Attended::Never {
                    serve.args(["--token", "none"]);
                }
                let server = Served::start(serve, stage.log("server"))?;
                command.args(["--process", &server.process().to_string(), "--url", server.url()]);
                let passes = finish(command)?;
                // An error of the server is more informative than the client's result.
                server.stop()?;
                Ok(passes)
            }
        }
    }

    fn command(&self, stage: &Stage, model: &Model) -> anyhow::Result<Command> {
        let mut command = Command::new(&self.program);
        if !self.packages.is_empty() {
            let packages = env::join_paths(&self.packages).context("the paths of the packages")?;
            command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
        }
        stage.settle(&mut command);
        model.settle(&mut command);
        command.args(&self.words).arg("--workspace").arg(stage.workspace()).stdin(Stdio::null());
        Ok(command)
    }
}

fn finish(mut command: Command) -> anyhow::Result<bool> {
    let mut child = command.spawn().context("starting a client")?;
    let ended = served::finish(&mut child, PATIENCE)?;
    if ended.is_none() {
        println!("failed: it does not end within {} s", PATIENCE.as_secs());
    }
    Ok(ended.is_some_and(|ended| ended.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switch_selects_the_sample_and_names_select_frameworks() {
        let read = |words: &[&str]| Selected::read(words.iter().map(ToString::to_string));
        assert_eq!(read(&[]), Selected::All);
        assert_eq!(read(&["--sample"]), Selected::Sample);
        assert_eq!(read(&["fastmcp"]), Selected::Frameworks(vec!["fastmcp".to_owned()]));
    }
}
