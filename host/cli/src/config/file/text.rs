//! The text of a configuration file.

use palisade::internal::{open_deciding_file, open_regular};
use palisade::workspace::LastLink;
use std::io::{self, Read as _};
use std::path::Path;

/// Maximum size of a configuration file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The owner of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOf {
    /// The user, whose file decides about rights.
    User,
    /// A project, whose file only tightens. It is untrusted, and error messages quote its lines, so
    /// that it cannot be a symlink.
    Project,
}

/// Reads a file.
pub(super) fn read(path: &Path, of: FileOf) -> io::Result<String> {
    let file = match of {
        FileOf::User => open_deciding_file(path)?,
        FileOf::Project => open_regular(path, LastLink::Keep)?,
    };
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        Err(io::Error::other("it is larger than 1 MiB"))
    } else {
        Ok(text)
    }
}
