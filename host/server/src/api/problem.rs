//! Errors of the API as RFC 9457 problems, each with a stable code.

use crate::confirmations::Settlement;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use palisade::formats::ReplyError;
use palisade::tool::budget::Exhausted;
use palisade::tool::json::JsonError;
use serde::Serialize;
use utoipa::ToSchema;

/// The reason why a request is refused. `Display` says what is wrong and what would be accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("the request carries no token or login that is accepted; sign in, or send a token")]
    Unauthenticated,
    #[error("{what} is for the operator; a client sees its own sessions, calls and events")]
    OperatorOnly { what: &'static str },
    #[error("there is no such resource; /openapi.json lists those that there are")]
    NoSuchPath,
    #[error(
        "the resource does not have this method; the header `allow` lists those that it has; clients of MCP connect to `/mcp`"
    )]
    NoSuchMethod,
    #[error("no session of this id is open; open one with POST /sessions")]
    NoSuchSession,
    #[error("there is no such call")]
    NoSuchCall,
    #[error("there is no such confirmation request")]
    NoSuchConfirmation,
    #[error("the question was already answered with `{}`", .0.decision)]
    AlreadyAnswered(Settlement),
    #[error("the question no longer stands: {}", ended(.0))]
    ConfirmationExpired(Settlement),
    #[error(
        "an open session or an earlier one has this id; choose another one, or leave it out for a new one"
    )]
    SessionExists,
    #[error("a call of this id is in flight in this session; choose another id")]
    CallExists,
    #[error("{limit} sessions are open, which is the most for one caller; close one first")]
    TooManySessions { limit: usize },
    #[error("{limit} streams of events are open, the most at a time; try again later")]
    TooManyStreams { limit: usize },
    #[error("the body is longer than the {limit} bytes that are accepted")]
    BodyTooLarge { limit: usize },
    #[error("the body could not be read; send it again")]
    BodyUnreadable,
    #[error("the body has to be JSON, with `content-type: application/json`")]
    MediaType,
    #[error("the request cannot be taken: {0}; try again in a second")]
    NoMemory(Exhausted),
    #[error("the body is refused: {0}")]
    Json(JsonError),
    #[error("the body is refused: {0}")]
    Body(String),
    #[error("the query is refused: {0}")]
    Query(String),
    #[error("the path is refused: {0}")]
    Path(String),
    #[error("the header `{name}` is refused; {accepted}")]
    Header { name: &'static str, accepted: &'static str },
    #[error("the key was used for a request with another body; use a new key for a new request")]
    KeyReused,
    #[error("the request of this key is in flight; ask again when it has ended")]
    KeyInFlight,
    #[error("{limit} requests with keys are in flight, the most that are kept; try again later")]
    KeysFull { limit: usize },
    #[error("the workspace is not one of those that this server allows: {allowed}")]
    WorkspaceNotAllowed { allowed: String },
    #[error("the reply is refused: {0}")]
    Reply(ReplyError),
    #[error("the server ends and takes no more calls; try again later")]
    Draining,
    #[error("the journal cannot be read: {0}")]
    Journal(String),
    #[error("the server had an internal error; its log says more")]
    Internal,
}

fn ended(settlement: &Settlement) -> &'static str {
    match settlement.decision.as_str() {
        "timeout" => "its time was up",
        "nobody" => "nobody was there to answer it",
        "deferred" => "its client is asked with the next call",
        _ => "its call has ended",
    }
}

impl From<JsonError> for ApiError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Exhausted(why) => Self::NoMemory(why),
            error => Self::Json(error),
        }
    }
}

impl From<ReplyError> for ApiError {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Json(JsonError::Exhausted(why)) => Self::NoMemory(why),
            error => Self::Reply(error),
        }
    }
}

