//! Calls run in tasks of their own, so that the answer of a key is kept although its client has
//! left.

use crate::api::answers::{Answer, Begun, KeptAnswer, Key, Slot, key_of};
use crate::api::offload::{self, TIME_LIMIT};
use crate::api::open_sessions::Owner;
use crate::api::problem::ApiError;
use crate::api::remedy::{self, CameBy};
use crate::api::state::{App, Running};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use palisade::internal::{Account, exhaustion_error};
use palisade::tool::Digest;
use palisade::tool::budget::Exhausted;
use palisade::{Call, CallId, CancellationToken, Content, Session, SideEffects, ToolResult};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// How a request begins.
pub(in crate::api) enum Start {
    /// Its work is to be done.
    Run(Work),
    /// A request with the same key was answered before.
    Answered(Arc<KeptAnswer>),
}

/// The text of a result that its request has no room for.
const LEFT_OUT: &str = "the tool has run; its output found no room in the answer of this request";

/// The work of a request: it is counted, and its answer kept under its key.
pub(in crate::api) struct Work {
    slot: Option<Slot>,
    _running: Running,
}

impl Work {
    /// Notes that the calls of the request begin. From now on a repeated request gets an answer,
    /// and never runs them again.
    pub(in crate::api) fn begins_calls(&mut self) {
        self.slot.iter_mut().for_each(Slot::begins_calls);
    }

    /// Keeps the answer under the request's key, if it has one.
    pub(in crate::api) fn keep(&mut self, answer: &Answer) {
        if let Some(slot) = self.slot.take() {
            slot.fill(answer);
        }
    }
}

/// Begins a request that has an effect.
pub(in crate::api) fn begin(
    app: &App,
    owner: &Owner,
    headers: &HeaderMap,
    path: String,
    body: Digest,
) -> Result<Start, ApiError> {
    let key = key_of(headers)?.map(|key| Key { owner: owner.clone(), path, key });
    let slot = match key.map(|key| app.answers.begin(key, body)).transpose()? {
        Some(Begun::Known(answer)) => return Ok(Start::Answered(answer)),
        Some(Begun::New(slot)) => Some(slot),
        None => None,
    };
    Ok(Start::Run(Work { slot, _running: app.begin_work()? }))
}

/// Returns true if the client does not want to wait for the result.
pub(in crate::api) fn prefers_async(headers: &HeaderMap) -> bool {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut each = preferences.flat_map(|value| value.split([',', ';']));
    each.any(|preference| preference.trim().eq_ignore_ascii_case("respond-async"))
}

/// Runs a call in a task of its own, which holds the account of its request. `keep` gets its
/// answer.
pub(super) fn spawn_call(
    app: App,
    session: Session,
    call: Call,
    account: Account,
    keep: impl FnOnce(&Answer) + Send + 'static,
) -> JoinHandle<Result<Answer, ApiError>> {
    tokio::spawn(async move {
        let result = app.host.dispatch(&session, call).await;
        let result = remedy::told(&app.host, result, CameBy::Call);
        let answer = answer(result, &account).await;
        keep(&answer);
        Ok(answer)
    })
}

/// Writes the answer of a call. A result without room is replaced by a failure.
async fn answer(result: ToolResult, account: &Account) -> Answer {
    let (id, tool) = (result.call_id().clone(), result.tool().to_owned());
    let (own, memory) = (account.clone(), result.footprint());
    let write = move || {
        // The result and its text exist together.
        let _held = own.charge(memory as u64)?;
        Answer::within(&own, StatusCode::OK, &result)
    };
    let written = offload::work(memory, account, write).await.flatten();
    written.unwrap_or_else(|why| Answer::json(StatusCode::OK, &without_room(id, &tool, why)))
}

/// Returns the failure of a call whose result its request has no room for.
pub(in crate::api) fn without_room(id: CallId, tool: &str, why: Exhausted) -> ToolResult {
    // The error of a memory limit does not depend on the class.
    let error = exhaustion_error(why, TIME_LIMIT, SideEffects::None);
    ToolResult::failure_with(id, tool, error, vec![Content::Text(LEFT_OUT.to_owned())])
}

/// Waits for an answer. Dropping the future cancels the work, which then ends by itself.
pub(in crate::api) async fn wait(
    running: JoinHandle<Result<Answer, ApiError>>,
    cancel: CancellationToken,
) -> Result<Response, ApiError> {
    let guard = cancel.drop_guard();
    let answer = running.await.map_err(|_| ApiError::Internal)??;
    guard.disarm();
    Ok(answer.into_response())
}
