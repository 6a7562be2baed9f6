//! Streams of events.

use super::extract::{Caller, Ids, Parameters};
use super::problem::ApiError;
use super::state::{App, STREAMS};
use crate::journal::{EventFilter, EventId};
use crate::live::{self, Draining, Reader, Stream};
use crate::role::Role;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

/// Where a stream begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    /// The `id` of the last event that was seen, or `now`, the default. The header `last-event-id`
    /// precedes it.
    #[param(pattern = "^([0-9]{1,20}|now)$")]
    after: Option<String>,
    /// True for a reader who answers no questions: no call waits for an answer because of it.
    #[serde(default)]
    observer: bool,
}

/// Streams the events of all sessions; a client gets those of its own sessions in this run of the
/// server.
///
/// The events come as SSE, or over a WebSocket if the request asks for an upgrade; each message is
/// then `{"id", "event", "data"}`. A reader that was away continues after the last `id` that it
/// saw. If events are no longer kept, or are of an earlier run and not for the client, a
/// `journal.gap` comes first. When the server begins to end, a `server.draining` comes. Both have
/// no `id`.
#[utoipa::path(
    get,
    path = "/events",
    tag = "events",
    params(
        EventQuery,
        ("last-event-id" = Option<String>, Header, description = "The last `id` that was seen"),
    ),
    responses(
        (status = 101, description = "The connection is a WebSocket"),
        (status = 200, description = "Events", body = String, content_type = "text/event-stream"),
    )
)]
pub(super) async fn all(
    State(app): State<App>,
    Caller(role): Caller,
    Parameters(query): Parameters<EventQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let filter = EventFilter { client: role.client().cloned(), ..EventFilter::default() };
    stream(&app, &role, filter, &query, request).await
}

/// Streams the events of a session.
#[utoipa::path(
    get,
    path = "/sessions/{session_id}/events",
    tag = "events",
    params(
        ("session_id" = String, Path, description = "The session's id"),
        EventQuery,
        ("last-event-id" = Option<String>, Header, description = "The last `id` that was seen"),
    ),
    responses(
        (status = 101, description = "The connection is a WebSocket"),
        (status = 200, description = "Events", body = String, content_type = "text/event-stream"),
    )
)]
pub(super) async fn of_session(
    State(app): State<App>,
    Caller(role): Caller,
    Ids(id): Ids<String>,
    Parameters(query): Parameters<EventQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    app.check_known(&role, &id).await?;
    let filter = EventFilter {
        client: role.client().cloned(),
        session_id: Some(id.as_str().into()),
        ..EventFilter::default()
    };
    stream(&app, &role, filter, &query, request).await
}

async fn stream(
    app: &App,
    role: &Role,
    filter: EventFilter,
    query: &EventQuery,
    request: Request,
) -> Result<Response, ApiError> {
    let headers: &HeaderMap = request.headers();
    let position = live::position(headers, query.after.as_deref()).map_err(|part| {
        ApiError::Query(format!("{part} has to be the `id` of an event, or `after=now`"))
    })?;
    // The holder of a client's token now need not be its holder in an earlier run.
    let hidden = match role {
        Role::Operator { .. } => EventId::START,
        Role::Client { .. } => app.journal().begin(),
    };
    let could_answer = role.is_operator() && !query.observer;
    let permit = app.streams.clone().try_acquire_owned();
    let stream = Stream {
        reader: Reader::new(app.journal().clone(), filter, position, hidden),
        heartbeat: app.settings.heartbeat,
        draining: Draining::of(app.draining.clone()),
        closing: app.closing.clone(),
        _permit: permit.map_err(|_| ApiError::TooManyStreams { limit: STREAMS })?,
        _counted: app.wiring.metrics.count_reader(),
        account: app.account_for(role, 0)?,
        _attending: could_answer.then(|| app.wiring.confirmer.attend()),
    };
    if !live::is_upgrade(headers) {
        return Ok(live::sse(stream));
    }
    let (mut parts, _) = request.into_parts();
    live::websocket(&mut parts, stream).await.map_err(|_| ApiError::Header {
        name: "upgrade",
        accepted: "a WebSocket is asked for with version 13 of its handshake",
    })
}
