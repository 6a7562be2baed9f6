//! Drives the console of `palisade serve --http` in a browser: a call is allowed, denied, answered
//! twice, and survives a reload, a lost connection and a restart of the server; many tabs share one
//! stream of events; MCP clients have sessions with a page.
//!
//! The driver is `tests/console/drive.mjs`; its packages are installed from npm, in the exact
//! versions of the lock file beside it, without install scripts. Without npm or without a browser
//! the run is skipped with a message.

use crate::documents::Profile;
use crate::npm::{self, Fetched, Packages};
use crate::place::Place;
use crate::{providers, served};
use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The folder of the driver.
const SOURCES: &str = "tests/console";
/// The files of the driver.
const DRIVER: [&str; 8] = [
    "drive.mjs",
    "place.mjs",
    "questions.mjs",
    "dialog.mjs",
    "views.mjs",
    "tabs.mjs",
    "ports.mjs",
    "clients.mjs",
];
/// The names of a browser that the driver can use, in order of preference.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// The text before the link in the output of the server.
const CONSOLE: &str = "console: ";
/// The token of the clients.
const CLIENT: &str = "the-token-of-the-clients";
/// The token of the operator. Logins survive a restart with the same token only.
const OPERATOR: &str = "the-token-of-the-operator";
/// The files with the tokens.
const TOKENS: [(&str, &str); 2] = [("client.token", CLIENT), ("operator.token", OPERATOR)];
/// The time for the server to print the link.
const PATIENCE: Duration = Duration::from_secs(120);
/// The scenario that needs a server whose questions expire soon.
const EXPIRES: &str = "question_expires";

/// Runs all scenarios, or the named ones.
pub(crate) fn run(place: &Place, profile: Profile) -> anyhow::Result<()> {
    let packages = match npm::fetch(place, SOURCES, place.target.join("console"))? {
        Fetched::Here(packages) => packages,
        Fetched::OutOfReach(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let Some(browser) = browser() else {
        println!("skipped: there is no browser; `apt-get install chromium` installs one");
        return Ok(());
    };
    for file in DRIVER {
        fs::copy(place.root.join(SOURCES).join(file), packages.directory().join(file))
            .with_context(|| format!("copying {file}"))?;
    }
    let program = providers::build(place, profile)?;
    let stage = Stage::new(&program)?;
    let wanted: Vec<String> =
        std::env::args().skip(2).filter(|word| !word.starts_with("--")).collect();
    let only = (!wanted.is_empty()).then(|| wanted.join(","));
    drive(&stage, &packages, &browser, only.as_deref(), "5m")?;
    if only.is_none() {
        drive(&stage, &packages, &browser, Some(EXPIRES), "20s")?;
    }
    Ok(())
}

/// Returns the path of a browser.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let files = BROWSERS.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    files.into_iter().find(|file| file.is_file())
}

/// Runs the driver against a server with this time for questions, and restarts the server when the
/// driver asks for it.
fn drive(
    stage: &Stage,
    packages: &Packages,
    browser: &Path,
    only: Option<&str>,
    questions: &str,
) -> anyhow::Result<()> {
    let mut server = stage.serve(questions)?;
    let mut command = Command::new(packages.node());
    command.arg("drive.mjs").arg("--control").arg("--browser").arg(browser);
    command.args(["--url", &server.origin, "--login", &server.code]);
    command.args(["--client", CLIENT, "--operator", OPERATOR]);
    command.args(only.map(|only| ["--only", only]).into_iter().flatten());
    command.current_dir(packages.directory()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut driver = command.spawn().context("starting the driver")?;
    let mut input = driver.stdin.take().context("the driver has no input")?;
    let output = driver.stdout.take().context("the driver has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line.context("reading the driver's output")?;
        if line == "restart" {
            drop(server);
            server = stage.serve(questions)?;
            writeln!(input, "{}", server.code).context("telling the driver")?;
        } else {
            println!("{line}");
        }
    }
    drop(input);
    ensure!(driver.wait()?.success(), "the console broke a promise");
    Ok(())
}

/// The directories of the servers, and their port.
struct Stage {
    directory: tempfile::TempDir,
    program: PathBuf,
    port: u16,
}

impl Stage {
    fn new(program: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("creating a directory")?;
        for name in ["home", "workspace"] {
            fs::create_dir(directory.path().join(name))?;
        }
        for (name, token) in TOKENS {
            let file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(directory.path().join(name));
            file.and_then(|mut file| file.write_all(token.as_bytes()))
                .with_context(|| format!("writing {name}"))?;
        }
        let free = TcpListener::bind(("127.0.0.1", 0)).context("finding a free port")?;
        let port = free.local_addr()?.port();
        Ok(Self { directory, program: program.to_owned(), port })
    }

    /// Starts the server at its port and waits for the link.
    fn serve(&self, questions: &str) -> anyhow::Result<Server> {
        let config = self.directory.path().join("palisade.toml");
        fs::write(&config, format!("[confirm]\ntimeout = \"{questions}\"\n"))?;
        let mut command = served::bare(&self.program);
        command.env("HOME", self.directory.path().join("home")).arg("--config").arg(&config);
        command.arg("--workspace").arg(self.directory.path().join("workspace"));
        command.args(["serve", "--console", "--http", &format!("127.0.0.1:{}", self.port)]);
        for ((name, _), option) in TOKENS.iter().zip(["--token-file", "--operator-token-file"]) {
            command.arg(option).arg(self.directory.path().join(name));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting the server")?;
        let stderr = child.stderr.take().context("the server has no standard error")?;
        let (links, received) = mpsc::channel();
        thread::spawn(move || read_links(stderr, &links));
        let mut server = Server { child, origin: String::new(), code: String::new() };
        let link = received.recv_timeout(PATIENCE).context("the server printed no link")?;
        let Some((_, code)) = link.split_once("/#login=") else {
            bail!("`{link}` is no link to the console");
        };
        // The link names a host that browsers know, and not every resolver.
        let origin = format!("http://127.0.0.1:{}", self.port);
        (server.origin, server.code) = (origin, code.to_owned());
        Ok(server)
    }
}

fn read_links(output: impl Read, links: &mpsc::Sender<String>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Some(link) = line.strip_prefix(CONSOLE).and_then(|rest| rest.split(' ').next()) {
            let _ = links.send(link.to_owned());
        }
    }
}

/// A server that ends when it is dropped.
struct Server {
    child: Child,
    origin: String,
    code: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killed, not told to end: what was acknowledged has to survive that as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
