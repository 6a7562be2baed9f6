//! The error type of the file API.

use super::super::{Forbidden, PathRefused, resolve};
use crate::tool::text::elided;
use crate::tool::{ErrorKind, ExecutionKind, PermissionReason};
use crate::workspace::advice;
use std::io;
use std::sync::Arc;

/// An error of a file operation. Each message names the path, shortened, and the accepted
/// alternative.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path leads out of the workspace by `..`, as an absolute path elsewhere, or by a symbolic
    /// link.
    #[error(
        "the path `{0}` escapes the workspace boundary; give a path relative to the workspace, or an absolute one inside it, without links that lead out"
    )]
    Escapes(String),
    /// The path is not valid.
    #[error("the path `{path}` is not usable: {reason}")]
    Unusable {
        /// The path.
        path: String,
        /// The reason.
        reason: &'static str,
    },
    /// The path lies in a write-protected tree: a repository, a directory of plugins, or the host's
    /// own files.
    #[error(
        "the path `{path}` lies in `{tree}`, which is protected: nothing is changed there; that is for you to do, or for the program that it belongs to"
    )]
    Protected {
        /// The path.
        path: String,
        /// The tree.
        tree: Arc<str>,
    },
    /// The path lies in a tree of the host that tools may not even read.
    #[error(
        "the path `{path}` lies in `{tree}`, which is the host's own and not for tools; leave it alone"
    )]
    Hidden {
        /// The path.
        path: String,
        /// The tree.
        tree: Arc<str>,
    },
    /// The path rules of the operator leave the path out. It may exist or not.
    #[error("the path rules leave `{0}` out; only paths that they permit are accepted")]
    Excluded(String),
    /// The file has several hard links, and the path rules may leave another of its names out.
    #[error(
        "`{0}` has more than one name (hard links), and the path rules may leave another one out; a copy of the file is accepted"
    )]
    Aliased(String),
    /// The path lies in a bare git repository.
    #[error(
        "the path `{0}` lies in a git repository, and nothing is changed there; that is for you to do, or for git"
    )]
    Bare(String),
    /// The directory has too many entries to find out whether the new name would turn it into a git
    /// repository.
    #[error(
        "the path `{path}` cannot be made: a name that a git repository has (`HEAD`, `objects`, `refs`, `commondir`) is not created in a directory with more than {entries} entries; take another name or another directory"
    )]
    Crowded {
        /// The path.
        path: String,
        /// The most entries of a directory that gets such a name.
        entries: usize,
    },
    /// The new name would turn its directory into a git repository.
    #[error(
        "the path `{path}` cannot be made: beside `{beside}`, git would take the directory for a repository and run what its settings say; take another name"
    )]
    Repository {
        /// The path.
        path: String,
        /// The existing name beside it.
        beside: Box<str>,
    },
    /// The class of the tool grants no access to files.
    #[error(
        "the path `{0}` is not for this tool: its class gives it no files; a tool that reads files is of class `read`"
    )]
    Unseen(String),
    /// The class of the tool grants read access only.
    #[error(
        "the path `{0}` cannot be changed by this tool, whose class is `read`; a tool that changes files is of class `write`"
    )]
    ReadOnly(String),
    /// The file has several hard links, and the others may lie outside of the workspace.
    #[error(
        "`{0}` has more than one name (hard links), so that a change would show elsewhere; replace the file as a whole"
    )]
    HardLinked(String),
    /// The file does not exist.
    #[error("`{0}` does not exist; list a directory to see what does")]
    NotFound(String),
    /// The text to replace does not occur exactly once.
    #[error("the text to replace occurs {count} times in `{path}` and not once; {}", advice(*.count))]
    NotUnique {
        /// The file.
        path: String,
        /// The number of occurrences.
        count: usize,
    },
    /// A file read as text is not UTF-8.
    #[error("`{path}` is not text: byte {at} is not UTF-8; read its bytes instead")]
    NotText {
        /// The file.
        path: String,
        /// The offset of the first invalid byte.
        at: usize,
    },
    /// The file is, or would become, larger than the limit.
    #[error(
        "`{path}` has or would have {bytes} bytes; at most {limit} are read or written at once"
    )]
    TooLarge {
        /// The file.
        path: String,
        /// The size in bytes, as far as known.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file is not a regular file.
    #[error("`{path}` is {what}; only regular files are accepted")]
    NotRegular {
        /// The path.
        path: String,
        /// The actual file type.
        what: &'static str,
    },
    /// The path leads into a file system of the kernel, whose files belong to the machine.
    #[error(
        "the path `{0}` leads into a file system of the kernel, such as /proc; only files of ordinary ones are accepted"
    )]
    Kernel(String),
    /// The path is not a directory.
    #[error("`{0}` is not a directory; only directories are listed")]
    NotADirectory(String),
    /// The directory has too many entries to list.
    #[error(
        "`{path}` has more than {limit} entries, which is the most that are listed; list a directory inside it"
    )]
    TooManyEntries {
        /// The directory.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// The operating system returned an error.
    #[error("cannot {verb} `{path}`: {source}")]
    Io {
        /// The attempted operation.
        verb: &'static str,
        /// The path.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

impl FileError {
    /// Converts an error of the system: separates escapes found at the moment of use, and missing
    /// files.
    pub(super) fn io(verb: &'static str, path: &str, source: io::Error) -> Self {
        let path = elided(path, 256);
        if resolve::led_out(&source) {
            return Self::Escapes(path);
        }
        if source.kind() == io::ErrorKind::NotFound {
            return Self::NotFound(path);
        }
        Self::Io { verb, path, source }
    }

    /// Converts a refusal by the rules of the workspace.
    pub(crate) fn forbidden(path: &str, why: Forbidden) -> Self {
        let path = elided(path, 256);
        match why {
            Forbidden::Protected(tree) => Self::Protected { path, tree },
            Forbidden::Hidden(tree) => Self::Hidden { path, tree },
            // The path as the caller wrote it: the real one may be no business of the tool.
            Forbidden::Excluded(_) => Self::Excluded(path),
            Forbidden::Bare => Self::Bare(path),
            Forbidden::Repository { beside, .. } => Self::Repository { path, beside },
            Forbidden::Crowded { entries } => Self::Crowded { path, entries },
            Forbidden::Outside => Self::Escapes(path),
            Forbidden::Unknown(source) => Self::Io { verb: "reach", path, source },
        }
    }

    pub(super) fn kernel(path: &str) -> Self {
        Self::Kernel(elided(path, 256))
    }

    pub(super) fn not_regular(path: &str, what: &'static str) -> Self {
        Self::NotRegular { path: elided(path, 256), what }
    }
}

impl From<PathRefused> for FileError {
    fn from(refused: PathRefused) -> Self {
        match refused {
            PathRefused::Escapes(path) => Self::Escapes(path),
            PathRefused::Unusable { path, reason } => Self::Unusable { path, reason },
        }
    }
}

impl From<FileError> for ErrorKind {
    fn from(error: FileError) -> Self {
        let message = error.to_string();
        let kind = match error {
            FileError::Escapes(_) => return Self::denied(PermissionReason::Workspace, message),
            FileError::Excluded(ref path) => {
                let advice = advice::on_path_rules(path);
                return Self::denied_with(PermissionReason::PathRules, message, advice);
            }
            FileError::Aliased(_) => {
                let advice = advice::on_hard_links();
                return Self::denied_with(PermissionReason::PathRules, message, advice);
            }
            FileError::HardLinked(_) => {
                return Self::denied_with(
                    PermissionReason::Workspace,
                    message,
                    advice::on_hard_links(),
                );
            }
            FileError::Protected { ref tree, .. } | FileError::Hidden { ref tree, .. } => {
                let advice = matches!(error, FileError::Hidden { .. }).then(advice::on_hidden);
                let tree = Some(tree.clone());
                return Self::PermissionDenied {
                    reason: PermissionReason::Protected,
                    message,
                    advice,
                    tree,
                };
            }
            FileError::Bare(_) | FileError::Repository { .. } | FileError::Crowded { .. } => {
                return Self::denied(PermissionReason::Protected, message);
            }
            FileError::Unseen(_) | FileError::ReadOnly(_) | FileError::Kernel(_) => {
                return Self::denied(PermissionReason::Sandbox, message);
            }
            FileError::Unusable { .. } | FileError::NotUnique { .. } => ExecutionKind::InvalidInput,
            FileError::NotFound(_) => ExecutionKind::NotFound,
            FileError::Io { ref source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                ExecutionKind::PermissionDenied
            }
            _ => ExecutionKind::Failed,
        };
        Self::Execution { kind, message, field: None, advice: None, source: Some(Arc::new(error)) }
    }
}

fn advice(count: usize) -> &'static str {
    if count == 0 {
        "give a text that stands in the file, exactly as it stands there"
    } else {
        "give more of what stands around the one that is meant"
    }
}
