//! The toolchains of other languages on this machine, and their packages below the target
//! directory.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use palisade_tests::skip;

/// Messages of package managers about a registry that cannot be reached.
const UNREACHABLE: [&str; 10] = [
    "from versions: none",
    "ConnectionError",
    "timed out",
    "name resolution",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ENOTFOUND",
    "ETIMEDOUT",
    "ENETUNREACH",
];

/// Returns a path of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

/// Returns a directory for the packages of a language, which later runs use again.
pub(crate) fn packages(language: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdks").join(language)
}

/// Returns true if a program runs and prints at least this version, as its first two numbers.
pub(crate) fn has(program: &str, least: (u32, u32)) -> bool {
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
pub(crate) fn install(directory: &Path, ingredients: &str, command: &mut Command) -> bool {
    let stamp = directory.join("stamp");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == ingredients) {
        return true;
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    if output.status.success() {
        fs::write(stamp, ingredients).unwrap();
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
pub(crate) fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
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
pub(crate) fn refused(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success(), "{command:?} succeeds");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns `PATH` with a directory before the others.
pub(crate) fn path_with(directory: &Path) -> std::ffi::OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.to_owned()).chain(std::env::split_paths(&others));
    std::env::join_paths(all).unwrap_or_else(|_| OsStr::new("").to_owned())
}

#[test]
fn versions_are_read_from_what_programs_print() {
    assert_eq!(version("Python 3.11.7\n"), Some((3, 11)));
    assert_eq!(version("v20.20.2\n"), Some((20, 20)));
    assert_eq!(version("Debian clang version 14.0.6\nTarget: x"), Some((14, 0)));
    assert_eq!(version("nothing"), None);
}
