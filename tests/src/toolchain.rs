//! The toolchains of other languages on this machine, and their packages below the target
//! directory.

mod python;

pub use python::Python;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::skip;

/// Messages of package managers about a registry that cannot be reached.
const UNREACHABLE: [&str; 13] = [
    "from versions: none",
    "ConnectionError",
    "timed out",
    "Could not resolve host",
    "Could not connect to server",
    "Timeout was reached",
    "name resolution",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ENOTFOUND",
    "ETIMEDOUT",
    "ENETUNREACH",
];

/// Returns a path of the repository.
#[must_use]
pub fn repository(path: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).join(path)
}

/// Returns a directory for the packages of a language, which later runs use again.
#[must_use]
pub fn packages(language: &str) -> PathBuf {
    repository("target/tmp/sdks").join(language)
}

/// Returns true if a program runs and prints at least this version, as its first two numbers.
/// Returns false, with a message, otherwise.
#[must_use]
pub fn has(program: &str, least: (u32, u32)) -> bool {
    let Ok(output) = Command::new(program).arg("--version").stdin(Stdio::null()).output() else {
        skip(&format!("{program} cannot be started"));
        return false;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let is_enough = version(&text).is_some_and(|version| version >= least);
    if !is_enough {
        let (major, minor) = least;
        skip(&format!("{program} {major}.{minor} or later is needed, not {}", text.trim()));
    }
    is_enough
}

fn version(text: &str) -> Option<(u32, u32)> {
    let word =
        text.split([' ', 'v', '\n']).find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut numbers = word.split(['.', '-']).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next().unwrap_or_default()))
}

/// Installs packages into a directory, unless these are there. Returns false, with a message, if
/// the registry cannot be reached.
///
/// # Panics
///
/// If the packages cannot be installed for another reason, which is an error of the repository.
#[must_use]
pub fn install(directory: &Path, ingredients: &str, command: &mut Command) -> bool {
    let stamp = directory.join("stamp");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == ingredients) {
        return true;
    }
    let is_installed = fetches(command);
    if is_installed {
        fs::write(stamp, ingredients).expect("the directory of the packages can be written");
    }
    is_installed
}

/// Runs a package manager. Returns false, with a message, if its registry cannot be reached.
///
/// # Panics
///
/// As [`install`].
#[must_use]
pub fn fetches(command: &mut Command) -> bool {
    let output = command.stdin(Stdio::null()).output().expect("the package manager runs");
    if output.status.success() {
        return true;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().find(|line| UNREACHABLE.iter().any(|sign| line.contains(sign)));
    skip(why.unwrap_or_else(|| panic!("the packages cannot be installed:\n{said}")));
    false
}

/// Runs a command to its end and returns what it printed.
///
/// # Panics
///
/// If it fails.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the command can be started");
    let Output { status, stdout, stderr } = output;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(status.success(), "{command:?}:\n{}{}", text(&stdout), text(&stderr));
    text(&stdout)
}

/// Runs a command that has to fail, and returns its standard error.
///
/// # Panics
///
/// If it succeeds.
#[track_caller]
pub fn refused(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the command can be started");
    assert!(!output.status.success(), "{command:?} succeeds");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns `PATH` with a directory before the others.
#[must_use]
pub fn path_with(directory: &Path) -> OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.to_owned()).chain(std::env::split_paths(&others));
    std::env::join_paths(all).unwrap_or_else(|_| OsStr::new("").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        assert_eq!(version("Python 3.11.7\n"), Some((3, 11)));
        assert_eq!(version("v20.20.2\n"), Some((20, 20)));
        assert_eq!(version("Debian clang version 14.0.6\nTarget: x"), Some((14, 0)));
        assert_eq!(version("nothing"), None);
    }
}
