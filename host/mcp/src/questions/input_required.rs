//! Asks modern clients by multi-round calls: a call ends with its questions, and the client repeats
//! it with the answers.
//!
//! The answers so far travel through the client in a signed state, so that each round runs the call
//! from the beginning up to the next question. A confirmation counts only with such a state. A
//! plugin's questions grant no rights, so that their answers are accepted from the first round on.

use crate::questions::confirmation_form::{Lasting, answer, form};
use crate::questions::plugin_question::{question, told};
use crate::questions::signed_state::{Sealer, Unsealed};
use palisade::confirm::{Answer, ConfirmationRequest};
use palisade::execution::{AskFailure, BoxFuture, Client};
use palisade::internal::{Asked, CallConfirmer};
use palisade::sandbox::limits;
use palisade::tool::{AskKind, AskKinds, AskRequest, Digest};
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
const ROUNDS: u8 = 8;

/// The call that a state is valid for: client, tool and input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Purpose {
    client: String,
    tool: String,
    input: String,
}

impl Purpose {
    /// Identifies a call of this tool with these arguments.
    pub(crate) fn of(client: &str, tool: &str, arguments: &Value) -> Self {
        // Computed even for calls that ask nothing, so that it must be cheap: BLAKE3, and no copy
        // of the serialized input.
        let mut digest = blake3::Hasher::new();
        let _ = serde_json::to_writer(&mut digest, arguments);
        let input = digest.finalize().to_hex().to_string();
        Self { client: client.to_owned(), tool: tool.to_owned(), input }
    }
}

/// The subject of the questions: the code that would run, and its plugin.
pub(crate) struct Subject {
    pub(crate) code: Option<Digest>,
    pub(crate) plugin: String,
}

/// The reason why a round is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRound {
    #[error(transparent)]
    Unsealed(#[from] Unsealed),
    #[error(
        "the call has come back with questions {ROUNDS} times: make it again from the beginning"
    )]
    TooMany,
}

/// The state that travels through the client. It is valid for one code: a change of the code starts
/// over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct State {
    round: u8,
    code: Option<Digest>,
    confirmation: Confirmation,
    asks: Vec<Ask>,
}

/// The state of the confirmation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Confirmation {
    #[default]
    Unasked,
    Asked,
    Allowed,
}

/// One `ask` of the plugin: the digest of its questions, and the answers so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Ask {
    digest: String,
    answers: BTreeMap<String, Value>,
}

/// One round of a call.
pub(crate) struct Rounds {
    kinds: AskKinds,
    subject: Subject,
    begun: Begun,
    course: Mutex<Course>,
}

/// The starting point of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// Without a state of this process.
    Fresh,
    /// With a state that has this many `ask` calls. The last one may still be unanswered.
    Again(usize),
}

/// The progress of a round.
struct Course {
    state: State,
    responses: InputResponses,
    position: usize,
    open: InputRequests,
}

impl Rounds {
    /// Begins a round with the client's state, which can be used once.
    ///
    /// # Errors
    ///
    /// [`NoRound`] if the state is invalid, expired or used, or after too many rounds.
    pub(crate) fn begin(
        sealer: &Sealer,
        purpose: Option<&Purpose>,
        kinds: AskKinds,
        subject: Subject,
        state: Option<&str>,
        responses: InputResponses,
    ) -> Result<Self, NoRound> {
        let state: Option<State> = state
            .zip(purpose)
            .map(|(text, purpose)| sealer.open(&purpose.client, text, purpose))
            .transpose()?;
        let code = subject.code;
        let fresh = State { code, ..State::default() };
        let (begun, state, responses) = match state {
            None => (Begun::Fresh, fresh, responses),
            Some(state) if state.round >= ROUNDS => return Err(NoRound::TooMany),
            // The answers were given for other code.
            Some(state) if state.code != code => (Begun::Fresh, fresh, InputResponses::new()),
            Some(state) => (Begun::Again(state.asks.len()), state, responses),
        };
        let course =
            Mutex::new(Course { state, responses, position: 0, open: InputRequests::new() });
        Ok(Self { kinds, subject, begun, course })
    }

