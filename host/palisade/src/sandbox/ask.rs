//! The `palisade:tool/client` interface: requests of a running guest to the client of its call. An
//! error that ends the call is a trap, so the guest cannot catch it.

use super::bindings::asking::palisade::tool::client::{AskError, Host, Kind, Request};
use super::limits;
use super::state::State;
use crate::execution::clock::CallClock;
use crate::execution::{AskFailure, Client, NoClient, ToolContext};
use crate::tool::json::{JsonBounds, parse_object};
use crate::tool::text::elided;
use crate::tool::{AskKind, AskKinds, AskRequest, ErrorKind, ExecutionKind};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The bounds of one request's parameters.
const PARAMS: JsonBounds = JsonBounds { bytes: limits::ASKED, depth: 32, members: 10_000 };
/// The maximum length of a key, in bytes.
const KEY: usize = 64;
/// The prefix of keys that are reserved for the host.
const RESERVED: &str = "palisade.";

/// The client of a call, and how often and how much the guest may still ask.
pub(super) struct Asking {
    client: Arc<dyn Client>,
    clock: Arc<CallClock>,
    asks_left: usize,
    bytes_left: usize,
}

/// The reason why a request to the client ends the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Parted {
    #[error("the answer comes with another call")]
    Later,
    #[error("the client lacks what the tool needs")]
    Lacks(Vec<AskKind>),
    #[error("it asks differently than before")]
    Changed,
}

impl From<Parted> for ErrorKind {
    fn from(parted: Parted) -> Self {
        match parted {
            Parted::Later => Self::AwaitsClient,
            Parted::Lacks(kinds) => Self::ClientLacks { kinds },
            Parted::Changed => Self::execution(
                ExecutionKind::Contract,
                "the plugin broke its contract: run again with the answers, it asked something else than before",
            ),
        }
    }
}

impl Asking {
    /// Creates the state of a call, with the client and the clock of its context.
    pub(super) fn of(context: &ToolContext) -> Self {
        Self::with(context.client().clone(), context.clock().clone())
    }

    /// Creates the state for the description of a plugin, where there is no client.
    pub(super) fn nobody() -> Self {
        Self::with(Arc::new(NoClient), CallClock::new(Duration::ZERO))
    }

    fn with(client: Arc<dyn Client>, clock: Arc<CallClock>) -> Self {
        Self { client, clock, asks_left: limits::ASKS, bytes_left: limits::ASKED }
    }

    /// Sends the requests and waits for the answers. The call's clock is paused meanwhile.
    async fn put(&mut self, requests: Vec<AskRequest>) -> Result<Vec<String>, AskFailure> {
        let count = requests.len();
        let held = self.clock.hold();
        let answers = tokio::time::timeout(limits::ASK_TIMEOUT, self.client.ask(requests)).await;
        drop(held);
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
}

impl Host for State {
    fn supported(&mut self) -> Vec<Kind> {
        self.asking.client.kinds().into_iter().map(Kind::from).collect()
    }

    fn need(&mut self, kinds: Vec<Kind>) -> wasmtime::Result<()> {
        let needed: AskKinds = kinds.into_iter().map(AskKind::from).collect();
        let lacks: Vec<_> = needed.difference(&self.asking.client.kinds()).copied().collect();
        if lacks.is_empty() { Ok(()) } else { Err(Parted::Lacks(lacks).into()) }
    }

    async fn ask(
        &mut self,
        requests: Vec<Request>,
    ) -> wasmtime::Result<Result<Vec<String>, AskError>> {
        let requests = match self.checked(requests) {
            Ok(requests) => requests,
            Err(refused) => return Ok(Err(refused)),
        };
        let answered = self.asking.put(requests).await;
        // The pause of the clock has moved the deadline.
        self.deadline = self.asking.clock.deadline().into_std();
        match answered {
            Ok(answers) => Ok(Ok(answers)),
            Err(AskFailure::Later) => Err(Parted::Later.into()),
            Err(AskFailure::Changed) => Err(Parted::Changed.into()),
            Err(AskFailure::Unavailable) => Ok(Err(AskError::Unavailable)),
            Err(AskFailure::Unsupported(kind)) => Ok(Err(AskError::Unsupported(kind.into()))),
            Err(AskFailure::Declined) => Ok(Err(AskError::Declined)),
            Err(AskFailure::Invalid(reason)) => {
                Ok(Err(AskError::Invalid(elided(&reason, limits::MESSAGE))))
            }
        }
    }
}

impl State {
    /// Checks the requests: against the bounds, the kinds that the client supports, and the number
    /// of requests left. Rejects all requests after the guest's first change to a file.
    fn checked(&mut self, requests: Vec<Request>) -> Result<Vec<AskRequest>, AskError> {
        let kinds = self.asking.client.kinds();
        if kinds.is_empty() {
            return Err(AskError::Unavailable);
        }
        // Some clients restart the call from its beginning, which would repeat its changes.
        if self.filesystem.has_changed_anything() {
            return Err(AskError::TooLate);
        }
        let left = self.asking.asks_left.checked_sub(1);
        self.asking.asks_left = left.ok_or_else(|| {
            AskError::Invalid(format!("a call asks at most {} times", limits::ASKS))
        })?;
        let requests = within_bounds(requests).map_err(AskError::Invalid)?;
        match requests.iter().find(|request| !kinds.contains(&request.kind)) {
            Some(request) => Err(AskError::Unsupported(request.kind.into())),
            None => Ok(requests),
        }
    }
}

fn within_bounds(requests: Vec<Request>) -> Result<Vec<AskRequest>, String> {
    if requests.is_empty() || requests.len() > limits::ASKED_AT_ONCE {
        return Err(format!(
            "{} requests; 1 to {} are asked at once",
            requests.len(),
            limits::ASKED_AT_ONCE
        ));
    }
    if requests.iter().map(|request| request.params.len()).sum::<usize>() > limits::ASKED {
        return Err(format!(
            "the parameters of all requests may have {} bytes together",
            limits::ASKED
        ));
    }
    let mut keys = HashSet::new();
    if let Some(twice) = requests.iter().find(|request| !keys.insert(request.key.as_str())) {
        return Err(format!("two requests have the key `{}`", elided(&twice.key, KEY)));
    }
    requests.into_iter().map(request).collect()
}

fn request(Request { key, kind, params }: Request) -> Result<AskRequest, String> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    if key.is_empty() || key.len() > KEY || key.starts_with(RESERVED) || !key.chars().all(is_plain)
    {
        let key = elided(&key, KEY);
        return Err(format!(
            "the key `{key}` is not 1 to {KEY} of `A-Z a-z 0-9 _ . -`, or begins with `{RESERVED}`"
        ));
    }
    match parse_object(&params, PARAMS) {
        Ok(params) => Ok(AskRequest { key, kind: kind.into(), params }),
        Err(error) => Err(format!("the parameters of `{key}` are no JSON object: {error}")),
    }
}

impl From<Kind> for AskKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Elicitation => Self::Elicitation,
            Kind::Sampling => Self::Sampling,
            Kind::Roots => Self::Roots,
        }
    }
}

impl From<AskKind> for Kind {
    fn from(kind: AskKind) -> Self {
        match kind {
            AskKind::Elicitation => Self::Elicitation,
            AskKind::Sampling => Self::Sampling,
            AskKind::Roots => Self::Roots,
        }
    }
}
