//! Compares the HTTP API of `palisade serve --http` with its own description: schemathesis
//! generates requests from `/openapi.json`, valid ones and others, and checks every response
//! against it. Once with the operator's token and once with a client's.
//!
//! The versions of the packages are listed in `tests/api/requirements.txt`. Without Python or its
//! package index the run is skipped with a message.

use crate::documents::Profile;
use crate::pip::{Packages, python_with};
use crate::place::Place;
use crate::providers;
use crate::served::{Served, bare};
use anyhow::{Context as _, ensure};
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const LIST: &str = "tests/api/requirements.txt";
/// The seed of the generated requests.
const SEED: &str = "21";
/// The streams of events: they do not end.
const STREAMS: &str = "/events$";
/// The check that is left out. A request can break a rule that no schema can express, such as the
/// workspaces that a server allows and the replies of a provider's model. It is refused with a
/// problem.
const LEFT_OUT: &str = "positive_data_acceptance";

/// The time until the plugins are compiled, by an unoptimised build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The poll interval.
const PAUSE: Duration = Duration::from_millis(100);

/// How long to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Less than a minute in all.
    Sample,
    /// Some minutes.
    Whole,
}

impl Length {
    /// Reads the arguments of the task.
    pub(crate) fn from_arguments() -> Self {
        match std::env::args().any(|word| word == "--sample") {
            true => Self::Sample,
            false => Self::Whole,
        }
    }

    /// Returns the time for each token, in seconds.
    fn seconds(self) -> &'static str {
        match self {
            Self::Sample => "15",
            Self::Whole => "120",
        }
    }
}

/// The holders of tokens, each with its token.
const HOLDERS: [(&str, &str); 2] = [
    ("operator", "operators-token-of-the-api-check"),
    ("client", "clients-token-of-the-api-check-1"),
];

/// Runs schemathesis with both tokens.
pub(crate) fn run(place: &Place, profile: Profile, length: Length) -> anyhow::Result<()> {
    let packages = match Packages::install(place, LIST, &place.target.join("api"))? {
        Packages::At(packages) => packages,
        Packages::OutOfReach(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let program = providers::build(place, profile)?;
    let directory = tempfile::tempdir().context("creating a directory")?;
    let server = serve(&program, directory.path())?;
    wait_until_ready(&server)?;
    for (holder, token) in HOLDERS {
        println!("with the {holder}'s token");
        check(&packages, directory.path(), &server, token, length)?;
    }
    server.stop()
}

/// Starts a server with both tokens.
fn serve(program: &Path, directory: &Path) -> anyhow::Result<Served> {
    for name in ["home", "workspace"] {
        fs::create_dir(directory.join(name)).with_context(|| format!("creating {name}"))?;
    }
    let mut command = bare(program);
    command.env("HOME", directory.join("home"));
    command.arg("--workspace").arg(directory.join("workspace"));
    command.args(["serve", "--http", "127.0.0.1:0"]);
    for ((holder, token), option) in HOLDERS.iter().zip(["--operator-token-file", "--token-file"]) {
        command.arg(option).arg(secret(&directory.join(holder), token)?);
    }
    Served::start(command, directory.join("log"))
}

/// Waits until the server has its tools, without which few requests reach anything.
fn wait_until_ready(server: &Served) -> anyhow::Result<()> {
    let address = server.url().trim_start_matches("http://").trim_end_matches("/mcp");
    let begun = Instant::now();
    loop {
        let mut socket = TcpStream::connect(address).context("connecting to the server")?;
        write!(socket, "GET /readyz HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
        let answer = std::io::read_to_string(socket).context("asking whether it is ready")?;
        if answer.lines().next().is_some_and(|status| status.contains(" 200 ")) {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "the server is never ready:\n{answer}");
        thread::sleep(PAUSE);
    }
}

/// Writes a file that nobody else can read.
fn secret(file: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let mut options = fs::OpenOptions::new();
    let mut open = options.write(true).create_new(true).mode(0o600).open(file)?;
    open.write_all(text.as_bytes()).with_context(|| format!("writing {}", file.display()))?;
    Ok(file.to_owned())
}

fn check(
    packages: &Path,
    directory: &Path,
    server: &Served,
    token: &str,
    length: Length,
) -> anyhow::Result<()> {
    let description = server.url().replace("/mcp", "/openapi.json");
    let mut command = python_with(packages);
    command.args(["-m", "schemathesis.cli", "--no-color", "run", &description]);
    command.arg("--header").arg(format!("Authorization: Bearer {token}"));
    command.args(["--checks", "all", "--exclude-checks", LEFT_OUT, "--seed", SEED]);
    command.args(["--exclude-path-regex", STREAMS, "--max-time", length.seconds()]);
    command.args(["--request-timeout", "20", "--warnings", "off"]);
    // It keeps its findings in the directory where it runs.
    let status = command.current_dir(directory).status().context("starting schemathesis")?;
    ensure!(status.success(), "the API differs from its description");
    Ok(())
}
