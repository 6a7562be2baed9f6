//! The exit codes of the program.

use crate::config::ConfigError;
use palisade::BuildError;
use palisade::ErrorClass;
use palisade::internal::is_thread_limit;
use palisade::plugins::{DirectoryError, LoadError, WatchError};
use palisade_mcp::ServeError;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// An exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Success.
    Ok = 0,
    /// An internal error.
    Internal = 1,
    /// The command line, the workspace, a plugin directory or a configuration is wrong.
    Usage = 2,
    /// There is no such tool, call or journal.
    NotFound = 3,
    /// The policy, a person or the sandbox refused the call.
    Denied = 4,
    /// The tool failed.
    Tool = 5,
    /// The input or the plugin is invalid.
    Invalid = 6,
    /// A limit or a timeout was reached.
    Limit = 7,
    /// The program was interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<ErrorClass> for Exit {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::NotFound => Self::NotFound,
            ErrorClass::PermissionDenied
            | ErrorClass::UserDenied
            | ErrorClass::ConfirmationTimeout => Self::Denied,
            ErrorClass::ExecutionError => Self::Tool,
            ErrorClass::ValidationError => Self::Invalid,
            ErrorClass::Timeout | ErrorClass::ResourceExhausted => Self::Limit,
            ErrorClass::Cancelled => Self::Interrupted,
        }
    }
}

/// A failed subcommand: its error message and its exit code.
#[derive(Debug)]
pub(super) struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// Returns a usage error: the command line or a file that it names is wrong.
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, error: anyhow::anyhow!("{message}") }
    }

    /// Returns a failure with the given exit code.
    pub(super) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{message}") }
    }

    /// Returns the failure to start a thread for this work.
    pub(super) fn no_thread(work: &str, error: &io::Error) -> Self {
        match is_thread_limit(error) {
            true => Self::new(
                Exit::Limit,
                format_args!(
                    "{work}: the system starts no more threads ({error}); end other programs of \
                     this user, or let the user run more processes (`ulimit -u`)"
                ),
            ),
            false => Self::new(Exit::Internal, format_args!("{work}: {error}")),
        }
    }

    pub(super) fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let exit = match &error {
            BuildError::Engine(_) => Exit::Internal,
            BuildError::Workspace(error) if error.is_unanswered() => Exit::Limit,
            _ => Exit::Usage,
        };
        // The message already includes the source of the error, which `{:#}` would repeat.
        Self::new(exit, format_args!("{error}{}", remedy(&error)))
    }
}

/// Returns the end of the sentence that says with which option or setting of this program the
/// cause is removed.
fn remedy(error: &BuildError) -> &'static str {
    match error {
        BuildError::Workspace(error) if error.is_unanswered() => "; see whether it is there",
        BuildError::Workspace(_) => "; give an existing directory with --workspace",
        BuildError::Load(LoadError::Directory(DirectoryError::File { .. })) => ", with --plugins",
        BuildError::Load(LoadError::Directory(_)) => {
            "; give an existing directory with --plugins, PALISADE_PLUGINS or `plugins.directories`; `palisade config show` says which file named it"
        }
        BuildError::CacheInWorkspace { .. } => {
            "; --workspace names another workspace, and PALISADE_CACHE another cache, or `off`"
        }
        _ => "",
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let exit = match &error {
            ServeError::Stalled => Exit::Limit,
            _ => Exit::Internal,
        };
        Self::new(exit, error)
    }
}

impl From<WatchError> for Failure {
    fn from(error: WatchError) -> Self {
        Self::new(Exit::Internal, error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

/// An I/O error means that the output could not be written, for example on a full disk.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self {
            exit: Exit::Internal,
            error: anyhow::Error::from(error).context("cannot write the output"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalled_client_exits_with_limit_and_reason() {
        let failure = Failure::from(ServeError::Stalled);
        assert_eq!(failure.exit(), Exit::Limit);
        assert!(
            failure.to_string().contains("has read none of its pending output for 30 s"),
            "{failure}"
        );
    }
}
