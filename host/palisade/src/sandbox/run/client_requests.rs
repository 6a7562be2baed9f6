//! The requests of a guest to the client of its call. A request that ends the call is a trap, so
//! the guest cannot catch it.

use crate::execution::clock::CallClock;
use crate::execution::{AskFailure, Client, NestedExit, NoClient, ToolContext};
use crate::sandbox::limits;
use crate::tool::{AskKind, AskKinds, AskRequest, ErrorKind, ExecutionKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The client of a call, and how often and how much the guest may still ask.
pub(crate) struct ClientRequests {
    client: Arc<dyn Client>,
    clock: Arc<CallClock>,
    asks_left: usize,
    bytes_left: usize,
}

/// The reason why a request to the client ends the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClientExit {
    #[error(
        "the call ended so that its client can be asked; the answer comes with a repeated call"
    )]
    Deferred,
    #[error("the client lacks what the tool needs")]
    Unsupported(Vec<AskKind>),
    #[error("the repeated call sent other requests to the client than the first")]
    Changed,
    #[error("the repeated call made other calls of tools than the first")]
    OtherCall,
}

impl From<NestedExit> for ClientExit {
    fn from(exit: NestedExit) -> Self {
        match exit {
            NestedExit::AwaitsClient => Self::Deferred,
            NestedExit::OtherCall => Self::OtherCall,
        }
    }
}

impl From<ClientExit> for ErrorKind {
    fn from(exit: ClientExit) -> Self {
        match exit {
            ClientExit::Deferred => Self::AwaitsClient,
            ClientExit::Unsupported(kinds) => Self::ClientLacks { kinds },
            ClientExit::Changed => Self::execution(
                ExecutionKind::Contract,
                "the plugin broke its contract: run again with the answers, it asked something else than before",
            ),
            ClientExit::OtherCall => Self::execution(
                ExecutionKind::Contract,
                "the program made other calls than before its question, so it was ended; none of its calls ran twice",
            ),
        }
    }
}

impl ClientRequests {
    /// Creates the state of a call, with the client and the clock of its context.
    pub(crate) fn from_context(context: &ToolContext) -> Self {
        Self::with_client(context.client().clone(), context.clock().clone())
    }

    /// Creates the state for the description of a plugin, where there is no client.
    pub(crate) fn without_client() -> Self {
        Self::with_client(Arc::new(NoClient), CallClock::new(Duration::ZERO))
    }

    fn with_client(client: Arc<dyn Client>, clock: Arc<CallClock>) -> Self {
        Self { client, clock, asks_left: limits::ASKS, bytes_left: limits::ASKED }
    }

    /// Sends the requests and waits for the answers. The call's clock is paused meanwhile.
    pub(super) async fn send(
        &mut self,
        requests: Vec<AskRequest>,
    ) -> Result<Vec<String>, AskFailure> {
        let count = requests.len();
        let pause = self.clock.pause();
        let answers = tokio::time::timeout(limits::ASK_TIMEOUT, self.client.ask(requests)).await;
        drop(pause);
        let answers = answers.map_err(|_| AskFailure::Unavailable)??;
        let bytes: usize = answers.iter().map(String::len).sum();
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            AskFailure::Invalid(format!(
                "the answers of a call may have {} bytes together",
                limits::ASKED
            ))
        })?;
        if answers.len() == count { Ok(answers) } else { Err(AskFailure::Unavailable) }
    }

    /// Returns the kinds of request that the client supports.
    pub(super) fn kinds(&self) -> AskKinds {
        self.client.kinds()
    }

    /// Returns the deadline of the call, which a wait for the client moves.
    pub(super) fn deadline(&self) -> Instant {
        self.clock.deadline().into_std()
    }

    /// Counts one more set of requests. Fails if the call may send no more.
    pub(super) fn count(&mut self) -> Result<(), String> {
        let left = self.asks_left.checked_sub(1);
        self.asks_left =
            left.ok_or_else(|| format!("a call asks at most {} times", limits::ASKS))?;
        Ok(())
    }
}
