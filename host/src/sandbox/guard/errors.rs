//! What can go wrong in a file operation, and how a guest sees it.

use std::io;
use std::sync::Arc;

#[cfg(unix)]
use rustix::io::Errno;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{FsError, FsResult, StreamError};

use super::ledger::{Exhausted, Ledger};
use crate::tool::{Advice, PermissionReason};
use crate::workspace::{Forbidden, HardLinks, Reading};

/// Why this layer refused an operation. The guest sees not-permitted for each of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// The path is absolute, or climbs or leads out of the directory it started from.
    #[error("the path leads out of the workspace; only paths inside it are accepted")]
    Escape,
    /// The workspace is mounted read-only.
    #[error("the workspace is read-only for this tool; only reading is accepted")]
    ReadOnly,
    /// Neither a regular file nor a directory: opening it could block or have effects.
    #[error("the path names a pipe, socket or device; only regular files and directories are accepted")]
    SpecialFile,
    /// It lies on a file system of the kernel, whose files are the machine's.
    #[error(
        "the path leads into a file system of the kernel, such as /proc; only files and directories of ordinary ones are accepted"
    )]
    Kernel,
    /// The guest wanted to create a symbolic link, which programs outside the sandbox would follow.
    #[error("symbolic links cannot be created from the sandbox; a copy of the file is accepted")]
    Symlink,
    /// It lies in a tree where nothing is changed.
    #[error(
        "`{0}` is protected, and nothing is changed there; that is for you to do, or for the program that it belongs to"
    )]
    Protected(Arc<str>),
    /// It lies in a tree of the host, which is not even read.
    #[error("`{0}` is the host's own and not for tools; leave it alone")]
    Hidden(Arc<str>),
    /// It lies in a repository that has no working tree around it.
    #[error(
        "the directory is a git repository (it holds `HEAD`), and nothing is changed there; that is for you to do, or for git"
    )]
    Bare,
    /// The guest wanted to make a repository of a directory, whose settings git would run.
    #[error(
        "`{name}` cannot be given to anything beside `{beside}`: git would take the directory for a repository and run what its settings say; another name is accepted"
    )]
    Repository {
        /// The name that was to be given.
        name: Box<str>,
        /// The name that is there.
        beside: Box<str>,
    },
    /// The file has several names, and the others may lie outside.
    #[error(
        "the file has more than one name (hard links), so that a change would show elsewhere; put a new file in its place"
    )]
    HardLinked,
    /// The guest wanted to give a file a second name.
    #[error("hard links cannot be created from the sandbox; a copy of the file is accepted")]
    HardLink,
    /// The open file is found under another name than the one that was judged, and not at all under that.
    #[error("the open file was moved while it was looked at; open it again by its name")]
    Moved,
}

impl Refusal {
    /// What an operator can do about it.
    pub(crate) fn advice(&self) -> Option<Advice> {
        match self {
            Self::HardLinked => Some(HardLinks::advice()),
            Self::Hidden(_) => Some(Reading::advice()),
            _ => None,
        }
    }

    /// What stands in a result as the reason.
    pub(crate) fn reason(&self) -> PermissionReason {
        match self {
            Self::Protected(_) | Self::Hidden(_) | Self::Bare | Self::Repository { .. } => PermissionReason::Protected,
            Self::Escape
            | Self::ReadOnly
            | Self::SpecialFile
            | Self::Kernel
            | Self::Symlink
            | Self::HardLinked
            | Self::HardLink
            | Self::Moved => PermissionReason::Sandbox,
        }
    }

    /// The protected tree that was met, if that is why.
    pub(crate) fn tree(&self) -> Option<&Arc<str>> {
        match self {
            Self::Protected(tree) | Self::Hidden(tree) => Some(tree),
            _ => None,
        }
    }
}

/// Why a file operation failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// This layer forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A quota of the call is used up.
    #[error("the call may not use more: {0}")]
    Exhausted(#[from] Exhausted),
    /// The operation makes no sense as asked.
    #[error("{0}")]
    Code(ErrorCode),
    /// The operating system said no.
    #[error(transparent)]
    Os(#[from] io::Error),
    /// The guest used a handle that it does not hold, or holds too many. This ends the call.
    #[error("{0}")]
    Trap(wasmtime::Error),
}

impl From<Forbidden> for Fault {
    fn from(forbidden: Forbidden) -> Self {
        match forbidden {
            Forbidden::Protected(tree) => Refusal::Protected(tree).into(),
            Forbidden::Hidden(tree) => Refusal::Hidden(tree).into(),
            Forbidden::Bare => Refusal::Bare.into(),
            Forbidden::Repository { name, beside } => Refusal::Repository { name, beside }.into(),
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

#[cfg(unix)]
impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Os(errno.into())
    }
}

impl From<ErrorCode> for Fault {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl Fault {
    /// What the stock layer meant. It says not-permitted of paths that lead out, and of little else.
    #[cfg(any(not(unix), test))]
    pub(super) fn from_stock(error: FsError) -> Self {
        match error.downcast() {
            Ok(ErrorCode::NotPermitted) => Self::Refused(Refusal::Escape),
            Ok(code) => Self::Code(code),
            Err(trap) => Self::Trap(trap),
        }
    }
}

impl Ledger {
    /// Turns an outcome into what the binding wants, and remembers a refusal and a spent quota.
    pub(super) fn answer<T>(&self, outcome: Result<T, Fault>) -> FsResult<T> {
        outcome.map_err(|fault| {
            self.remember(&fault);
            match code(fault) {
                Ok(code) => code.into(),
                Err(error) => FsError::trap(error),
            }
        })
    }

    /// The same for an operation on a stream.
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
            Fault::Code(_) | Fault::Os(_) | Fault::Trap(_) => {}
        }
    }
}

/// The code that the guest sees. The inner error is a trap.
fn code(fault: Fault) -> wasmtime::Result<ErrorCode> {
    match fault {
        Fault::Refused(_) => Ok(ErrorCode::NotPermitted),
        Fault::Exhausted(_) => Ok(ErrorCode::Quota),
        Fault::Code(code) => Ok(code),
        Fault::Os(error) => Ok(os_code(&error)),
        Fault::Trap(error) => Err(error),
    }
}

/// wasmtime-wasi's own table, and what is missing from it.
fn os_code(error: &io::Error) -> ErrorCode {
    missing_code(error).unwrap_or_else(|| ErrorCode::from(error))
}

#[cfg(unix)]
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

#[cfg(not(unix))]
fn missing_code(_error: &io::Error) -> Option<ErrorCode> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_of_wasmtime_leaves_out_is_told_by_its_own_code() {
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
