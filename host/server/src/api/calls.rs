//! One call: made, looked up and cancelled.

mod body;
pub(super) mod run;

pub(super) use body::{CallRequest, ResultView, UsageView};

use super::answers::Answer;
use super::async_calls::Progress;
use super::extract::{Caller, Ids, JsonBody, MountedAt};
use super::problem::{ApiError, Problem};
use super::sessions::{Cancelled, reachable};
use super::state::App;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::response::Response;
use palisade::CallId;
use serde::Serialize;
use utoipa::ToSchema;

/// A call whose result is not there yet.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunningCall {
    session_id: String,
    call_id: String,
    /// `running`, also while the call waits in a queue or for an answer.
    state: &'static str,
}

impl RunningCall {
    fn answer(session_id: &str, call_id: &str) -> Answer {
        let running = Self {
            session_id: session_id.to_owned(),
            call_id: call_id.to_owned(),
            state: "running",
        };
        Answer::json(StatusCode::ACCEPTED, &running)
    }
}

/// Makes a call and returns its result. A failure of the call is a result, too: its `error` says
/// why.
///
/// The call ends with the request: a client that leaves cancels it. With `Prefer: respond-async`
/// it goes on, and the answer names the place of its result.
#[utoipa::path(
    post,
    path = "/sessions/{session_id}/calls",
    tag = "calls",
    params(
        ("session_id" = String, Path, description = "The session's id"),
        ("idempotency-key" = Option<String>, Header,
            description = "For 24 hours, while the server runs, a repeated request gets the first answer",
            pattern = "^[!-~]{1,255}$"),
        ("prefer" = Option<String>, Header, description = "`respond-async` to not wait"),
    ),
    request_body = CallRequest,
    responses(
        (status = 200, description = "The result", body = ResultView),
        (status = 202, description = "The call runs", body = RunningCall,
            headers(("location" = String, description = "The path of the result"))),
        (status = 409, description = "`call_exists` or `idempotency_key_in_flight`", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn make(
    State(app): State<App>,
    Caller(role): Caller,
    MountedAt(base): MountedAt,
    Ids(id): Ids<String>,
    headers: HeaderMap,
    body: JsonBody<CallRequest>,
) -> Result<Response, ApiError> {
    let open = app.sessions.find_callable(&role, &id).ok_or(ApiError::NoSuchSession)?;
    let path = format!("/sessions/{id}/calls");
    let mut work = match run::begin(&app, &open.owner, &headers, path, body.digest)? {
        run::Start::Run(work) => work,
        run::Start::Answered(kept) => return Ok(kept.to_send(&body.account)?.into_response()),
    };
    let (call, cancel) = body.value.call(&app.settings)?;
    let account = body.account;
    let call_id = call.id().as_str().to_owned();
    if run::prefers_async(&headers) {
        let pending = app.async_calls.begin(&open.id, &open.owner, &call_id)?;
        let mut accepted = RunningCall::answer(&id, &call_id);
        let place = super::uri::encoded(&call_id);
        accepted.location = Some(format!("{base}/sessions/{id}/calls/{place}"));
        work.begins_calls();
        work.keep(&accepted);
        let end = move |answer: &Answer| {
            pending.end(answer);
            drop(work);
        };
        run::spawn_call(app.clone(), open.session, call, account, end);
        return Ok(accepted.into_response());
    }
    work.begins_calls();
    let keep = move |answer: &Answer| work.keep(answer);
    let running = run::spawn_call(app.clone(), open.session, call, account, keep);
    run::wait(running, cancel).await
}

/// Returns the result of a call that was made with `Prefer: respond-async`.
#[utoipa::path(
    get,
    path = "/sessions/{session_id}/calls/{call_id}",
    tag = "calls",
    params(
        ("session_id" = String, Path, description = "The session's id"),
        ("call_id" = String, Path, description = "The call's id"),
    ),
    responses(
        (status = 200, description = "The result", body = ResultView),
        (status = 202, description = "The call runs", body = RunningCall),
    )
)]
pub(super) async fn result(
    State(app): State<App>,
    Caller(role): Caller,
    Ids((id, call)): Ids<(String, String)>,
) -> Result<Response, ApiError> {
    let open = app.sessions.find_callable(&role, &id).ok_or(ApiError::NoSuchSession)?;
    match app.async_calls.progress(&open.id, &call).ok_or(ApiError::NoSuchCall)? {
        Progress::Running => Ok(RunningCall::answer(&id, &call).into_response()),
        Progress::Ended(kept) => Ok(kept.to_send(&app.account_for(&role, 0)?)?.into_response()),
    }
}

/// Cancels a call, whether it is queued, waits for an answer or runs.
#[utoipa::path(
    post,
    path = "/sessions/{session_id}/calls/{call_id}/cancel",
    tag = "calls",
    params(
        ("session_id" = String, Path, description = "The session's id; `-` for none"),
        ("call_id" = String, Path, description = "The call's id"),
    ),
    responses((status = 200, description = "The call is being cancelled", body = Cancelled))
)]
pub(super) async fn cancel(
    State(app): State<App>,
    Caller(role): Caller,
    Ids((id, call)): Ids<(String, String)>,
) -> Result<Json<Cancelled>, ApiError> {
    let call = CallId::new(&call);
    let sessions = reachable(&app, &role, &id)?;
    let cancelled = sessions.iter().filter(|session| session.cancel(&call)).count();
    Ok(Json(Cancelled { cancelled }))
}
