//! Asks stateless clients by multi-round calls: a call ends with its questions, and the client
//! repeats it with the answers.
//!
//! The answers so far travel through the client in a signed state, so that each round runs the call
//! from the beginning up to the next question. A confirmation counts only with such a state. A
//! plugin's questions grant no rights, so that their answers are accepted from the first round on.

use super::confirmation_form::{SessionAnswer, confirmation_form, interpret};
use super::plugin_question::{convert_answer, input_request, may_confirm};
use super::signed_state::{StateError, StateSigner};
use crate::protocol::lifecycle::Dialect;
use crate::settings::ConfirmedBy;
use palisade::confirm::{Answer, ConfirmationRequest};
use palisade::internal::{CallAnswer, CallConfirmer};
use palisade::sandbox::limits;
use palisade::{AskFailure, BoxFuture, Client};
use palisade::{AskKinds, AskRequest, tool::Digest};
use rmcp::model::{
    ElicitRequest, ElicitResult, InputRequest, InputRequests, InputRequiredResult, InputResponses,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The key of the host's own question. Plugins cannot use the prefix `palisade.`.
const CONFIRM: &str = "palisade.confirm";
/// The maximum number of rounds of a call: enough for the confirmation and each `ask` of the
/// plugin, with some repetitions.
const MAX_ROUNDS: u8 = 8;

/// The call that a state is valid for: client, tool and input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Purpose {
    client: String,
    tool: String,
    input: String,
}

impl Purpose {
    /// Identifies a call of this tool with these arguments.
    pub(crate) fn new(client: &str, tool: &str, arguments: &Value) -> Self {
        // Computed even for calls that ask nothing, so that it must be cheap: BLAKE3, and no copy
        // of the serialized input.
        let mut digest = blake3::Hasher::new();
        let _ = serde_json::to_writer(&mut digest, arguments);
        let input = digest.finalize().to_hex().to_string();
        Self { client: client.to_owned(), tool: tool.to_owned(), input }
    }
}

/// The subject of the questions: the code that would run, and its plugin; and who may confirm it.
pub(crate) struct Subject {
    /// The digest of the code; `None` for a tool of the host itself.
    pub(crate) code: Option<Digest>,
    /// The name of the plugin.
    pub(crate) plugin: String,
    /// Who may answer the host's question.
    pub(crate) confirmed_by: ConfirmedBy,
}

/// The data of a round that the client sends.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundInput {
    /// The signed state of the previous round.
    pub(crate) state: Option<String>,
    /// The answers to the questions of the previous round.
    pub(crate) responses: InputResponses,
}

/// The reason why a round is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RoundError {
    /// The state is not valid.
    #[error(transparent)]
    State(#[from] StateError),
    /// The call had too many rounds.
    #[error(
        "the call has come back with questions {MAX_ROUNDS} times: make it again from the beginning"
    )]
    TooMany,
}

/// One round of a call.
pub(crate) struct Round {
    kinds: AskKinds,
    subject: Subject,
    start: Start,
    state: Mutex<RoundState>,
}

impl Round {
    /// Begins a round with the client's state, which can be used once.
    ///
    /// # Errors
    ///
    /// [`RoundError`] if the state is invalid, expired or used, or after too many rounds.
    pub(crate) fn begin(
        signer: &StateSigner,
        purpose: Option<&Purpose>,
        kinds: AskKinds,
        subject: Subject,
        input: RoundInput,
    ) -> Result<Self, RoundError> {
        let carried: Option<CarriedState> = input
            .state
            .zip(purpose)
            .map(|(text, purpose)| signer.verify(&purpose.client, &text, purpose))
            .transpose()?;
        let code = subject.code;
        let fresh = |responses| RoundState::new(CarriedState::of_code(code), responses);
        let mut start = Start::Fresh;
        let state = match carried {
            None => fresh(input.responses),
            Some(carried) if carried.round >= MAX_ROUNDS => return Err(RoundError::TooMany),
            // The answers were given for other code.
            Some(carried) if carried.code != code => fresh(InputResponses::new()),
            Some(carried) => {
                start = Start::Resumed(carried.asks.len());
                RoundState::new(carried, input.responses)
            }
        };
        Ok(Self { kinds, subject, start, state: Mutex::new(state) })
    }

    /// Returns the open questions with the state for the next round, which is valid for `lifetime`.
    /// `None` without open questions.
    pub(crate) fn input_required(
        &self,
        signer: &StateSigner,
        purpose: Purpose,
        lifetime: Duration,
    ) -> Option<InputRequiredResult> {
        let mut state = self.state();
        let open = Some(std::mem::take(&mut state.open)).filter(|open| !open.is_empty())?;
        state.carried.round += 1;
        let signed = signer.sign(purpose, &state.carried, lifetime)?;
        Some(InputRequiredResult::new(Some(open), Some(signed)))
    }

