//! The client of a call, which a running tool can send requests to.

use super::box_future::BoxFuture;
use crate::tool::{AskKind, AskKinds, AskRequest};

/// The client of a call. [`NoClient`] is the default.
pub trait Client: Send + Sync {
    /// Returns the supported kinds of request, which do not change during a call.
    fn kinds(&self) -> AskKinds;

    /// Sends requests and returns one JSON text per request, in order. It is never called with a
    /// kind that [`kinds`](Self::kinds) lacks. The call's clock is paused meanwhile; dropping the
    /// future withdraws the requests. Each response must be a JSON object, and the response to a
    /// form must match the form's schema: the host passes it to the tool without another check.
    ///
    /// # Errors
    ///
    /// [`AskFailure`]; its variants say which of them end the call.
    fn ask<'a>(
        &'a self,
        requests: Vec<AskRequest>,
    ) -> BoxFuture<'a, Result<Vec<String>, AskFailure>>;
}

/// The reason why a request has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskFailure {
    /// There is no client to ask.
    #[error("nobody can be asked")]
    Unavailable,
    /// The client does not support this kind of request.
    #[error("the client cannot be asked for {0}")]
    Unsupported(AskKind),
    /// The user or the client declined to answer.
    #[error("the client declines to answer")]
    Declined,
    /// The requests cannot be sent or the responses cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// The request is sent with the end of this call, which is made again with the response. The
    /// tool never sees this variant: its call ends as
    /// [`ErrorKind::AwaitsClient`](crate::tool::ErrorKind::AwaitsClient).
    #[error(
        "the call ended so that its client can be asked; the answer comes with a repeated call"
    )]
    Later,
    /// The call was made again with responses but now sends other requests. The tool never sees
    /// this variant: its call ends.
    #[error("the repeated call sent other requests to the client than the first")]
    Changed,
}

/// The absence of a client: every request fails.
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
