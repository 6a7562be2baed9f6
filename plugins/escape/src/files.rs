//! Attempts on files.

use std::{fs, io};

/// The first of the files that can be read.
pub(crate) fn read(paths: &[&str]) -> io::Result<String> {
    first(paths, |path| fs::read_to_string(path))
}

/// The first of the files that can be written.
pub(crate) fn write(paths: &[&str]) -> io::Result<String> {
    first(paths, |path| fs::write(path, "the plugin was here\n").map(|()| format!("wrote {path}")))
}

/// A second name for what a link leads to.
pub(crate) fn link(original: &str, name: &str) -> io::Result<String> {
    fs::hard_link(original, name)?;
    fs::read_to_string(name)
}

/// Changes a file, and says nothing of it.
pub(crate) fn change_in_secret(path: &str) -> io::Result<String> {
    fs::write(path, "changed\n").map(|()| "a change that its list of changes does not show".to_owned())
}

/// What the first success brought, or the last error.
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
