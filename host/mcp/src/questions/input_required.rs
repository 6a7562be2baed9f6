//! Asks stateless clients by multi-round calls: a call ends with its questions, and the client
//! repeats it with the answers.
//!
//! The answers so far travel through the client in a signed state, so that each round runs the call
//! from the beginning up to the next question. A confirmation counts only with such a state. A
//! plugin's questions grant no rights, so that their answers are accepted from the first round on.
//!
//! The calls that a program has made stay in the server: a round takes their results from there, so
//! that none of them runs twice.

mod round_state;

use super::confirmation_form::{SessionAnswer, interpret};
use super::plugin_question::{convert_answer, input_request, may_confirm};
use super::programs::ProgramPlaces;
use super::signed_state::{StateError, StateSigner};
use crate::protocol::lifecycle::Dialect;
use crate::settings::ConfirmedBy;
use palisade::confirm::{Answer, ConfirmationRequest};
use palisade::internal::{AnswerTime, CallAnswer, CallConfirmer, NESTED_CALLS, ProgramRecord};
use palisade::{AskFailure, BoxFuture, Client};
use palisade::{AskKinds, AskRequest, tool::Digest};
use rmcp::model::{ElicitResult, InputRequiredResult, InputResponses};
use round_state::{CarriedState, Confirmation, Nested, RoundState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The key of the host's own question. Plugins cannot use the prefix `palisade.`.
const CONFIRM: &str = "palisade.confirm";
/// The maximum number of rounds of a call: enough for the confirmation and each `ask` of the
/// plugin, with some repetitions.
const MAX_ROUNDS: usize = 8;

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
    /// The parties that may answer the host's question.
    pub(crate) confirmed_by: ConfirmedBy,
    /// The places for programs that wait, for a tool that calls others.
    pub(crate) programs: Option<ProgramPlaces>,
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
    #[error("the call has come back with questions {0} times: make it again from the beginning")]
    TooMany(usize),
    /// The question has no state that the client can carry.
    #[error("the question cannot be put")]
    Unasked,
    /// The calls that a program has made are not known any more, or its tool has changed.
    #[error(
        "the program cannot go on: what it has done so far is no longer known. Look at what it has changed before you make the call again"
    )]
    Lost,
}

/// One round of a call.
pub(crate) struct Round {
    kinds: AskKinds,
    subject: Subject,
    start: Start,
    /// The calls so far, of a tool that calls others.
    record: Option<Arc<ProgramRecord>>,
    state: Mutex<RoundState>,
}

