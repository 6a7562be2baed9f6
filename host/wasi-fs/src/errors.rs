//! The errors of file operations, and their representation for guests.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{FsError, FsResult, StreamError};

use super::protected_paths::Forbidden;
use super::quotas::Exhausted;
use super::usage::Usage;

/// The reason why an operation was refused. The guest sees not-permitted for each of them. The
/// texts call the mounted directory the workspace, and the guest a tool.
///
/// The enum is exhaustive, so that a host maps each refusal to an error of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no mount.
    #[error("the tool has no workspace, and so no files; data in its input is accepted")]
    Unmounted,
    /// The path is absolute, or leads out of its starting directory by `..` or by a link.
    #[error("the path leads out of the workspace; only paths inside it are accepted")]
    Escape,
    /// The workspace is mounted read-only.
    #[error("the workspace is read-only for this tool; only reading is accepted")]
    ReadOnly,
    /// The file is neither regular nor a directory: opening it could block or have effects.
    #[error(
        "the path names a pipe, socket or device; only regular files and directories are accepted"
    )]
    SpecialFile,
    /// The file lies on a file system of the kernel, which belongs to the machine.
    #[error(
        "the path leads into a file system of the kernel, such as /proc; only files and directories of ordinary ones are accepted"
    )]
    Kernel,
    /// The guest tried to create a symbolic link, which programs outside the sandbox would follow.
    #[error("symbolic links cannot be created from the sandbox; a copy of the file is accepted")]
    Symlink,
    /// The path lies in a write-protected tree.
    #[error(
        "`{0}` is protected, and nothing is changed there; that is for you to do, or for the program that it belongs to"
    )]
    Protected(Arc<str>),
    /// The path lies in a tree of the host that tools may not even read.
    #[error("`{0}` is the host's own and not for tools; leave it alone")]
    Hidden(Arc<str>),
    /// The path rules of the operator leave the path out. It may exist or not.
    #[error("the path rules leave `{0}` out; only paths that they permit are accepted")]
    Excluded(Arc<str>),
    /// The file has several hard links, and the path rules may leave one of its names out.
    #[error(
        "the file has more than one name (hard links), and the path rules may leave another one out; a copy of the file is accepted"
    )]
    Aliased,
    /// The path lies in a bare git repository.
    #[error(
        "the directory is a git repository (it holds `HEAD`), and nothing is changed there; that is for you to do, or for git"
    )]
    Bare,
    /// The new name would turn a directory into a git repository, whose settings git would execute.
    #[error(
        "`{name}` must not exist in the same directory as `{beside}`: git would take the directory for a repository and run what its settings say; another name is accepted"
    )]
    Repository {
        /// The name that the guest tried to create.
        name: Box<str>,
        /// The existing name beside it.
        beside: Box<str>,
    },
    /// The directory has too many entries to find out whether the new name would turn it into a git
    /// repository.
    #[error(
        "a name that a git repository has (`HEAD`, `objects`, `refs`, `commondir`) is not created in a directory with more than {entries} entries; another name or another directory is accepted"
    )]
    Crowded {
        /// The most entries of a directory that gets such a name.
        entries: usize,
    },
    /// The file has several hard links, and the others may lie outside the workspace.
    #[error(
        "the file has more than one name (hard links), so that a change would show elsewhere; put a new file in its place"
    )]
    HardLinked,
    /// The guest tried to create a hard link.
    #[error("hard links cannot be created from the sandbox; a copy of the file is accepted")]
    HardLink,
    /// The open file has moved away from its checked name, and its new name cannot be found.
    #[error("the open file was moved while it was looked at; open it again by its name")]
    Moved,
}

impl Refusal {
    /// Returns the protected tree that caused the refusal, if any.
    pub fn tree(&self) -> Option<&Arc<str>> {
        match self {
            Self::Protected(tree) | Self::Hidden(tree) => Some(tree),
            _ => None,
        }
    }
}

/// The reason why a file operation failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The operation is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A quota is exhausted.
    #[error("the call may not use more: {0}")]
    Exhausted(#[from] Exhausted),
    /// The operation is invalid in itself.
    #[error("{0}")]
    Code(ErrorCode),
    /// The operating system returned an error.
    #[error(transparent)]
    Os(io::Error),
    /// The guest used a handle that it does not own, or owns too many. This ends the call.
    #[error("{0}")]
    Trap(wasmtime::Error),
}

