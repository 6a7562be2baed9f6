//! Running other programs: the environment of the outer cargo taken off, the output kept for a refusal.

use std::env;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use super::error::Error;

/// Variables of cargo's that a nested cargo shares with the outer one: where its registries and their credentials are,
/// how to reach them, and the job server, so that both together run no more jobs than the user asked for.
const SHARED: &str =
    "CARGO_HOME CARGO_HTTP_ CARGO_NET_ CARGO_REGISTRY_ CARGO_REGISTRIES_ CARGO_SOURCE_ CARGO_MAKEFLAGS";

/// Prefixes of the variables that would change what a nested cargo builds: its own and the compiler's flags and wrappers
/// (clippy runs as one), coverage, and what cargo tells a build script about its dependencies.
const FOREIGN: &str = "CARGO __CARGO RUSTFLAGS RUSTDOC RUSTC MIRI CLIPPY_ LLVM_PROFILE_FILE MAKEFLAGS MFLAGS DEP_";

/// What cargo tells a build script about the package it builds.
const TOLD: &str = "TARGET HOST OUT_DIR NUM_JOBS OPT_LEVEL PROFILE DEBUG";

/// Whether a variable of the outer cargo must not reach a nested one.
pub(crate) fn is_foreign(name: &str) -> bool {
    let begins_like = |prefixes: &str| prefixes.split(' ').any(|prefix| name.starts_with(prefix));
    (begins_like(FOREIGN) && !begins_like(SHARED)) || TOLD.split(' ').any(|told| name == told)
}

/// A program without the environment of the outer cargo, and without anything to read.
pub(crate) fn scrubbed(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_foreign) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// Runs `command` to its end and returns what it printed.
///
/// # Errors
/// [`Error::NoProgram`] when it is not installed, [`Error::Command`] when it reports failure; `what` says what it was for.
pub(crate) fn run(command: &mut Command, what: &str) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::NoProgram { program },
        _ => Error::Io { what: format!("cannot run {program}"), source },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::command(what, &String::from_utf8_lossy(&output.stderr)))
}
