//! `palisade doctor`: whether this machine, the configuration and the plugins are as palisade needs them, and what to do where they are not.

mod settings;

use super::args::{Common, Doctor};
use super::exit::{Exit, Failure};
use super::open;
use super::output::{self, Cell};
use super::signals::Signals;
use crate::host::{BuildError, CacheMode, default_cache, is_unwritable, open_cache};
use crate::sandbox::{Allocation, Cache, Sandbox, limits};
use crate::workspace::Workspace;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// One thing that was looked at.
struct Check {
    name: &'static str,
    state: State,
    found: String,
    advice: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// Works, with less than could be had.
    Fair,
    /// A call would fail, and leave with this.
    Bad(Exit),
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Fair => "note",
            Self::Bad(_) => "bad",
        }
    }
}

pub(super) fn run(common: &Common, args: &Doctor) -> Result<Exit, Failure> {
    // Loading is to end in order at a signal. Where the machine allows that not even, the checks say why.
    let _signals = Signals::watch();
    let (settings, configuration) = settings::configuration(common);
    let (cache, compiled) = cache(common);
    let machine =
        [engine(), cache, path_resolution(), page_scan(), landlock(common), address_space(), toolchain(), target()];
    let plugins = settings::plugins(common, &settings, compiled);
    let checks: Vec<Check> =
        [workspace(common)].into_iter().chain(configuration).chain(plugins).chain(machine).collect();
    if args.json {
        output::json(&json!({"checks": checks.iter().map(as_json).collect::<Vec<_>>()}))?;
    } else {
        let rows: Vec<Vec<Cell>> = checks.iter().map(row).collect();
        output::text(&output::table(&rows))?;
    }
    Ok(exit(&checks))
}

/// As the first of these would leave a call: a machine that cannot run anything, then what is named wrongly, then a plugin.
fn exit(checks: &[Check]) -> Exit {
    let found: Vec<Exit> = checks.iter().filter_map(Check::exit).collect();
    let ranked = [Exit::Internal, Exit::Usage, Exit::Limit, Exit::Invalid];
    ranked.into_iter().find(|exit| found.contains(exit)).unwrap_or(Exit::Ok)
}

impl Check {
    fn exit(&self) -> Option<Exit> {
        match self.state {
            State::Bad(exit) => Some(exit),
            State::Good | State::Fair => None,
        }
    }
}

fn row(check: &Check) -> Vec<Cell> {
    let advice = if check.state == State::Good { String::new() } else { format!("→ {}", check.advice) };
    vec![check.state.as_str().into(), check.name.into(), format!("{} {advice}", check.found).into()]
}

fn as_json(check: &Check) -> Value {
    let advice = (check.state != State::Good).then_some(check.advice);
    json!({"name": check.name, "state": check.state.as_str(), "found": check.found, "advice": advice})
}

fn engine() -> Check {
    let (state, found) = match Sandbox::new(Cache::off()).map(|sandbox| sandbox.allocation()) {
        Ok(Allocation::Pooled) => (State::Good, "memory is pooled".to_owned()),
        Ok(Allocation::OnDemand) => (State::Fair, "memory is mapped for each call, some 40 µs slower".to_owned()),
        Err(error) => (State::Bad(Exit::Internal), error.to_string()),
    };
    Check { name: "engine", state, found, advice: "give the process more address space (`ulimit -v unlimited`)" }
}

/// The cache, and how plugins are to be loaded: without one that cannot be used, so that what else is wrong is found.
fn cache(common: &Common) -> (Check, CacheMode) {
    let mode = open::cache_mode();
    let (state, found) = match &mode {
        CacheMode::Off => (State::Fair, "off: every start compiles".to_owned()),
        CacheMode::Directory(directory) => opened(directory, common, State::Bad(Exit::Usage)),
        CacheMode::Default => match default_cache() {
            Some(directory) => opened(&directory, common, State::Fair),
            None => (State::Fair, "no cache directory: every start compiles".to_owned()),
        },
    };
    let usable = if state == State::Good { mode } else { CacheMode::Off };
    (Check { name: "cache", state, found, advice: "set PALISADE_CACHE to a directory that only you can reach" }, usable)
}

/// One that somebody named is refused by every verb where it cannot be used; the default is done without.
fn opened(directory: &Path, common: &Common, otherwise: State) -> (State, String) {
    let opened = match Workspace::open(&common.workspace) {
        Ok(workspace) => open_cache(directory, &workspace),
        Err(_) => Cache::open(directory).map_err(BuildError::from),
    };
    match opened {
        Ok(_) => (State::Good, directory.display().to_string()),
        Err(error) if is_unwritable(&error) => (State::Fair, format!("every start compiles: {error}")),
        Err(error) => (otherwise, error.to_string()),
    }
}

