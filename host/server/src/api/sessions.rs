//! Sessions: opening, listing, cancelling and closing them.

mod opening;
mod view;

pub(super) use opening::CreateSession;
pub(super) use view::SessionView;

use super::answers::Answer;
use super::extract::{Caller, Ids, JsonBody, MountedAt, Parameters};
use super::pages::{List, PageQuery};
use super::problem::{ApiError, Problem};
use super::state::App;
use crate::role::Role;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use palisade::Session;
use serde::Serialize;
use utoipa::ToSchema;

/// The number of calls that were cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cancelled {
    /// Calls that had ended before are not counted.
    pub(super) cancelled: usize,
}

/// Opens a session.
#[utoipa::path(
    post,
    path = "/sessions",
    tag = "sessions",
    request_body = CreateSession,
    responses(
        (status = 201, description = "The session is open", body = SessionView,
            headers(("location" = String, description = "The path of the session"))),
        (status = 409, description = "`session_exists`: the id is taken", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Caller(role): Caller,
    MountedAt(base): MountedAt,
    body: JsonBody<CreateSession>,
) -> Result<impl IntoResponse, ApiError> {
    if app.is_draining() {
        return Err(ApiError::Draining);
    }
    let open = opening::open(&app, &role, body.value, &body.account).await?;
    let mut headers = HeaderMap::new();
    let path = format!("{base}/sessions/{}", open.id);
    if let Ok(path) = HeaderValue::try_from(path) {
        headers.insert(header::LOCATION, path);
    }
    Ok((StatusCode::CREATED, headers, Json(SessionView::of_open(&open))))
}

/// Lists the sessions, the newest first: for the operator all that are or were, for a client its
/// open ones.
#[utoipa::path(
    get,
    path = "/sessions",
    tag = "sessions",
    params(PageQuery),
    responses((status = 200, description = "A page of sessions", body = List<SessionView>))
)]
pub(super) async fn list(
    State(app): State<App>,
    Caller(role): Caller,
    Parameters(query): Parameters<PageQuery>,
) -> Result<Answer, ApiError> {
    let sessions = view::list(&app, &role, &query).await?;
    Answer::of_value(&app, &role, sessions).await
}

/// Describes a session.
#[utoipa::path(
    get,
    path = "/sessions/{session_id}",
    tag = "sessions",
    params(("session_id" = String, Path, description = "The session's id")),
    responses((status = 200, description = "The session", body = SessionView))
)]
pub(super) async fn show(
    State(app): State<App>,
    Caller(role): Caller,
    Ids(id): Ids<String>,
) -> Result<Answer, ApiError> {
    let session = view::one(&app, &role, &id).await?;
    Answer::of_value(&app, &role, session).await
}

/// Closes a session. Its calls are cancelled; its record stays in the journal. A client over MCP
/// begins a new one with its next request; over standard input and output it makes no more calls.
#[utoipa::path(
    post,
    path = "/sessions/{session_id}/close",
    tag = "sessions",
    params(("session_id" = String, Path, description = "The session's id")),
    responses((status = 204, description = "The session is closed"))
)]
pub(super) async fn close(
    State(app): State<App>,
    Caller(role): Caller,
    Ids(id): Ids<String>,
) -> Result<StatusCode, ApiError> {
    let is_of_the_host = app.sessions.find(&role, &id).is_none();
    let sessions = reachable(&app, &role, &id)?;
    if !app.end_attached(&id) {
        let is_closed = app.sessions.close(&id, || app.session_closed(&id));
        // A session that something else has begun stays in its hands, but runs nothing any more.
        sessions.iter().for_each(Session::close);
        app.async_calls.forget(&id);
        // Another request may have closed it, and recorded that.
        if !is_closed && is_of_the_host {
            app.session_closed(&id);
        }
    }
    // A later request sees it closed.
    app.journal().flush().await;
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels all calls in flight of a session. Later calls are not affected.
#[utoipa::path(
    post,
    path = "/sessions/{session_id}/cancel",
    tag = "sessions",
    params(("session_id" = String, Path, description = "The session's id")),
    responses((status = 200, description = "The calls are being cancelled", body = Cancelled))
)]
pub(super) async fn cancel(
    State(app): State<App>,
    Caller(role): Caller,
    Ids(id): Ids<String>,
) -> Result<Json<Cancelled>, ApiError> {
    let sessions = reachable(&app, &role, &id)?;
    Ok(Json(Cancelled { cancelled: sessions.iter().map(Session::cancel_all).sum() }))
}

/// Cancels the calls in flight of a turn.
#[utoipa::path(
    post,
    path = "/sessions/{session_id}/turns/{turn_id}/cancel",
    tag = "sessions",
    params(
        ("session_id" = String, Path, description = "The session's id"),
        ("turn_id" = String, Path, description = "The turn's id"),
    ),
    responses((status = 200, description = "The calls are being cancelled", body = Cancelled))
)]
pub(super) async fn cancel_turn(
    State(app): State<App>,
    Caller(role): Caller,
    Ids((id, turn)): Ids<(String, String)>,
) -> Result<Json<Cancelled>, ApiError> {
    let sessions = reachable(&app, &role, &id)?;
    Ok(Json(Cancelled { cancelled: sessions.iter().map(|s| s.cancel_turn(&turn)).sum() }))
}

/// Returns the live sessions of this id that the sender may control. `-` is the host's own session,
/// and the operator's.
pub(super) fn reachable(app: &App, role: &Role, id: &str) -> Result<Vec<Session>, ApiError> {
    if let Some(open) = app.sessions.find(role, id) {
        return Ok(vec![open.session]);
    }
    let sessions = match role {
        Role::Client { .. } => Vec::new(),
        Role::Operator { .. } if id == "-" => vec![app.host.session().clone()],
        Role::Operator { .. } => app.host.sessions(id),
    };
    if sessions.is_empty() { Err(ApiError::NoSuchSession) } else { Ok(sessions) }
}
