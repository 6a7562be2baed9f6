//! Syntax of guest paths, and joining of real names.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::errors::{Fault, Refusal};

/// The maximum length of a path in bytes: the limit of Linux for one system call.
const MAX_PATH: usize = 4_095;

/// The name of a directory within itself.
pub(super) const HERE: &str = ".";

/// A relative path without NUL bytes, not empty, split before its last component.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuestPath<'p> {
    /// The path as the guest wrote it.
    pub(super) whole: &'p str,
    /// All components before the last one; empty if there is only one.
    pub(super) parent: &'p str,
    /// The last component, or `.` if the path ends in `.` or `..`: then `parent` is the whole path.
    pub(super) name: &'p str,
    /// Whether the path ends in a slash, and so must name a directory.
    pub(super) slash: bool,
}

impl<'p> GuestPath<'p> {
    /// Parses a path, with every check that needs no file system.
    pub(super) fn parse(path: &'p str) -> Result<Self, Fault> {
        if path.is_empty() {
            return Err(ErrorCode::NoEntry.into());
        }
        if path.len() > MAX_PATH {
            return Err(ErrorCode::NameTooLong.into());
        }
        if path.contains('\0') {
            return Err(ErrorCode::Invalid.into());
        }
        if path.starts_with('/') {
            return Err(Refusal::Escape.into());
        }
        Ok(Self::split(path))
    }

    fn split(path: &'p str) -> Self {
        let trimmed = path.trim_end_matches('/');
        let slash = trimmed.len() < path.len();
        let (parent, name) = trimmed.rsplit_once('/').unwrap_or(("", trimmed));
        if name == "." || name == ".." {
            return Self { whole: path, parent: trimmed, name: HERE, slash };
        }
        Self { whole: path, parent, name, slash }
    }
}

/// Joins two real names relative to the mount. Resolves `.` and `..` in `rest` lexically, which is
/// correct only without symbolic links.
pub(super) fn join(base: &str, rest: &str) -> String {
    let mut joined = String::with_capacity(base.len().saturating_add(rest.len()).saturating_add(1));
    joined.push_str(base);
    append(&mut joined, rest);
    joined
}

/// Appends to a real name in place, with the same rules.
pub(super) fn append(name: &mut String, rest: &str) {
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => pop(name),
            part => {
                if !name.is_empty() {
                    name.push('/');
                }
                name.push_str(part);
            }
        }
    }
}

/// Removes the last component. Does nothing to the empty name of the mount.
pub(super) fn pop(name: &mut String) {
    let end = name.rfind('/').unwrap_or(0);
    name.truncate(end);
}