impl Round {
    /// Begins a round with the client's state, which can be used once.
    ///
    /// # Errors
    ///
    /// [`RoundError`] if the state is invalid, expired or used, after too many rounds, and for a
    /// program whose calls are not known any more.
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
        let record = program_record(&subject, carried.as_ref())?;
        let rounds = MAX_ROUNDS + record.as_ref().map_or(0, |_| NESTED_CALLS);
        let fresh = |responses| RoundState::new(CarriedState::of_code(code), responses);
        let mut start = Start::Fresh;
        let state = match carried {
            None => fresh(input.responses),
            Some(carried) if carried.round >= rounds => {
                return Err(RoundError::TooMany(rounds));
            }
            // The answers were given for other code.
            Some(carried) if carried.code != code => fresh(InputResponses::new()),
            Some(carried) => {
                start = Start::Resumed(carried.asks.len());
                RoundState::new(carried, input.responses)
            }
        };
        Ok(Self { kinds, subject, start, record, state: Mutex::new(state) })
    }

    /// Returns the calls so far, of a tool that calls others.
    pub(crate) fn record(&self) -> Option<Arc<ProgramRecord>> {
        self.record.clone()
    }

    /// Returns the open questions with the state for the next round, which is valid for `lifetime`.
    ///
    /// # Errors
    ///
    /// [`RoundError::Unasked`] without open questions, and [`RoundError::Lost`] for a program that
    /// cannot be run again.
    pub(crate) fn input_required(
        &self,
        signer: &StateSigner,
        purpose: Purpose,
        lifetime: Duration,
    ) -> Result<InputRequiredResult, RoundError> {
        let mut state = self.state();
        let open = std::mem::take(&mut state.open);
        if open.is_empty() {
            return Err(RoundError::Unasked);
        }
        state.carried.round += 1;
        if let Some((record, programs)) = self.record.as_ref().zip(self.subject.programs.as_ref()) {
            // A call at the same time as the question may have used up the room.
            let record = Some(record.clone()).filter(|record| record.is_whole());
            let id = record.and_then(|record| programs.keep(record, lifetime));
            state.carried.program = Some(id.ok_or(RoundError::Lost)?);
        }
        let signed = signer.sign(purpose, &state.carried, lifetime).ok_or(RoundError::Unasked)?;
        Ok(InputRequiredResult::new(Some(open), Some(signed)))
    }

    fn state(&self) -> MutexGuard<'_, RoundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn confirm(&self, request: &ConfirmationRequest) -> CallAnswer {
        if !may_confirm(&self.kinds, self.subject.confirmed_by) {
            return CallAnswer::Unavailable;
        }
        match &request.called_by {
            Some(caller) => self.confirm_nested(request, caller.number),
            None => self.confirm_call(request),
        }
    }

    /// Asks for a call that the program makes. The record knows that the call of this number is the
    /// same in each round.
    fn confirm_nested(&self, request: &ConfirmationRequest, number: usize) -> CallAnswer {
        let is_whole = self.record.as_ref().is_some_and(|record| record.is_whole());
        if !is_whole || !self.subject.programs.as_ref().is_some_and(ProgramPlaces::has_room) {
            return CallAnswer::Unavailable;
        }
        let key = format!("{CONFIRM}.{number}");
        let mut state = self.state();
        let response = state.responses.remove(&key);
        let asked = state.carried.nested.get(&number).copied();
        match asked.filter(|asked| asked.code == request.digest).map(|asked| asked.confirmation) {
            Some(Confirmation::Allowed) => return CallAnswer::Answered(Answer::Allow),
            Some(Confirmation::CallAnswer) => {
                if let Some(answer) = answered(response) {
                    if answer == Answer::Allow {
                        let confirmation = Confirmation::Allowed;
                        let allowed = Nested { code: request.digest, confirmation };
                        state.carried.nested.insert(number, allowed);
                    }
                    return CallAnswer::Answered(answer);
                }
            }
            Some(Confirmation::Unasked) | None => {}
        }
        let asked = Nested { code: request.digest, confirmation: Confirmation::CallAnswer };
        state.carried.nested.insert(number, asked);
        state.put(key, request)
    }

    fn confirm_call(&self, request: &ConfirmationRequest) -> CallAnswer {
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
            && let Some(answer) = answered(response)
        {
            if answer == Answer::Allow {
                state.carried.confirmation = Confirmation::Allowed;
            }
            return CallAnswer::Answered(answer);
        }
        state.carried.code = request.digest;
        state.carried.confirmation = Confirmation::CallAnswer;
        state.put(CONFIRM.to_owned(), request)
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

    fn when(&self) -> AnswerTime {
        AnswerTime::LaterCall
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

/// Returns the calls that a program has made so far, or those of a new one.
fn program_record(
    subject: &Subject,
    carried: Option<&CarriedState>,
) -> Result<Option<Arc<ProgramRecord>>, RoundError> {
    match (carried.and_then(|carried| carried.program.zip(Some(carried.code))), &subject.programs) {
        (None, programs) => Ok(programs.as_ref().map(|_| Arc::default())),
        (Some((id, code)), Some(programs)) if code == subject.code => {
            programs.store.take(id).map(Some).ok_or(RoundError::Lost)
        }
        (Some(_), _) => Err(RoundError::Lost),
    }
}

/// Returns the answer of a client, if there is one.
fn answered(response: Option<Value>) -> Option<Answer> {
    let result: ElicitResult = serde_json::from_value(response?).ok()?;
    Some(interpret(&result, SessionAnswer::Withheld))
}

#[cfg(test)]
mod tests;
