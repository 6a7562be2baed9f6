//! Directories of the user's own, which no other user can reach or replace.

mod walk;

pub(crate) use walk::open_private;
use walk::open_unreplaceable;

use std::io;

/// The treatment of a directory that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is created, with its parents.
    Made,
    /// It is an error.
    Refused,
}

/// The reason why a directory is not private, or cannot be opened.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// The system refused an operation.
    System(io::Error),
    /// Another user could reach or replace the directory, or it holds files of another kind. The
    /// text names the remedy.
    Unsafe(String),
    /// The directory is inside the workspace.
    Inside,
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<Obstacle> for io::Error {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::System(error) => error,
            Obstacle::Unsafe(reason) => Self::other(reason),
            Obstacle::Inside => Self::other("it lies in the workspace"),
        }
    }
}

/// Opens a directory that only this user can reach or replace.
///
/// # Errors
///
/// If another user can reach the directory, or can replace it or one of its parents; the text names
/// the remedy.
#[cfg(unix)]
pub fn open_private_directory(
    path: &std::path::Path,
    missing: Missing,
) -> io::Result<std::os::fd::OwnedFd> {
    open_private(path, missing, None).map(|(handle, _)| handle).map_err(io::Error::from)
}

/// Opens a regular file that no other user can replace, without blocking: a pipe or a device is
/// never opened. Its content may be readable by others.
///
/// # Errors
///
/// If the file is not regular, or another user can replace it, a link on the path or one of its
/// parents; the text names the remedy.
#[cfg(unix)]
pub fn open_unreplaceable_file(path: &std::path::Path) -> io::Result<std::fs::File> {
    open_unreplaceable(path).map_err(io::Error::from)
}

/// Checks that only this user can reach a directory. The error names the fault and the remedy.
fn check(owner: u32, mode: rustix::fs::RawMode, me: u32) -> Result<(), String> {
    if owner != me {
        Err("it belongs to another user; name a directory of your own".to_owned())
    } else if mode & 0o077 != 0 {
        // A world-writable or sticky directory is shared on purpose, and other users depend on its
        // mode.
        let advice = if mode & 0o1002 == 0 {
            "`chmod 700` makes it private"
        } else {
            "name a directory of its own"
        };
        Err(format!("others can reach it (mode {:03o}); {advice}", mode & 0o7777))
    } else {
        Ok(())
    }
}
