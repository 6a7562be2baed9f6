//! Paths as a guest writes them, and names as they really are.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::errors::{Fault, Refusal};

/// The longest path that is looked at, in bytes: Linux accepts no longer one in a single system call.
const MAX_PATH: usize = 4_095;

/// The name of a directory in itself.
pub(super) const HERE: &str = ".";

/// A path that is relative, not empty and free of NUL bytes, split before its last component.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuestPath<'p> {
    /// The path as it was written.
    pub(super) whole: &'p str,
    /// Everything before the last component; empty if there is only one.
    pub(super) parent: &'p str,
    /// The last component, or `.` where the path ends in `.` or `..`: then `parent` is the whole path.
    pub(super) name: &'p str,
    /// Whether the path ends in a slash, and so can only mean a directory.
    pub(super) slash: bool,
}

impl<'p> GuestPath<'p> {
    /// Checks what can be seen without the file system.
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

/// Joins real names, both relative to the mount, resolving `.` and `..` in `rest` by the letter: right wherever no symbolic link was followed.
pub(super) fn join(base: &str, rest: &str) -> String {
    let mut joined = String::with_capacity(base.len().saturating_add(rest.len()).saturating_add(1));
    joined.push_str(base);
    append(&mut joined, rest);
    joined
}

/// The same, onto a name that there is already.
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

/// Removes the last component; does nothing to the mount itself.
pub(super) fn pop(name: &mut String) {
    let end = name.rfind('/').unwrap_or(0);
    name.truncate(end);
}