    fn state(&self) -> MutexGuard<'_, RoundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn confirm(&self, request: &ConfirmationRequest) -> CallAnswer {
        if !may_confirm(&self.kinds, self.subject.confirmed_by) {
            return CallAnswer::Unavailable;
        }
        let mut state = self.state();
        // The code changed during the call: neither a confirmation nor an answer counts for other
        // code.
        let is_same = state.carried.code == request.digest;
        if !is_same {
            let round = state.carried.round;
            state.carried = CarriedState { round, ..CarriedState::default() };
            state.responses.clear();
        }
        if is_same && state.carried.confirmation == Confirmation::Allowed {
            return CallAnswer::Answered(Answer::Allow);
        }
        let response = state.responses.remove(CONFIRM);
        if state.carried.confirmation == Confirmation::CallAnswer
            && let Some(result) =
                response.and_then(|value| serde_json::from_value::<ElicitResult>(value).ok())
        {
            let answer = interpret(&result, SessionAnswer::Withheld);
            if answer == Answer::Allow {
                state.carried.confirmation = Confirmation::Allowed;
            }
            return CallAnswer::Answered(answer);
        }
        let Some(form) = confirmation_form(request, SessionAnswer::Withheld, Dialect::Current)
        else {
            return CallAnswer::Unavailable;
        };
        state.carried.code = request.digest;
        state.carried.confirmation = Confirmation::CallAnswer;
        state.open.insert(CONFIRM.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)));
        CallAnswer::Deferred
    }

    fn answers(&self, requests: &[AskRequest]) -> Result<Vec<String>, AskFailure> {
        let questions = requests
            .iter()
            .map(|request| input_request(&self.subject.plugin, request, Dialect::Current));
        let questions = questions.collect::<Result<Vec<_>, _>>()?;
        let mut state = self.state();
        let index = state.enter(requests)?;
        // An answer counts for the open question only. In a first round no question was put yet, so
        // that any may be answered.
        let is_open = match self.start {
            Start::Fresh => true,
            Start::Resumed(asks) => index + 1 == asks,
        };
        if is_open {
            state.take_answers(index, requests)?;
        }
        let RoundState { carried, open, .. } = &mut *state;
        let answers = &carried.asks[index].answers;
        let missing = requests
            .iter()
            .zip(questions)
            .filter(|(request, _)| !answers.contains_key(&request.key));
        open.extend(missing.map(|(request, question)| (request.key.clone(), question)));
        if !open.is_empty() {
            return Err(AskFailure::Later);
        }
        let convert = |request: &AskRequest| convert_answer(request, answers.get(&request.key)?);
        let answers = requests.iter().map(|it| convert(it).unwrap_or(Err(AskFailure::Changed)));
        answers.collect()
    }
}

impl CallConfirmer for Round {
    fn ask<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, CallAnswer> {
        Box::pin(async move { self.confirm(request) })
    }
}

impl Client for Round {
    fn kinds(&self) -> AskKinds {
        self.kinds.clone()
    }

    fn ask<'a>(
        &'a self,
        requests: Vec<AskRequest>,
    ) -> BoxFuture<'a, Result<Vec<String>, AskFailure>> {
        Box::pin(async move { self.answers(&requests) })
    }
}

/// The start of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Without a state of this process.
    Fresh,
    /// With a state that has this many `ask` calls. The last one may still be unanswered.
    Resumed(usize),
}

/// The state that travels through the client. It is valid for one code: a change of the code starts
/// over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct CarriedState {
    round: u8,
    code: Option<Digest>,
    confirmation: Confirmation,
    asks: Vec<Ask>,
}

impl CarriedState {
    /// Creates the state of a call of this code before its first round.
    fn of_code(code: Option<Digest>) -> Self {
        Self { code, ..Self::default() }
    }
}

/// The state of the confirmation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Confirmation {
    #[default]
    Unasked,
    CallAnswer,
    Allowed,
}

/// One `ask` of the plugin: the digest of its questions, and the answers so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Ask {
    digest: String,
    answers: BTreeMap<String, Value>,
}

/// The state of a round.
struct RoundState {
    carried: CarriedState,
    responses: InputResponses,
    /// The number of `ask` calls in this round.
    asks: usize,
    open: InputRequests,
}

impl RoundState {
    fn new(carried: CarriedState, responses: InputResponses) -> Self {
        Self { carried, responses, asks: 0, open: InputRequests::new() }
    }

    /// Returns the index of this `ask` in the call. A repeated one must match the previous round.
    fn enter(&mut self, requests: &[AskRequest]) -> Result<usize, AskFailure> {
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
    fn take_answers(&mut self, index: usize, requests: &[AskRequest]) -> Result<(), AskFailure> {
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

#[cfg(test)]
mod tests;
