//! Runs real MCP clients against `palisade serve` over stdio and HTTP: the official ones for
//! Python, TypeScript and Rust, and the command line of the MCP Inspector.
//!
//! They are installed by pip, npm and cargo in the exact versions of `tests/clients`, into a
//! directory below the target directory; nothing else on the machine changes, except cargo's
//! download cache. An unavailable client is skipped with a message. Each client is a separate
//! program that prints one line per promise and fails if one is broken.

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
use stage::Stage;
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

/// Runs each available client over each transport.
pub(crate) fn run(place: &Place, profile: Profile) -> anyhow::Result<()> {
    let home = place.target.join("clients");
    let clients = gather(place, &home)?;
    if clients.is_empty() {
        return Ok(());
    }
    let program = providers::build(place, profile)?;
    let selection = Selection::Examples { package: PACKAGE, names: &GUESTS, features: &["guests"] };
    let built = guests::build(&Request {
        workspace: &place.root,
        target: &place.target,
        guests: selection,
    })?;
    let stage = Stage::make(&home, &program, &built)?;
    let mut failed = Vec::new();
    for transport in [Transport::Stdio, Transport::Http] {
        for client in &clients {
            println!("{} over {}", client.name, transport.name());
            if !client.passes(&stage, transport)? {
                failed.push(format!("{} over {}", client.name, transport.name()));
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
fn gather(place: &Place, home: &Path) -> anyhow::Result<Vec<Client>> {
    thread::scope(|scope| {
        let rust = scope.spawn(|| rust(place, home));
        let [python, typescript] = [python(place, home)?, typescript(place, home)?];
        let rust = rust.join().map_err(|_| anyhow!("building the client in Rust panicked"))??;
        Ok([python, typescript, rust].concat())
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
    packages: Option<PathBuf>,
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
        packages: Some(packages),
    }])
}

fn rust(place: &Place, home: &Path) -> anyhow::Result<Vec<Client>> {
    match rust::build(place, &home.join("rust"))? {
        rust::Built::At(program) => {
            Ok(vec![Client { name: "the Rust client", program, words: Vec::new(), packages: None }])
        }
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
        packages: None,
    };
    Ok(vec![
        client("the TypeScript client", "client.mjs"),
        client("the Inspector", "inspector.mjs"),
    ])
}

impl Client {
    /// Runs the client. Returns true if every promise is kept; the client prints one line for each.
    fn passes(&self, stage: &Stage, transport: Transport) -> anyhow::Result<bool> {
        let mut command = self.command(stage);
        match transport {
            Transport::Stdio => {
                command.arg(stage.program()).args(stage.serve());
                finish(command)
            }
            Transport::Http => {
                let mut serve = served::bare(stage.program());
                stage.settle(&mut serve);
                serve.args(stage.serve()).args(["--http", "127.0.0.1:0", "--token", "none"]);
                let server = Served::start(serve, stage.log("server"))?;
                command.args(["--process", &server.process().to_string(), "--url", server.url()]);
                let passes = finish(command)?;
                // An error of the server is more informative than the client's result.
                server.stop()?;
                Ok(passes)
            }
        }
    }

    fn command(&self, stage: &Stage) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(packages) = &self.packages {
            command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
        }
        stage.settle(&mut command);
        command.args(&self.words).arg("--workspace").arg(stage.workspace()).stdin(Stdio::null());
        command
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
