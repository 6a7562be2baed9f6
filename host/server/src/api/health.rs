//! Whether the server works, and its metrics.

use super::extract::Operator;
use super::problem::ApiError;
use super::state::App;
use crate::metrics::Levels;
use crate::role::Role;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

/// The readiness of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Readiness {
    /// `ready`, `loading`, `draining` or `degraded`.
    status: &'static str,
    version: String,
    journal: JournalReadiness,
}

/// The state of the journal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct JournalReadiness {
    /// `ok` or `failing`.
    pub(crate) state: &'static str,
    /// The number of events that were lost.
    pub(crate) lost: u64,
    /// The reason of a failure, for an operator only.
    pub(crate) detail: Option<String>,
}

/// Answers while the process runs.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "health",
    responses((status = 200, description = "The process runs", body = String,
        content_type = "text/plain"))
)]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// Answers 200 if calls are taken: all plugins are loaded, the journal can be written, and the
/// server does not end.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses(
        (status = 200, description = "Calls are taken", body = Readiness),
        (status = 503, description = "Calls are not taken now", body = Readiness),
    )
)]
pub(super) async fn ready(State(app): State<App>, role: Option<Extension<Role>>) -> Response {
    let mut journal = app.journal_readiness();
    // It names paths of the server.
    if !role.is_some_and(|Extension(role)| role.is_operator()) {
        journal.detail = None;
    }
    let status = if app.is_draining() {
        "draining"
    } else if journal.state != "ok" {
        "degraded"
    } else if !app.host.progress().has_ended() {
        "loading"
    } else {
        "ready"
    };
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let version = app.settings.version.clone();
    (code, Json(Readiness { status, version, journal })).into_response()
}

/// Returns the metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, description = "The metrics in the text format of OpenMetrics",
        body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(
    State(app): State<App>,
    Operator(_): Operator,
) -> Result<Response, ApiError> {
    let (lost, waiting) = app.journal_levels();
    let levels = Levels {
        operators: app.wiring.confirmer.attached(),
        questions: app.wiring.confirmer.questions().len(),
        sessions: app.sessions.count(),
        journal_lost: lost,
        journal_waiting: waiting,
    };
    let text = app.wiring.metrics.text(&app.host, levels).map_err(|_| ApiError::Internal)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response())
}
