//! `palisade doctor`: checks the machine, the configuration and the plugins, with advice for each
//! problem.

mod name_server;
mod patience;
mod report;
mod settings;

use super::args::{Common, Doctor};
use super::exit::{Exit, Failure};
use super::signals::Signals;
use super::{setup, wide};
use palisade::CacheMode;
use palisade::internal::{default_cache, is_unwritable, open_cache};
use palisade::sandbox::{Allocation, Cache, Sandbox};
use palisade::workspace::{Workspace, WorkspaceError};
use patience::Patience;
use report::{Check, Form, Report, State};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Doctor) -> Result<Exit, Failure> {
    // A signal must end loading in order. If the handlers cannot be installed, the checks below
    // tell the reason.
    let _signals = Signals::watch();
    let patience = Patience::default();
    let mut report = Report::new(if args.json { Form::Json } else { Form::Lines });
    // Checks that do not touch the workspace come first: its file system may hang.
    let machine: [fn() -> Check; 6] =
        [engine, path_resolution, page_scan, address_space, toolchain, target];
    machine.into_iter().try_for_each(|look| report.add(look()))?;
    let (found, workspace) = workspace(common, &patience);
    report.add(found)?;
    let (found, compiled) = cache(workspace.as_ref(), &patience);
    report.add(found)?;
    report.add(landlock(workspace, &patience))?;
    let (settings, found) = settings::configuration(common, &patience);
    found.into_iter().try_for_each(|check| report.add(check))?;
    if let Some(server) = settings.network.name_server.value {
        report.add(name_server::check(server))?;
    }
    let found = settings::plugins(common, &settings, compiled, &patience);
    found.into_iter().try_for_each(|check| report.add(check))?;
    report.finish()
}

fn engine() -> Check {
    let (state, found) = match Sandbox::new(Cache::off()).map(|sandbox| sandbox.allocation()) {
        Ok(Allocation::Pooled) => (State::Good, "memory is pooled".to_owned()),
        Ok(Allocation::Scarce) => (
            State::Fair,
            "memory is mapped for each call and copied as it grows: the address space is short"
                .to_owned(),
        ),
        Ok(Allocation::OnDemand) => {
            (State::Fair, "memory is mapped for each call, some 40 µs slower".to_owned())
        }
        Err(error) => (State::Bad(Exit::Internal), error.to_string()),
    };
    Check {
        name: "engine",
        state,
        found,
        advice: "give the process more address space (`ulimit -v unlimited`)",
    }
}

/// Opens the workspace once for all checks.
fn workspace(common: &Common, patience: &Patience) -> (Check, Option<Arc<Workspace>>) {
    let opened = Workspace::open_within(common.workspace.clone(), patience.left());
    patience.note(opened.as_ref().is_err_and(WorkspaceError::is_unanswered));
    let (state, found, advice) = match &opened {
        Ok(workspace) => found_at(workspace.root()),
        Err(error) => {
            let exit = if error.is_unanswered() { Exit::Limit } else { Exit::Usage };
            (State::Bad(exit), error.to_string(), "give an existing directory with --workspace")
        }
    };
    let check = Check { name: "workspace", state, found, advice };
    (check, opened.ok().map(Arc::new))
}

fn found_at(root: &Path) -> (State, String, &'static str) {
    match wide::finding(root) {
        Some(finding) => (State::Fair, format!("{} {finding}", root.display()), wide::REMEDY),
        None => (State::Good, root.display().to_string(), ""),
    }
}

/// Checks the cache, and returns the cache mode for loading plugins: an unusable cache is turned
/// off, so that the remaining problems are found.
fn cache(workspace: Option<&Arc<Workspace>>, patience: &Patience) -> (Check, CacheMode) {
    let mode = setup::cache_mode();
    let look = |directory: PathBuf, otherwise| {
        let shown = directory.display().to_string();
        let workspace = workspace.cloned();
        let opened = patience.within(move || opened(&directory, workspace.as_deref(), otherwise));
        opened.unwrap_or_else(|error| {
            (State::Bad(Exit::Limit), format!("`{shown}` cannot be looked into: {error}"))
        })
    };
    let (state, found) = match &mode {
        CacheMode::Off => (State::Fair, "off: every start compiles".to_owned()),
        CacheMode::Directory(directory) => look(directory.clone(), State::Bad(Exit::Usage)),
        CacheMode::Default => match default_cache() {
            Some(directory) => look(directory, State::Fair),
            None => (State::Fair, "no cache directory: every start compiles".to_owned()),
        },
    };
    let usable = if state == State::Good { mode } else { CacheMode::Off };
    (
        Check {
            name: "cache",
            state,
            found,
            advice: "set PALISADE_CACHE to a directory that only you can reach",
        },
        usable,
    )
}

