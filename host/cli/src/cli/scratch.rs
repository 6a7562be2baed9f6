//! A temporary directory for files of a subcommand, removed on drop.

use palisade::internal::PRIVATE_PREFIX;
use std::io;
use tempfile::{Builder, TempDir};

/// Creates a directory that only its user can access, whatever the umask, and no tool of another
/// run: files in it are compiled and run.
pub(super) fn directory() -> io::Result<TempDir> {
    let mut builder = Builder::new();
    builder.prefix(PRIVATE_PREFIX).permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}
