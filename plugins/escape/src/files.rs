//! Attacks on files.

use std::{fs, io};

/// Reads the first readable file.
pub(crate) fn read(paths: &[&str]) -> io::Result<String> {
    first(paths, |path| fs::read_to_string(path))
}

/// Writes the first writable file.
pub(crate) fn write(paths: &[&str]) -> io::Result<String> {
    first(paths, |path| fs::write(path, "the plugin was here\n").map(|()| format!("wrote {path}")))
}

/// Creates a hard link to the target of a symlink.
pub(crate) fn link(original: &str, name: &str) -> io::Result<String> {
    fs::hard_link(original, name)?;
    fs::read_to_string(name)
}

/// Changes a file without reporting the change.
pub(crate) fn change_in_secret(path: &str) -> io::Result<String> {
    fs::write(path, "changed\n")
        .map(|()| "a change that its list of changes does not show".to_owned())
}

/// Returns the first success, or the last error.
fn first(paths: &[&str], try_it: impl Fn(&str) -> io::Result<String>) -> io::Result<String> {
    let mut told = io::Error::other("no path was tried");
    for path in paths {
        match try_it(path) {
            Ok(got) => return Ok(got),
            Err(error) => told = error,
        }
    }
    Err(told)
}