    /// Returns the open questions with the state for the next round, which is valid for `within`.
    /// `None` without open questions.
    pub(crate) fn required(
        &self,
        sealer: &Sealer,
        purpose: Purpose,
        within: Duration,
    ) -> Option<InputRequiredResult> {
        let mut course = self.course();
        let open = Some(std::mem::take(&mut course.open)).filter(|open| !open.is_empty())?;
        course.state.round += 1;
        let state = sealer.seal(purpose, &course.state, within)?;
        Some(InputRequiredResult::new(Some(open), Some(state)))
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn confirmed(&self, request: &ConfirmationRequest) -> Asked {
        if !self.kinds.contains(&AskKind::Elicitation) {
            return Asked::Nobody;
        }
        let mut course = self.course();
        // The code changed during the call: neither a confirmation nor an answer counts for other
        // code.
        let is_same = course.state.code == request.digest;
        if !is_same {
            course.state = State { round: course.state.round, ..State::default() };
            course.responses.clear();
        }
        if is_same && course.state.confirmation == Confirmation::Allowed {
            return Asked::Answered(Answer::Allow);
        }
        let brought = course.responses.remove(CONFIRM);
        if course.state.confirmation == Confirmation::Asked
            && let Some(result) =
                brought.and_then(|value| serde_json::from_value::<ElicitResult>(value).ok())
        {
            let answer = answer(&result, Lasting::Withheld);
            if answer == Answer::Allow {
                course.state.confirmation = Confirmation::Allowed;
            }
            return Asked::Answered(answer);
        }
        let Some(form) = form(request, Lasting::Withheld) else { return Asked::Nobody };
        course.state.code = request.digest;
        course.state.confirmation = Confirmation::Asked;
        course.open.insert(CONFIRM.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)));
        Asked::Later
    }

    fn answered(&self, requests: &[AskRequest]) -> Result<Vec<String>, AskFailure> {
        let questions = requests.iter().map(|request| question(&self.subject.plugin, request));
        let questions = questions.collect::<Result<Vec<_>, _>>()?;
        let mut course = self.course();
        let place = course.enter(requests)?;
        // An answer counts for the open question only. In a first round no question was put yet, so
        // that any may be answered.
        let is_open = match self.begun {
            Begun::Fresh => true,
            Begun::Again(asks) => place + 1 == asks,
        };
        if is_open {
            course.take(place, requests)?;
        }
        let Course { state, open, .. } = &mut *course;
        let answers = &state.asks[place].answers;
        let missing = requests
            .iter()
            .zip(questions)
            .filter(|(request, _)| !answers.contains_key(&request.key));
        open.extend(missing.map(|(request, question)| (request.key.clone(), question)));
        if !open.is_empty() {
            return Err(AskFailure::Later);
        }
        let told = |request: &AskRequest| told(request, answers.get(&request.key)?);
        requests.iter().map(|request| told(request).unwrap_or(Err(AskFailure::Changed))).collect()
    }
}

impl Course {
    /// Returns the index of this `ask` in the call. A repeated one must match the previous round.
    fn enter(&mut self, requests: &[AskRequest]) -> Result<usize, AskFailure> {
        let place = self.position;
        let digest = digest(requests);
        self.position += 1;
        match self.state.asks.get(place) {
            Some(ask) if ask.digest != digest => Err(AskFailure::Changed),
            Some(_) => Ok(place),
            None => {
                self.state.asks.push(Ask { digest, answers: BTreeMap::new() });
                Ok(place)
            }
        }
    }

    /// Stores the client's answers to these questions, each once. An invalid answer is dropped, so
    /// that the question is put again.
    fn take(&mut self, place: usize, requests: &[AskRequest]) -> Result<(), AskFailure> {
        for request in requests {
            let brought = self.responses.remove(&request.key);
            if let Some(value) = brought.filter(|value| told(request, value).is_some()) {
                self.state.asks[place].answers.entry(request.key.clone()).or_insert(value);
            }
        }
        let bytes = self
            .state
            .asks
            .iter()
            .flat_map(|ask| ask.answers.values())
            .map(|value| value.to_string().len());
        if bytes.sum::<usize>() > limits::ASKED {
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

impl CallConfirmer for Rounds {
    fn put<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Asked> {
        Box::pin(async move { self.confirmed(request) })
    }
}

impl Client for Rounds {
    fn kinds(&self) -> AskKinds {
        self.kinds.clone()
    }

    fn ask<'a>(
        &'a self,
        requests: Vec<AskRequest>,
    ) -> BoxFuture<'a, Result<Vec<String>, AskFailure>> {
        Box::pin(async move { self.answered(&requests) })
    }
}

#[cfg(test)]
mod tests;
