//! Asking a modern client: the call ends with what has to be known, and is made again with the answer.

use super::question::{Lasting, answer, form};
use super::seal::{Sealer, Unsealed};
use crate::confirm::{Asked, Asker, ConfirmationRequest};
use crate::execution::BoxFuture;
use crate::tool::Digest;
use rmcp::model::{ElicitRequest, ElicitResult, InputRequest, InputRequests, InputRequiredResult, InputResponses};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// The name under which the host's own question stands. A plugin's questions have other names.
const CONFIRM: &str = "palisade.confirm";

/// Whether the client can be asked at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forms {
    Shown,
    Unknown,
}

/// The call that a state is good for: the same client, the same tool, the same input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Purpose {
    client: String,
    tool: String,
    input: String,
}

impl Purpose {
    /// Of a call of this tool with these arguments.
    pub(super) fn of(client: &str, tool: &str, arguments: &Value) -> Self {
        let input = Digest::of(arguments.to_string().as_bytes()).to_string();
        Self { client: client.to_owned(), tool: tool.to_owned(), input }
    }
}

/// What was asked: whether this code may run. Other code behind the same name is asked about anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    code: Option<String>,
}

/// One call in its rounds: what the client has brought along, and what is still to be asked.
pub(super) struct Rounds {
    forms: Forms,
    state: Option<State>,
    responses: InputResponses,
    open: Mutex<Option<ConfirmationRequest>>,
}

impl Rounds {
    /// With what the client brings along; its state is used up by this.
    ///
    /// # Errors
    ///
    /// [`Unsealed`], where the state is none of this process for this call, or not any more.
    pub(super) fn begin(
        sealer: &Sealer,
        purpose: &Purpose,
        forms: Forms,
        (state, responses): (Option<&str>, InputResponses),
    ) -> Result<Self, Unsealed> {
        let state = state.map(|text| sealer.open(text, purpose)).transpose()?;
        Ok(Self { forms, state, responses, open: Mutex::default() })
    }

    /// What the client has to bring along next time, where there is something.
    pub(super) fn required(&self, sealer: &Sealer, purpose: Purpose) -> Option<InputRequiredResult> {
        let request = self.open.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let state = sealer.seal(purpose, State { code: code(&request) })?;
        let asked = InputRequest::Elicitation(ElicitRequest::new(form(&request, Lasting::Withheld)?));
        let requests = InputRequests::from([(CONFIRM.to_owned(), asked)]);
        Some(InputRequiredResult::new(Some(requests), Some(state)))
    }

    /// An answer counts where the question was put by this process, about this call, and about this code.
    fn brought(&self, request: &ConfirmationRequest) -> Option<ElicitResult> {
        self.state.as_ref().filter(|state| state.code == code(request))?;
        serde_json::from_value(self.responses.get(CONFIRM)?.clone()).ok()
    }
}

impl Asker for Rounds {
    fn put<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Asked> {
        Box::pin(async move {
            match (self.brought(request), self.forms) {
                (_, Forms::Unknown) => Asked::Nobody,
                (Some(result), Forms::Shown) => Asked::Answered(answer(&result, Lasting::Withheld)),
                (None, Forms::Shown) => {
                    *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.clone());
                    Asked::Later
                }
            }
        })
    }
}

fn code(request: &ConfirmationRequest) -> Option<String> {
    request.digest.map(|digest| digest.to_string())
}
