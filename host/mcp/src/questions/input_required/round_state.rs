//! The state of a round: the part that travels through the client, and the part of this round.

use crate::protocol::lifecycle::Dialect;
use crate::questions::confirmation_form::{SessionAnswer, confirmation_form};
use crate::questions::plugin_question::convert_answer;
use crate::questions::programs::ProgramId;
use palisade::confirm::ConfirmationRequest;
use palisade::internal::CallAnswer;
use palisade::sandbox::limits;
use palisade::tool::Digest;
use palisade::{AskFailure, AskRequest};
use rmcp::model::{ElicitRequest, InputRequest, InputRequests, InputResponses};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The state that travels through the client. It is valid for one code: a change of the code starts
/// over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct CarriedState {
    pub(super) round: usize,
    pub(super) code: Option<Digest>,
    pub(super) confirmation: Confirmation,
    pub(super) asks: Vec<Ask>,
    /// The calls of a program, which stay in the server.
    pub(super) program: Option<ProgramId>,
    /// The questions about the calls of a program, by the numbers of the calls.
    pub(super) nested: BTreeMap<usize, Nested>,
}

impl CarriedState {
    /// Creates the state of a call of this code before its first round.
    pub(super) fn of_code(code: Option<Digest>) -> Self {
        Self { code, ..Self::default() }
    }
}

/// The state of the confirmation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Confirmation {
    #[default]
    Unasked,
    CallAnswer,
    Allowed,
}

/// The question about a call of a program: the digest of the code that the call runs, and the
/// answer.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Nested {
    pub(super) code: Option<Digest>,
    pub(super) confirmation: Confirmation,
}

/// One `ask` of the plugin: the digest of its questions, and the answers so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) digest: String,
    pub(super) answers: BTreeMap<String, Value>,
}

/// The state of a round.
pub(super) struct RoundState {
    pub(super) carried: CarriedState,
    pub(super) responses: InputResponses,
    /// The number of `ask` calls in this round.
    pub(super) asks: usize,
    pub(super) open: InputRequests,
}

impl RoundState {
    pub(super) fn new(carried: CarriedState, responses: InputResponses) -> Self {
        Self { carried, responses, asks: 0, open: InputRequests::new() }
    }

    /// Puts a confirmation to the client with the end of the call.
    pub(super) fn put(&mut self, key: String, request: &ConfirmationRequest) -> CallAnswer {
        let form = confirmation_form(request, SessionAnswer::Withheld, Dialect::Current);
        let Some(form) = form else { return CallAnswer::Unavailable };
        self.open.insert(key, InputRequest::Elicitation(ElicitRequest::new(form)));
        CallAnswer::Deferred
    }

    /// Returns the index of this `ask` in the call. A repeated one must match the previous round.
    pub(super) fn enter(&mut self, requests: &[AskRequest]) -> Result<usize, AskFailure> {
        let index = self.asks;
        let digest = digest(requests);
        self.asks += 1;
        match self.carried.asks.get(index) {
            Some(ask) if ask.digest != digest => Err(AskFailure::Changed),
            Some(_) => Ok(index),
            None => {
                self.carried.asks.push(Ask { digest, answers: BTreeMap::new() });
                Ok(index)
            }
        }
    }

    /// Stores the client's answers to these questions, each once. An invalid answer is dropped, so
    /// that the question is put again.
    pub(super) fn take_answers(
        &mut self,
        index: usize,
        requests: &[AskRequest],
    ) -> Result<(), AskFailure> {
        for request in requests {
            let response = self.responses.remove(&request.key);
            let valid = response.filter(|value| convert_answer(request, value).is_some());
            if let Some(value) = valid {
                self.carried.asks[index].answers.entry(request.key.clone()).or_insert(value);
            }
        }
        let answers = self.carried.asks.iter().flat_map(|ask| ask.answers.values());
        let bytes: usize = answers.map(|value| value.to_string().len()).sum();
        if bytes > limits::ASKED {
            return Err(AskFailure::Invalid(format!(
                "the answers of a call may have {} bytes together",
                limits::ASKED
            )));
        }
        Ok(())
    }
}

fn digest(requests: &[AskRequest]) -> String {
    let all: Vec<_> = requests.iter().map(|it| (&it.key, it.kind, &it.params)).collect();
    Digest::of(&serde_json::to_vec(&all).unwrap_or_default()).to_string()
}
