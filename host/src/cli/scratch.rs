//! A directory for what a verb writes down and runs, gone when it is dropped.

use std::io;
use tempfile::{Builder, TempDir};

/// One that nobody else can reach, whatever the mask of this process: what lies in it is compiled and run.
pub(super) fn directory() -> io::Result<TempDir> {
    let mut builder = Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}
