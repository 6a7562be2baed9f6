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

/// Opens a file that decides about rights, such as approvals: a file that
/// [`open_unreplaceable_file`] opens, and that only this user or root can change, under this name
/// alone.
///
/// # Errors
///
/// As those of [`open_unreplaceable_file`], or if the file belongs to another user, others can
/// write to it, or it has another name; the text names the remedy.
#[cfg(unix)]
pub fn open_deciding_file(path: &std::path::Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::MetadataExt as _;
    let file = open_unreplaceable_file(path)?;
    let meta = file.metadata()?;
    let mode = meta.mode() & 0o7777;
    let is_own = [0, rustix::process::geteuid().as_raw()].contains(&meta.uid());
    let fault = if !is_own {
        "it belongs to another user, who can change it; name a file of your own".to_owned()
    } else if mode & 0o022 != 0 {
        let shown = path.display();
        format!("others can change it (mode {mode:03o}); `chmod go-w {shown}` forbids that")
    } else if meta.nlink() > 1 && (meta.uid() != 0 || rustix::process::geteuid().is_root()) {
        // A link count of zero is that of a file that was replaced a moment ago. A file of root has
        // no name that this user, or a tool with this user's rights, could write to.
        "it has another name, a hard link, under which it can be changed; put a copy in its place"
            .to_owned()
    } else {
        return Ok(file);
    };
    Err(io::Error::other(fault))
}

/// Opens the file whose lock keeps two processes of this user from changing the files of a folder
/// at once; it is made if it is missing. No other user can open it, and so prevent a change.
///
/// # Errors
///
/// If it cannot be opened, or is a link.
#[cfg(unix)]
pub fn open_turn_file(folder: &std::path::Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let name = format!("{}lock", palisade_wasi_fs::PRIVATE_PREFIX);
    options.custom_flags(flags.bits().cast_signed()).open(folder.join(name))
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