impl From<Forbidden> for Fault {
    fn from(forbidden: Forbidden) -> Self {
        match forbidden {
            Forbidden::Protected(tree) => Refusal::Protected(tree).into(),
            Forbidden::Hidden(tree) => Refusal::Hidden(tree).into(),
            Forbidden::Excluded(path) => Refusal::Excluded(path).into(),
            Forbidden::Bare => Refusal::Bare.into(),
            Forbidden::Repository { name, beside } => Refusal::Repository { name, beside }.into(),
            Forbidden::Crowded { entries } => Refusal::Crowded { entries }.into(),
            Forbidden::Outside => Refusal::Escape.into(),
            Forbidden::Unknown(error) => error.into(),
        }
    }
}

impl From<ResourceTableError> for Fault {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            // All files that the process may open are open, in whichever calls.
            Some(Errno::MFILE) => Exhausted::OpenFiles(process_files()).into(),
            _ => Self::Os(error),
        }
    }
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

/// Returns the number of files that the process may open.
fn process_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

impl From<ErrorCode> for Fault {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl Usage {
    /// Converts an outcome for the bindings, and records a refusal or an exhausted quota.
    pub(super) fn answer<T>(&self, outcome: Result<T, Fault>) -> FsResult<T> {
        outcome.map_err(|fault| {
            self.remember(&fault);
            match code(fault) {
                Ok(code) => code.into(),
                Err(error) => FsError::trap(error),
            }
        })
    }

    /// Does the same for an operation on a stream.
    pub(super) fn answer_stream<T>(&self, outcome: Result<T, Fault>) -> Result<T, StreamError> {
        outcome.map_err(|fault| {
            self.remember(&fault);
            match code(fault) {
                Ok(code) => StreamError::LastOperationFailed(wasmtime::Error::new(code)),
                Err(error) => StreamError::Trap(error),
            }
        })
    }

    fn remember(&self, fault: &Fault) {
        match fault {
            Fault::Refused(refusal) => self.note_refusal(refusal.clone()),
            Fault::Exhausted(which) => self.note_exhausted(*which),
            Fault::Os(error) if has_no_room(error) => self.note_full(),
            Fault::Code(_) | Fault::Os(_) | Fault::Trap(_) => {}
        }
    }
}

fn has_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the code that the guest sees. The inner error is a trap.
fn code(fault: Fault) -> wasmtime::Result<ErrorCode> {
    match fault {
        Fault::Refused(_) => Ok(ErrorCode::NotPermitted),
        Fault::Exhausted(_) => Ok(ErrorCode::Quota),
        Fault::Code(code) => Ok(code),
        Fault::Os(error) => Ok(os_code(&error)),
        Fault::Trap(error) => Err(error),
    }
}

/// Maps an error by the table of wasmtime-wasi, extended by the codes that it lacks.
fn os_code(error: &io::Error) -> ErrorCode {
    missing_code(error).unwrap_or_else(|| ErrorCode::from(error))
}

fn missing_code(error: &io::Error) -> Option<ErrorCode> {
    match Errno::from_io_error(error)? {
        Errno::XDEV => Some(ErrorCode::CrossDevice),
        Errno::ROFS => Some(ErrorCode::ReadOnly),
        Errno::DQUOT => Some(ErrorCode::Quota),
        Errno::TXTBSY => Some(ErrorCode::TextFileBusy),
        Errno::NXIO => Some(ErrorCode::NoSuchDevice),
        Errno::NODEV => Some(ErrorCode::NoDevice),
        Errno::AGAIN => Some(ErrorCode::WouldBlock),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_without_a_free_descriptor_is_a_quota() {
        let fault = Fault::from(Errno::MFILE);
        assert!(matches!(fault, Fault::Exhausted(Exhausted::OpenFiles(1..))), "{fault:?}");
        assert_eq!(code(fault).ok(), Some(ErrorCode::Quota));
    }

    #[test]
    fn errno_codes_missing_in_wasmtime_are_mapped() {
        for (errno, code) in [
            (Errno::XDEV, ErrorCode::CrossDevice),
            (Errno::ROFS, ErrorCode::ReadOnly),
            (Errno::DQUOT, ErrorCode::Quota),
            (Errno::TXTBSY, ErrorCode::TextFileBusy),
            (Errno::NXIO, ErrorCode::NoSuchDevice),
            (Errno::NODEV, ErrorCode::NoDevice),
            (Errno::AGAIN, ErrorCode::WouldBlock),
            (Errno::NOENT, ErrorCode::NoEntry),
        ] {
            assert_eq!(os_code(&errno.into()), code, "{errno:?}");
        }
    }
}
