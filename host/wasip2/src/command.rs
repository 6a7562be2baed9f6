//! Runs other programs without the environment of the outer cargo, and captures their output for
//! errors.

use std::env;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use crate::error::Error;

/// Prefixes of cargo variables that a nested cargo shares with the outer one: registries with
/// credentials, network settings, and the job server, so that both together respect the job limit.
const SHARED: &str = "CARGO_HOME CARGO_HTTP_ CARGO_NET_ CARGO_REGISTRY_ CARGO_REGISTRIES_ CARGO_SOURCE_ CARGO_MAKEFLAGS";

/// Prefixes of variables that would change the build of a nested cargo: flags and wrappers of cargo
/// and the compiler (clippy runs as one), coverage, and metadata of a build script's dependencies.
const FOREIGN: &str =
    "CARGO __CARGO RUSTFLAGS RUSTDOC RUSTC MIRI CLIPPY_ LLVM_PROFILE_FILE MAKEFLAGS MFLAGS DEP_";

/// Variables that describe the outer package to a build script.
const TOLD: &str = "TARGET HOST OUT_DIR NUM_JOBS OPT_LEVEL PROFILE DEBUG";

/// Returns true if a variable of the outer cargo must not reach a nested one.
#[must_use]
pub fn is_foreign(name: &str) -> bool {
    let begins_like = |prefixes: &str| prefixes.split(' ').any(|prefix| name.starts_with(prefix));
    (begins_like(FOREIGN) && !begins_like(SHARED)) || TOLD.split(' ').any(|told| name == told)
}

/// Returns a program without the environment of the outer cargo and without standard input.
pub fn scrubbed(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_foreign) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// Runs `command` to its end and returns its output.
///
/// # Errors
/// [`Error::NoProgram`] if it is not installed, [`Error::Command`] if it fails; `what` names its
/// purpose.
pub fn run(command: &mut Command, what: &str) -> Result<String, Error> {
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