/// Opens a cache directory. Every subcommand refuses an unusable directory that was set explicitly,
/// and does without an unusable default directory (`otherwise`).
fn opened(directory: &Path, workspace: Option<&Workspace>, otherwise: State) -> (State, String) {
    match open_cache(directory, workspace) {
        Ok(_) => (State::Good, directory.display().to_string()),
        Err(error) if is_unwritable(&error) => {
            (State::Fair, format!("every start compiles: {error}"))
        }
        Err(error) => (otherwise, error.to_string()),
    }
}

#[cfg(target_os = "linux")]
fn path_resolution() -> Check {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let (state, found) = match openat2(
        CWD,
        ".",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH,
    ) {
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
    Check {
        name: "path resolution",
        state: State::Good,
        found: "step by step".to_owned(),
        advice: "",
    }
}

/// Returns the major and minor version of the kernel.
#[cfg(target_os = "linux")]
fn kernel() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
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
    Check {
        name: "page scan",
        state: State::Good,
        found: "not used on this system".to_owned(),
        advice: "",
    }
}

fn landlock(workspace: Option<Arc<Workspace>>, patience: &Patience) -> Check {
    let probe = |workspace: Arc<Workspace>| {
        palisade_shell::landlock_abi(&workspace).map_err(|error| reason(&error))
    };
    let Some(workspace) = workspace else {
        let found = "not looked at: the workspace cannot be opened".to_owned();
        return Check {
            name: "landlock",
            state: State::Fair,
            found,
            advice: "give a workspace that can be opened",
        };
    };
    let probed = patience
        .within(move || probe(workspace))
        .unwrap_or_else(|error| Err(format!("not looked at: {error}")));
    let (state, found) = match probed {
        Ok(abi) => (State::Good, format!("version {abi}")),
        Err(reason) => (State::Fair, reason),
    };
    Check {
        name: "landlock",
        state,
        found,
        advice: "`shell` is refused without it; boot with `lsm=landlock,…`",
    }
}

/// Returns the cause of a tool error, which the error's own message conceals from tool callers.
fn reason(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

fn address_space() -> Check {
    let (state, found) = match palisade::internal::address_space_limit() {
        None => (State::Good, "unlimited".to_owned()),
        Some(bytes) => {
            let bytes = bytesize::ByteSize(bytes).display().iec();
            (State::Fair, format!("{bytes}, the smaller one of `ulimit -v` and `ulimit -d`"))
        }
    };
    Check {
        name: "address space",
        state,
        found,
        advice: "a pool needs some 300 GiB of it (reserved, not used): `ulimit -v unlimited`, and \
                 `ulimit -d unlimited`",
    }
}

fn toolchain() -> Check {
    let (state, found) = match first_line(rustc().arg("--version")) {
        Some(version) => (State::Good, version),
        None => (State::Fair, "no rustc".to_owned()),
    };
    Check {
        name: "toolchain",
        state,
        found,
        advice: "only needed to write plugins in Rust: install it with rustup (https://rustup.rs) or from your system's packages",
    }
}

fn target() -> Check {
    let libdir =
        first_line(rustc().args(["--print", "target-libdir", "--target", "wasm32-wasip2"]));
    let (state, found) = match libdir {
        Some(directory) if Path::new(&directory).is_dir() => {
            (State::Good, "wasm32-wasip2".to_owned())
        }
        _ => (State::Fair, "no wasm32-wasip2".to_owned()),
    };
    Check { name: "target", state, found, advice: toolchain_manager().target_advice() }
}

/// The program that has installed the compiler of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Rustup,
    /// A package of the system, or none: the target cannot be added to its compiler.
    Other,
}

fn toolchain_manager() -> Manager {
    let mut rustup = Command::new("rustup");
    match first_line(rustup.current_dir("/").arg("--version")) {
        Some(_) => Manager::Rustup,
        None => Manager::Other,
    }
}

impl Manager {
    /// Returns how to get the target, and where a build does without.
    fn target_advice(self) -> &'static str {
        match self {
            Self::Rustup => {
                "only needed to write plugins in Rust: `rustup target add wasm32-wasip2`. Without it, `palisade build` and a build of Palisade itself make the target from Debian's packages (CONTRIBUTING.md)"
            }
            Self::Other => {
                "only needed to write plugins in Rust: `palisade build` and a build of Palisade itself make the target from Debian's packages (CONTRIBUTING.md); elsewhere, use a toolchain that has this target, such as one of rustup (https://rustup.rs)"
            }
        }
    }
}

/// Returns the compiler of this machine. It runs in the root directory and may install nothing:
/// rustup reads `rust-toolchain.toml` from the current directory, so a hostile workspace could name
/// a program of its own.
fn rustc() -> Command {
    let mut command = Command::new("rustc");
    command.current_dir("/").env("RUSTUP_AUTO_INSTALL", "0");
    command
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
}
