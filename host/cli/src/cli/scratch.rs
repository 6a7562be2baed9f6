//! A temporary directory for files of a subcommand, removed on drop.

use std::io;
use tempfile::{Builder, TempDir};

/// Creates a directory that only its user can access, whatever the umask: files in it are compiled
/// and run.
pub(super) fn directory() -> io::Result<TempDir> {
    let mut builder = Builder::new();
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}
