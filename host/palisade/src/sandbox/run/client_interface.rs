//! The `palisade:tool/client` interface: requests of a running guest to the client of its call.

use super::client_requests::ClientExit;
use super::state::State;
use crate::execution::AskFailure;
use crate::sandbox::bindings::asking::palisade::tool::client::{AskError, Host, Kind, Request};
use crate::sandbox::limits;
use crate::tool::json::{JsonBounds, parse_object};
use crate::tool::text::elided;
use crate::tool::{AskKind, AskKinds, AskRequest};
use std::collections::HashSet;

/// The bounds of one request's parameters.
const PARAMS: JsonBounds = JsonBounds { bytes: limits::ASKED, depth: 32, members: 10_000 };
/// The maximum length of a key, in bytes.
const KEY: usize = 64;
/// The prefix of keys that are reserved for the host.
const RESERVED: &str = "palisade.";

impl Host for State {
    fn supported(&mut self) -> Vec<Kind> {
        self.client_requests.kinds().into_iter().map(Kind::from).collect()
    }

    fn need(&mut self, kinds: Vec<Kind>) -> wasmtime::Result<()> {
        let needed: AskKinds = kinds.into_iter().map(AskKind::from).collect();
        let missing: Vec<_> = needed.difference(&self.client_requests.kinds()).copied().collect();
        if missing.is_empty() { Ok(()) } else { Err(ClientExit::Unsupported(missing).into()) }
    }

    async fn ask(
        &mut self,
        requests: Vec<Request>,
    ) -> wasmtime::Result<Result<Vec<String>, AskError>> {
        let requests = match self.check_requests(requests) {
            Ok(requests) => requests,
            Err(refused) => return Ok(Err(refused)),
        };
        let answered = self.client_requests.send(requests).await;
        // The pause of the clock has moved the deadline.
        self.deadline = self.client_requests.deadline();
        match answered {
            Ok(answers) => Ok(Ok(answers)),
            Err(AskFailure::Later) => Err(ClientExit::Deferred.into()),
            Err(AskFailure::Changed) => Err(ClientExit::Changed.into()),
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
    fn check_requests(&mut self, requests: Vec<Request>) -> Result<Vec<AskRequest>, AskError> {
        let kinds = self.client_requests.kinds();
        if kinds.is_empty() {
            return Err(AskError::Unavailable);
        }
        // Some clients restart the call from its beginning, which would repeat its changes.
        if self.filesystem.has_changed_anything() {
            return Err(AskError::TooLate);
        }
        self.client_requests.count().map_err(AskError::Invalid)?;
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