impl ApiError {
    fn parts(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated", "Not signed in"),
            Self::OperatorOnly { .. } => {
                (StatusCode::FORBIDDEN, "operator_only", "For the operator only")
            }
            Self::NoSuchPath => (StatusCode::NOT_FOUND, "not_found", "Not found"),
            Self::NoSuchMethod => {
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed")
            }
            Self::NoSuchSession => (StatusCode::NOT_FOUND, "session_not_found", "No such session"),
            Self::NoSuchCall => (StatusCode::NOT_FOUND, "call_not_found", "No such call"),
            Self::NoSuchConfirmation => {
                (StatusCode::NOT_FOUND, "confirmation_not_found", "No such question")
            }
            Self::AlreadyAnswered(_) => {
                (StatusCode::CONFLICT, "already_answered", "Already answered")
            }
            Self::ConfirmationExpired(_) => {
                (StatusCode::GONE, "confirmation_expired", "The question is over")
            }
            Self::SessionExists => (StatusCode::CONFLICT, "session_exists", "The id is taken"),
            Self::CallExists => (StatusCode::CONFLICT, "call_exists", "The id is taken"),
            Self::TooManySessions { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", "Too many sessions")
            }
            Self::TooManyStreams { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "too_many_streams", "Too many streams")
            }
            Self::BodyTooLarge { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "The body is too long")
            }
            Self::BodyUnreadable => {
                (StatusCode::BAD_REQUEST, "body_unreadable", "The body cannot be read")
            }
            Self::MediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", "The body is not JSON")
            }
            Self::NoMemory(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "resource_exhausted", "No memory is left")
            }
            Self::Json(JsonError::TooLong { .. }) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "The body is too long")
            }
            Self::Json(_) => (StatusCode::BAD_REQUEST, "json_invalid", "The body is not JSON"),
            Self::Body(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "body_invalid", "The body has another form")
            }
            Self::Query(_) => (StatusCode::BAD_REQUEST, "query_invalid", "The query is not valid"),
            Self::Path(_) => (StatusCode::BAD_REQUEST, "path_invalid", "The path is not valid"),
            Self::Header { .. } => {
                (StatusCode::BAD_REQUEST, "header_invalid", "A header is not valid")
            }
            Self::KeyReused => {
                (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", "The key was used")
            }
            Self::KeyInFlight => {
                (StatusCode::CONFLICT, "idempotency_key_in_flight", "The request is in flight")
            }
            Self::KeysFull { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "idempotency_keys_full", "Too many keys")
            }
            Self::WorkspaceNotAllowed { .. } => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "workspace_not_allowed",
                "The workspace is not allowed",
            ),
            Self::Reply(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "reply_invalid", "The reply cannot be read")
            }
            Self::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining", "The server ends"),
            Self::Journal(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "journal_failing", "The journal fails")
            }
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        }
    }

    fn resolution(&self) -> Option<Settlement> {
        match self {
            Self::AlreadyAnswered(settlement) | Self::ConfirmationExpired(settlement) => {
                Some(settlement.clone())
            }
            _ => None,
        }
    }

    /// Returns the status of the response.
    pub(super) fn status(&self) -> StatusCode {
        self.parts().0
    }

    /// Returns the problem as it is sent.
    pub(crate) fn problem(&self) -> Problem {
        let (status, code, title) = self.parts();
        Problem {
            kind: "about:blank".to_owned(),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.to_string(),
            code: code.to_owned(),
            resolution: self.resolution(),
        }
    }
}

/// The media type of problems.
pub(super) const PROBLEM: &str = "application/problem+json";

/// A problem (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: `code` tells problems apart.
    #[serde(rename = "type")]
    kind: String,
    /// A short name.
    title: String,
    /// The status of the response.
    status: u16,
    /// The fault, and the form that would be accepted.
    detail: String,
    /// A stable name of the problem.
    code: String,
    /// The outcome of the question, for `already_answered` and `confirmation_expired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    resolution: Option<Settlement>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.parts().0;
        let mut response = (status, Json(self.problem())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        if matches!(self, Self::NoMemory(_)) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