fn workspace(common: &Common) -> Check {
    let (state, found) = match Workspace::open_within(common.workspace.clone(), limits::OPENING) {
        Ok(workspace) => (State::Good, workspace.root().display().to_string()),
        Err(error) => (State::Bad(if error.is_unanswered() { Exit::Limit } else { Exit::Usage }), error.to_string()),
    };
    Check { name: "workspace", state, found, advice: "give an existing directory with --workspace" }
}

#[cfg(target_os = "linux")]
fn path_resolution() -> Check {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let (state, found) = match openat2(CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::BENEATH) {
        Ok(_) => (State::Good, "openat2".to_owned()),
        Err(error) => (State::Fair, format!("step by step ({error})")),
    };
    Check {
        name: "path resolution",
        state,
        found,
        advice: "Linux 5.6 resolves paths in one system call; a seccomp profile may forbid it",
    }
}

#[cfg(not(target_os = "linux"))]
fn path_resolution() -> Check {
    Check { name: "path resolution", state: State::Good, found: "step by step".to_owned(), advice: "" }
}

/// The release of the kernel, as two numbers.
#[cfg(target_os = "linux")]
fn kernel() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(target_os = "linux")]
fn page_scan() -> Check {
    let (major, minor) = kernel();
    let state = if (major, minor) >= (6, 7) { State::Good } else { State::Fair };
    Check {
        name: "page scan",
        state,
        found: format!("Linux {major}.{minor}"),
        advice: "from Linux 6.7 on, calls of plugins with large stacks cost some 25 µs less",
    }
}

#[cfg(not(target_os = "linux"))]
fn page_scan() -> Check {
    Check { name: "page scan", state: State::Good, found: "not used on this system".to_owned(), advice: "" }
}

#[cfg(unix)]
fn landlock(common: &Common) -> Check {
    let probe = Workspace::open_within(common.workspace.clone(), limits::OPENING).map_err(|error| error.to_string());
    let probe = probe.and_then(|ws| crate::native::shell::landlock(&Arc::new(ws)).map_err(|error| reason(&error)));
    let (state, found) = match probe {
        Ok(abi) => (State::Good, format!("version {abi}")),
        Err(reason) => (State::Fair, reason),
    };
    Check { name: "landlock", state, found, advice: "`shell` is refused without it; boot with `lsm=landlock,…`" }
}

/// What the machine itself said: an error that no tool's caller may see keeps it within.
#[cfg(unix)]
fn reason(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(not(unix))]
fn landlock(_: &Common) -> Check {
    Check { name: "landlock", state: State::Fair, found: "not on this system".to_owned(), advice: "`shell` is refused" }
}

#[cfg(unix)]
fn address_space() -> Check {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let (state, found) = match limit {
        None => (State::Good, "unlimited".to_owned()),
        Some(bytes) => (State::Fair, bytesize::ByteSize(bytes).display().iec().to_string()),
    };
    Check {
        name: "address space",
        state,
        found,
        advice: "a pool needs some 300 GiB of it (reserved, not used): `ulimit -v unlimited`",
    }
}

#[cfg(not(unix))]
fn address_space() -> Check {
    Check { name: "address space", state: State::Good, found: "not limited".to_owned(), advice: "" }
}

fn toolchain() -> Check {
    let (state, found) = match first_line(rustc().arg("--version")) {
        Some(version) => (State::Good, version),
        None => (State::Fair, "no rustc".to_owned()),
    };
    Check { name: "toolchain", state, found, advice: "only needed to write plugins in Rust: install rustup" }
}

fn target() -> Check {
    let libdir = first_line(rustc().args(["--print", "target-libdir", "--target", "wasm32-wasip2"]));
    let (state, found) = match libdir {
        Some(directory) if Path::new(&directory).is_dir() => (State::Good, "wasm32-wasip2".to_owned()),
        _ => (State::Fair, "no wasm32-wasip2".to_owned()),
    };
    Check {
        name: "target",
        state,
        found,
        advice: "only needed to write plugins in Rust: `rustup target add wasm32-wasip2`",
    }
}

/// The compiler of this machine. It runs in the root directory and may install nothing: rustup reads `rust-toolchain.toml` from the current directory, and one in
/// a hostile workspace could name a program of its own.
fn rustc() -> Command {
    let mut command = Command::new("rustc");
    command.current_dir(std::path::MAIN_SEPARATOR_STR).env("RUSTUP_AUTO_INSTALL", "0");
    command
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
}
