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
    /// The user in another run. It decides nothing here: what it names is protected, also if that
    /// run would refuse the file.
    OtherRun,
}

/// Returns true if there is no file of this name. A link that leads nowhere is an error, here and
/// when the file is read: the settings behind it are unknown, which is not the same as none.
pub(super) fn is_missing(path: &Path) -> io::Result<bool> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match path.symlink_metadata() {
        Ok(_) => return Ok(false),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
        Err(error) => return Err(error),
    }
    let is_broken = |directory: &&Path| directory.is_symlink() && !directory.exists();
    match path.ancestors().skip(1).find(is_broken) {
        Some(link) => Err(io::Error::other(format!("the link {} leads nowhere", link.display()))),
        None => Ok(true),
    }
}

/// Reads a file.
pub(super) fn read(path: &Path, of: FileOf) -> io::Result<String> {
    let file = match of {
        FileOf::User => open_deciding_file(path)?,
        FileOf::Project => open_regular(path, LastLink::Keep)?,
        FileOf::OtherRun => open_regular(path, LastLink::Follow)?,
    };
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    check_length(&text).map_err(io::Error::other)?;
    Ok(text)
}

/// Refuses a text that is longer than a file may be: one that is read, or is to be written.
pub(super) fn check_length(text: &str) -> Result<(), String> {
    match text.len() as u64 {
        0..=MAX_FILE => Ok(()),
        _ => Err("it is larger than 1 MiB".to_owned()),
    }
}
