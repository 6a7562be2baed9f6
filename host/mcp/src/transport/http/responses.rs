//! The HTTP responses of the endpoint.

use super::long_frames::long_frames;
use crate::http::{Overload, SharedBody as Body, guarded_body};
use crate::messages::in_flight::AdmissionError;
use crate::messages::parse::RejectedMessage;
use crate::messages::serialize::{MAX_SMALL, Serialized};
use crate::sessions::SessionRejection;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use palisade::internal::Account;
use palisade::tool::text::elided;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::transport::common::http_header::JSON_MIME_TYPE;
use std::sync::Arc;

/// The text of `rmcp` about a first request that is not `initialize`.
const NO_SESSION: &str = "Session ID is required";

/// Builds a response with this message.
pub(super) fn json(status: StatusCode, message: Serialized) -> Response<Body> {
    let mut response = Response::new(Full::new(message.into_body()).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_MIME_TYPE));
    response
}

/// Builds an error response. A 503 says when to try again, and is logged with the error.
pub(super) fn error(status: StatusCode, rejected: RejectedMessage) -> Response<Body> {
    let overload = (status == StatusCode::SERVICE_UNAVAILABLE)
        .then(|| Overload(rejected.error.message.to_string()));
    let mut response = json(status, Serialized::bounded(&rejected.into_response()));
    if let Some(overload) = overload {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response.extensions_mut().insert(overload);
    }
    response
}

/// Returns the status of a rejected message.
pub(super) fn status_of(rejected: &RejectedMessage) -> StatusCode {
    match rejected.error.code {
        ErrorCode::INTERNAL_ERROR => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// Builds the response to a message that its session rejected.
pub(super) fn session_rejection(
    rejection: SessionRejection,
    id: Option<RequestId>,
) -> Response<Body> {
    use AdmissionError::{Busy, Duplicate, LongId};
    let status = match rejection {
        SessionRejection::Gone => StatusCode::NOT_FOUND,
        SessionRejection::Full => StatusCode::SERVICE_UNAVAILABLE,
        SessionRejection::NotAdmitted(Busy) => StatusCode::TOO_MANY_REQUESTS,
        SessionRejection::NotAdmitted(Duplicate | LongId) => StatusCode::BAD_REQUEST,
    };
    let text = ErrorData::invalid_request(rejection.to_string(), None);
    let mut response = error(status, RejectedMessage { id, error: text });
    if rejection == SessionRejection::NotAdmitted(Busy) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Builds the response to the end of a session. 204 rather than the 202 of `rmcp`, since some
/// clients warn of any other status.
pub(super) fn session_ended() -> Response<Body> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Returns true if `rmcp` rejected a request in plain text.
pub(super) fn is_plain_text_error(response: &Response<Body>) -> bool {
    response.status().is_client_error() && !response.headers().contains_key(CONTENT_TYPE)
}

/// Turns an error in plain text into an error response.
pub(super) async fn to_error(response: Response<Body>, id: Option<RequestId>) -> Response<Body> {
    let status = response.status();
    let Ok(text) = response.into_body().collect().await;
    let text = String::from_utf8_lossy(&text.to_bytes()).into_owned();
    let reason = format!("{}: ", status.canonical_reason().unwrap_or_default());
    let mut text = elided(text.strip_prefix(&reason).unwrap_or(&text), 256);
    if text == NO_SESSION {
        text.push_str("; begin with `initialize`, and send the `Mcp-Session-Id` of its answer");
    }
    let invalid = ErrorData::invalid_request(text, None);
    error(status, RejectedMessage { id, error: invalid })
}

/// Keeps the memory of a response of `rmcp` accounted for until it is sent. A response in one piece
/// counts with its own length from here on, and a stream with the account of its request, and that
/// of the call that the request has resumed.
pub(super) fn with_account(
    response: Response<Body>,
    account: Account,
    resumed: Option<&Account>,
) -> Response<Body> {
    match response.body().size_hint().exact().map(usize::try_from) {
        Some(Ok(length)) if length <= MAX_SMALL => response,
        Some(Ok(length)) => response.map(|body| guarded_body(body, Arc::new(account.owed(length)))),
        Some(Err(_)) | None => {
            let of_call = resumed.unwrap_or(&account).clone();
            response
                .map(|body| guarded_body(long_frames(body, of_call.clone()), (account, of_call)))
        }
    }
}
