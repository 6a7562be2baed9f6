//! Installs, starts and connects to the compared servers.

use super::http;
use super::lines::Lines;
use super::load::{Measured, Times};
use super::wire::Tool;
use crate::documents::Profile;
use crate::guests::{self, Request, Selection};
use crate::pip::{self, Packages};
use crate::place::Place;
use crate::providers;
use crate::served::Transport;
use crate::served::{self, Served};
use anyhow::{Context as _, ensure};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of the server that must be ahead.
pub(super) const OURS: &str = "palisade";

/// The package and the name of the guest with Palisade's tools.
const PACKAGE: &str = "palisade-test-guests";
const GUEST: &str = "bench_rivals";
/// The Python SDK is the same package as that of the clients.
const SDK: &str = "tests/clients/python/requirements.txt";
const SERVER: &str = "tests/rivals/python/server.py";
const ACT: &str = "tests/rivals/act/requirements.txt";
const COMPONENT: &str = "tests/rivals/act/tools.wat";

/// One of the compared servers.
pub(super) struct Contestant {
    name: &'static str,
    version: String,
    maker: Maker,
    /// The directory of all logs.
    home: PathBuf,
}

enum Maker {
    Palisade { program: PathBuf },
    PythonSdk { packages: PathBuf, script: PathBuf },
    Act { program: PathBuf, component: PathBuf },
}

/// Returns Palisade and the available other servers.
pub(super) fn all(place: &Place, profile: Profile, home: &Path) -> anyhow::Result<Vec<Contestant>> {
    fs::create_dir_all(home.join("home")).context("making a home")?;
    let others = [python_sdk(place, home)?, act(place, home)?];
    let ours = palisade(place, profile, home)?;
    Ok(std::iter::once(ours).chain(others.into_iter().flatten()).collect())
}

fn palisade(place: &Place, profile: Profile, home: &Path) -> anyhow::Result<Contestant> {
    let program = providers::build(place, profile)?;
    let selection =
        Selection::Examples { package: PACKAGE, names: &[GUEST], features: &["guests"] };
    let built = guests::build(&Request {
        workspace: &place.root,
        target: &place.target,
        guests: selection,
    })?;
    for folder in ["plugins", "workspace"] {
        fs::create_dir_all(home.join(folder))
            .with_context(|| format!("making the folder {folder}"))?;
    }
    for guest in &built {
        let copy = home.join("plugins").join(format!("{}.wasm", guest.name));
        fs::copy(&guest.path, copy).with_context(|| format!("copying {}", guest.path.display()))?;
    }
    // Compile the guest before the measurement.
    let listed = output_of(&mut with_guest(&program, home, "list"))?;
    ensure!(listed.contains("checksum"), "`palisade list` does not accept the guest:\n{listed}");
    let version = output_of(Command::new(&program).arg("--version"))?;
    Ok(Contestant {
        name: OURS,
        version,
        maker: Maker::Palisade { program },
        home: home.to_owned(),
    })
}

fn python_sdk(place: &Place, home: &Path) -> anyhow::Result<Option<Contestant>> {
    let packages =
        match Packages::install(place, SDK, &place.target.join("clients").join("python"))? {
            Packages::At(packages) => packages,
            Packages::OutOfReach(reason) => {
                println!("skipped: the Python SDK's server: {reason}");
                return Ok(None);
            }
        };
    let ask = "import platform, importlib.metadata as m; print('mcp', m.version('mcp'), 'on Python', platform.python_version())";
    let version = output_of(pip::python_with(&packages).args(["-c", ask]))?;
    let maker = Maker::PythonSdk { packages, script: place.root.join(SERVER) };
    Ok(Some(Contestant { name: "python-sdk", version, maker, home: home.to_owned() }))
}

fn act(place: &Place, home: &Path) -> anyhow::Result<Option<Contestant>> {
    let packages = match Packages::install(place, ACT, &home.join("act"))? {
        Packages::At(packages) => packages,
        Packages::OutOfReach(reason) => {
            println!("skipped: ACT: {reason}");
            return Ok(None);
        }
    };
    let program = packages.join("bin").join("act");
    let (text, component) = (place.root.join(COMPONENT), home.join("tools.wasm"));
    let bytes = wat::parse_file(&text).with_context(|| format!("reading {}", text.display()))?;
    fs::write(&component, bytes).with_context(|| format!("writing {}", component.display()))?;
    let version = output_of(Command::new(&program).arg("--version"))?;
    Ok(Some(Contestant {
        name: "act",
        version,
        maker: Maker::Act { program, component },
        home: home.to_owned(),
    }))
}

