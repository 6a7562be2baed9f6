//! Creates or truncates the file for events without following a symlink in the workspace.
//!
//! The workspace is untrusted: a symlink in any component of the path could redirect the events
//! over another file of the user.

#[cfg(unix)]
mod walk;

use crate::workspace::Workspace;
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens the file for events, which may be a named pipe. Never blocks: a pipe without a reader is
/// refused. Opens in append mode, so that truncation by another process leaves no gap.
///
/// # Errors
///
/// If the file cannot be opened, or if the path goes through a symbolic link in the workspace.
#[cfg(unix)]
pub(super) fn create(path: &Path, workspace: &Workspace) -> io::Result<File> {
    use rustix::fs::{fcntl_getfl, fcntl_setfl};
    let file = File::from(walk::open(path, workspace)?);
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    // From here on writes may block: the writer has a thread of its own.
    fcntl_setfl(&file, fcntl_getfl(&file)? - rustix::fs::OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(not(unix))]
pub(super) fn create(path: &Path, workspace: &Workspace) -> io::Result<File> {
    let absolute = std::path::absolute(path)?;
    let is_planted = |at: &Path| {
        let is_inside = at.parent().and_then(|above| above.canonicalize().ok());
        is_inside.is_some_and(|above| above.starts_with(workspace.root()))
            && at.symlink_metadata().is_ok_and(|meta| meta.is_symlink())
    };
    match absolute.ancestors().find(|at| is_planted(at)) {
        Some(link) => Err(planted(link)),
        None => File::create(path),
    }
}

fn planted(link: &Path) -> io::Error {
    let link = crate::tool::text::elided(&link.to_string_lossy(), 128);
    io::Error::other(format!("`{link}` is a symbolic link in the workspace, which is not followed here"))
}
