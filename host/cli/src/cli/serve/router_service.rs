//! The HTTP API and the console behind the server's gate: the gate authenticates, and the router
//! authorises.

use super::mounted::Mounted;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use palisade::BoxFuture;
use palisade_mcp::http::{
    self, Admitted, Body, Caller, Logins, Request, RequestHead, Response, Service,
};
use palisade_server::{Role, is_public, is_stream};
use serde_json::{Value, json};

/// The name under which the operator's answers are recorded.
const OPERATOR: &str = "operator";
/// The path at which the operator gets another code for a login.
pub(in crate::cli) const LOGINS: &str = "/logins";

/// A router as a service of the gate.
pub(super) struct RouterService {
    router: Mounted<Router>,
    logins: Option<Logins>,
    /// The origin of the console.
    origin: String,
}

impl RouterService {
    pub(super) fn new(router: Router, logins: Option<Logins>, origin: String) -> Self {
        let is_public = |head: &RequestHead| is_public(head.uri.path());
        let is_stream = |head: &RequestHead| is_stream(head.uri.path());
        Self { router: Mounted::new(router, is_public, is_stream, introduce), logins, origin }
    }

    /// Returns another code for a login. Only for the operator's token: a login would outlast its
    /// time if it could make another one.
    fn issue(&self, caller: Caller) -> Response<Body> {
        if !matches!(caller, Caller::Bearer(_)) {
            let code = "operator_token_needed";
            let detail = "a login makes no further login: run `palisade console`, or send the \
                          operator's token";
            return problem(StatusCode::FORBIDDEN, code, detail);
        }
        match self.logins.as_ref().map(Logins::issue) {
            Some(Ok(code)) => {
                let made = json!({"code": code, "origin": self.origin});
                answer(StatusCode::OK, "application/json", &made)
            }
            Some(Err(_)) | None => {
                let detail = "the system gives no random numbers";
                problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
            }
        }
    }
}

impl Service for RouterService {
    fn answer(&self, admitted: Admitted) -> BoxFuture<'_, Response<Body>> {
        let is_operator = admitted.role() == Some(http::Role::Operator);
        if admitted.target() == (&Method::POST, LOGINS) && is_operator {
            return Box::pin(std::future::ready(self.issue(admitted.caller())));
        }
        self.router.answer(admitted)
    }

    fn is_public(&self, head: &RequestHead) -> bool {
        self.router.is_public(head)
    }

    fn is_stream(&self, head: &RequestHead) -> bool {
        self.router.is_stream(head)
    }
}

/// Tells the router who sent a request.
fn introduce(caller: Caller, role: Option<http::Role>, request: &mut Request<Full<Bytes>>) {
    let role = role.map(|role| match role {
        http::Role::Operator => Role::Operator { name: OPERATOR.into() },
        http::Role::Client => Role::Client { id: caller.id().into() },
    });
    if let Some(role) = role {
        request.extensions_mut().insert(role);
    }
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response<Body> {
    let problem = json!({
        "type": "about:blank",
        "title": "no code is made",
        "status": status.as_u16(),
        "code": code,
        "detail": detail,
    });
    answer(status, "application/problem+json", &problem)
}

fn answer(status: StatusCode, kind: &'static str, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from(value.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