/// Returns the output of a program that succeeds.
fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().context("starting a program")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "a program ends with {}: {complaint}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Contestant {
    /// Returns the name in the table.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name, the version, and the work that the server does besides answering.
    pub(super) fn described(&self) -> String {
        let with = match self.maker {
            Maker::Palisade { .. } => "a sandbox for each call; policy, validation and events on",
            Maker::PythonSdk { .. } => "no sandbox; its validation on",
            Maker::Act { .. } => {
                "one sandbox for all calls; its validation and its audit on; a component without an SDK"
            }
        };
        format!("{}: {}; {with}", self.name, self.version)
    }

    /// Starts the server.
    pub(super) fn start(&self, transport: Transport) -> anyhow::Result<Server> {
        let log = self.home.join(format!("{}-{}.log", self.name, transport.name()));
        match transport {
            Transport::Stdio => {
                Ok(Server::Lines(Lines::start(self.command(transport, None), &log)?))
            }
            Transport::Http => self.listen(log),
        }
    }

    fn listen(&self, log: PathBuf) -> anyhow::Result<Server> {
        if matches!(self.maker, Maker::Palisade { .. }) {
            let served = Served::start(self.command(Transport::Http, None), log)?;
            let address =
                served.url().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
            let address = address.and_then(|address| address.parse::<SocketAddr>().ok());
            let address =
                address.with_context(|| format!("{} is no address with a port", served.url()))?;
            return Ok(Server::Http { served, address });
        }
        let address = free()?;
        let served = Served::at(self.command(Transport::Http, Some(address)), address, log)?;
        Ok(Server::Http { served, address })
    }

    /// Returns the start command: with the given address, or else with one that the server chooses
    /// and prints.
    fn command(&self, transport: Transport, address: Option<SocketAddr>) -> Command {
        let mut command = match &self.maker {
            Maker::Palisade { program } => {
                let mut serve = with_guest(program, &self.home, "serve");
                serve
                    .arg("--events")
                    .arg(self.home.join(format!("events-{}.jsonl", transport.name())));
                serve.args(
                    (transport == Transport::Http)
                        .then_some(["--http", "127.0.0.1:0", "--token", "none"])
                        .into_iter()
                        .flatten(),
                );
                serve
            }
            Maker::PythonSdk { packages, script } => {
                let mut serve = pip::python_with(packages);
                serve.arg(script).args(address.map(|address| address.port().to_string()));
                serve
            }
            Maker::Act { program, component } => {
                let mut serve = served::bare(program);
                serve.args(["run", "--mcp"]).arg(component).env("HOME", self.home.join("home"));
                if let Some(address) = address {
                    serve.args(["--http", "--listen", &address.to_string()]);
                }
                serve
            }
        };
        command.current_dir(&self.home);
        command
    }
}

/// Returns Palisade with the guest and no other tools: the other servers have none, either.
fn with_guest(program: &Path, home: &Path, verb: &str) -> Command {
    let mut command = served::bare(program);
    command.env("HOME", home.join("home")).env("PALISADE_CACHE", home.join("cache"));
    command.args([verb, "--no-builtin", "--plugins"]).arg(home.join("plugins"));
    command.arg("--workspace").arg(home.join("workspace"));
    command
}

/// Returns a port that was free a moment ago. Another process may still take it.
fn free() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a port")?;
    listener.local_addr().context("looking for a port")
}

/// A server that runs until it is dropped.
pub(super) enum Server {
    Lines(Lines),
    Http { served: Served, address: SocketAddr },
}

impl Server {
    /// Sends calls for a time, with `callers` concurrent calls.
    pub(super) fn load(
        &mut self,
        tool: &Tool,
        callers: usize,
        times: Times,
    ) -> anyhow::Result<Measured> {
        match self {
            Self::Lines(lines) => lines.load(tool, callers, times),
            Self::Http { address, .. } => http::load(*address, tool, callers, times),
        }
    }

    /// Stops the server. Fails if it had exited before.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Lines(_) => Ok(()),
            Self::Http { served, .. } => served.stop(),
        }
    }
}
