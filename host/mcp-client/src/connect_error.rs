//! The error of a connection to a server.

use palisade::ErrorKind;
use std::time::Duration;

/// The time for starting a server and for its list of tools. A server may be fetched from a
/// registry when it is started for the first time.
pub(crate) const START_TIME: Duration = Duration::from_secs(120);

/// The error of a server that cannot be reached, or that has ended.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program cannot be started or confined.
    #[error("{0}")]
    NotStarted(ErrorKind),
    /// It did not answer in time.
    #[error("it did not answer within {} s", START_TIME.as_secs())]
    TimedOut,
    /// It ended, or the connection to it did.
    #[error("{0}")]
    Ended(String),
    /// Its process ended, after it had written errors.
    #[error("{end}, and wrote: {errors}")]
    Crashed {
        /// How it ended.
        end: String,
        /// The last lines that it wrote to standard error, without frames of a stack.
        errors: String,
    },
    /// It offers more than is accepted.
    #[error("{0}")]
    TooMuch(&'static str),
}

impl ConnectError {
    /// Returns the error for the caller of a tool. The errors that a server has written go to the
    /// log alone: they may hold secrets, and paths of the machine.
    pub(crate) fn for_caller(&self) -> String {
        match self {
            Self::Crashed { end, .. } => {
                tracing::warn!("an MCP server has ended: {self}");
                format!("{end}; the log has its last errors")
            }
            other => other.to_string(),
        }
    }
}
