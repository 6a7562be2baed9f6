//! Exit codes, all in one place.

use crate::config::ConfigError;
use crate::host::BuildError;
use crate::mcp::ServeError;
use crate::plugins::WatchError;
use crate::tool::ErrorClass;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// What the program's exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// It worked.
    Ok = 0,
    /// Something failed inside.
    Internal = 1,
    /// The command line, the workspace, a plugin directory or a configuration is wrong.
    Usage = 2,
    /// No such tool.
    NotFound = 3,
    /// The policy, a person, or the sandbox said no.
    Denied = 4,
    /// The tool failed.
    Tool = 5,
    /// The input or the plugin is invalid.
    Invalid = 6,
    /// A limit or a timeout.
    Limit = 7,
    /// Interrupted.
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
            ErrorClass::PermissionDenied | ErrorClass::UserDenied | ErrorClass::ConfirmationTimeout => Self::Denied,
            ErrorClass::ExecutionError => Self::Tool,
            ErrorClass::ValidationError => Self::Invalid,
            ErrorClass::Timeout | ErrorClass::ResourceExhausted => Self::Limit,
            ErrorClass::Cancelled => Self::Interrupted,
        }
    }
}

/// A verb that could not do its work: what to say, and the code to leave with.
#[derive(Debug)]
pub(super) struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// The command line or something that it names is wrong.
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, error: anyhow::anyhow!("{message}") }
    }

    /// With a code of its own.
    pub(super) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{message}") }
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
        // The message has its cause in it already.
        Self::new(exit, error)
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

/// Output that cannot be written, as on a full disk.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self { exit: Exit::Internal, error: anyhow::Error::from(error).context("cannot write the output") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_stops_reading_leaves_the_code_of_a_limit_and_says_why() {
        let failure = Failure::from(ServeError::Stalled);
        assert_eq!(failure.exit(), Exit::Limit);
        assert!(failure.to_string().contains("has read nothing of what waits for it for 30 s"), "{failure}");
    }
}
