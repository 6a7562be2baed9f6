//! The errors of the session manager.

use crate::messages::in_flight::AdmissionError;
use palisade::tool::budget::Exhausted;
use rmcp::transport::streamable_http_server::session::local::{EventIdParseError, SessionError};

/// The reason why a session rejects a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SessionRejection {
    /// The session does not exist, or belongs to another caller.
    #[error("there is no such session, or it has ended: initialize again")]
    Gone,
    /// Too many sessions of the caller are in use.
    #[error(
        "no more sessions of this caller are accepted, at most 64 at once: try again later, and end \
         those that are not needed with DELETE"
    )]
    Full,
    /// The request is not admitted.
    #[error(transparent)]
    NotAdmitted(#[from] AdmissionError),
}

/// An error of the session manager.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManagerError {
    /// The session rejects the message.
    #[error(transparent)]
    Rejected(#[from] SessionRejection),
    /// The session of `rmcp` fails.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The id of the last event is malformed.
    #[error(transparent)]
    Event(#[from] EventIdParseError),
    /// There is no memory for the messages that a stream repeats.
    #[error("the messages cannot be repeated: {0}")]
    NoMemory(#[from] Exhausted),
    /// A stream was requested for a message that is no request.
    #[error("only a request has an answer to listen to")]
    NoRequest,
}
