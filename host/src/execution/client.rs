//! Whoever made a call, as far as a running tool can ask them something.

use super::BoxFuture;
use crate::tool::{AskKind, AskKinds, AskRequest};

/// The client of a call. A tool that is given none meets [`NoClient`].
pub trait Client: Send + Sync {
    /// What it can be asked for. The same for the whole of a call.
    fn kinds(&self) -> AskKinds;

    /// Asks, and gives back one JSON text per request, in order. Never called with a kind that is not among [`kinds`](Self::kinds). The call's clock stands
    /// still meanwhile; dropping the future withdraws what was asked. What comes back is an object, and where a form was asked for, one that fits its schema:
    /// nobody looks at it again before the tool does.
    ///
    /// # Errors
    ///
    /// [`AskFailure`]; what of it ends the call is said there.
    fn ask<'a>(&'a self, requests: Vec<AskRequest>) -> BoxFuture<'a, Result<Vec<String>, AskFailure>>;
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskFailure {
    /// Nobody can be asked.
    #[error("nobody can be asked")]
    Unavailable,
    /// The client cannot be asked for this.
    #[error("the client cannot be asked for {0}")]
    Unsupported(AskKind),
    /// Whoever was asked does not want to answer.
    #[error("whoever was asked does not want to answer")]
    Declined,
    /// The questions cannot be asked, or the answers cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// The question goes out with the end of this call, which is made again with the answer. The tool never sees this: its call ends as
    /// [`ErrorKind::AwaitsClient`](crate::tool::ErrorKind::AwaitsClient).
    #[error("the answer comes with another call")]
    Later,
    /// The call was made again with answers, and asks something else now. The tool never sees this: its call ends.
    #[error("it asks differently than before")]
    Changed,
}

/// Nobody who could be asked anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoClient;

impl Client for NoClient {
    fn kinds(&self) -> AskKinds {
        AskKinds::new()
    }

    fn ask<'a>(&'a self, _: Vec<AskRequest>) -> BoxFuture<'a, Result<Vec<String>, AskFailure>> {
        Box::pin(async { Err(AskFailure::Unavailable) })
    }
}
