//! Rejected connections and requests, and the responses that explain them.

use super::response_body::Body;
use bytes::Bytes;
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use palisade::tool::budget::Exhausted;
use std::time::Duration;

/// The reason why a connection or a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rejection {
    #[error("all {0} connections of this server are in use: try again in a second")]
    ServerFull(usize),
    #[error("all {0} connections that one address may have are in use: close some, or try again")]
    AddressFull(usize),
    #[error(
        "this server does not answer to the name in `Host`: use the address it listens at, \
         or add the name to those it answers to (`--host`)"
    )]
    Host,
    #[error("requests from web pages of this `Origin` are not accepted: allow it with `--origin`")]
    Origin,
    #[error("there is nothing at this path: the URL of a client ends in `{}`", .0.join("` or `"))]
    Path(Vec<&'static str>),
    #[error("too many requests from this address: try again in {} ms", .0.as_millis())]
    Rate(Duration),
    #[error(
        "too many requests with a missing or wrong token from this address: \
         try again in {} ms, or send the right token",
        .0.as_millis()
    )]
    FailureRate(Duration),
    #[error("a token is needed: send `Authorization: Bearer TOKEN`")]
    NoToken,
    #[error("this is not the token of this server")]
    WrongToken,
    #[error(
        "the operator's cookie counts only with the page key of its login, which the pages of this \
         server send: log in with a new link"
    )]
    NoPageKey,
    #[error("the login has ended, or is of a server that ran before: log in with a new link")]
    LoginEnded,
    #[error("the operator's login counts for requests of this server's own pages only")]
    CrossSite,
    #[error("this code is wrong, used, or older than ten minutes: log in with a new link")]
    WrongCode,
    #[error("the body is not of the type `application/json`")]
    NotJson,
    #[error("the body has no code: send `{{\"code\": \"CODE\"}}`")]
    NoCode,
    #[error("the method is none of POST, GET and DELETE")]
    Method,
    #[error("the method is not POST")]
    PostOnly,
    #[error("the body is longer than {0} bytes, the most that is accepted")]
    TooLong(usize),
    #[error("the body did not arrive within 10 s")]
    Slow,
    #[error("the body cannot be read: {0}")]
    Broken(String),
    #[error("the request cannot be read: {0}; try again in a second")]
    NoMemory(Exhausted),
    #[error(
        "the bodies of other requests from this address take all memory that it may have for \
         them: try again in a second"
    )]
    BodiesFull,
}

impl Rejection {
    /// Returns the stable error code for programs.
    fn code(&self) -> &'static str {
        match self {
            Self::ServerFull(_) | Self::AddressFull(_) => "too_many_connections",
            Self::Host => "host_refused",
            Self::Origin => "origin_refused",
            Self::Path(_) => "not_found",
            Self::Rate(_) | Self::FailureRate(_) => "rate_limited",
            Self::NoToken => "token_needed",
            Self::WrongToken => "token_refused",
            Self::NoPageKey => "page_key_needed",
            Self::LoginEnded => "login_ended",
            Self::CrossSite => "cross_site",
            Self::WrongCode => "code_refused",
            Self::NotJson => "not_json",
            Self::NoCode => "code_needed",
            Self::Method | Self::PostOnly => "method_not_allowed",
            Self::TooLong(_) => "body_too_long",
            Self::Slow => "body_too_slow",
            Self::Broken(_) => "body_broken",
            Self::NoMemory(_) | Self::BodiesFull => "resource_exhausted",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::ServerFull(_) | Self::AddressFull(_) | Self::NoMemory(_) | Self::BodiesFull => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Host | Self::Origin | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::Path(_) => StatusCode::NOT_FOUND,
            Self::Rate(_) | Self::FailureRate(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::NoToken
            | Self::WrongToken
            | Self::NoPageKey
            | Self::LoginEnded
            | Self::WrongCode => StatusCode::UNAUTHORIZED,
            Self::Method | Self::PostOnly => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) | Self::NoCode => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns true if the server lacks room for the request, which can succeed later.
    pub(super) fn is_overload(&self) -> bool {
        self.status() == StatusCode::SERVICE_UNAVAILABLE
    }

    /// Builds the response, with a problem of RFC 9457 as its body.
    pub(super) fn into_response(self) -> Response<Body> {
        let status = self.status();
        let problem = serde_json::json!({
            "type": "about:blank",
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "code": self.code(),
            "detail": self.to_string(),
        });
        let mut response = Response::new(Body::from(Bytes::from(problem.to_string())));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        self.add_headers(headers);
        response
    }

    fn add_headers(&self, headers: &mut HeaderMap) {
        match self {
            Self::ServerFull(_) | Self::AddressFull(_) => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Self::NoMemory(_) | Self::BodiesFull => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::Rate(wait) => {
                headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
            }
            Self::FailureRate(wait) => {
                headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
                // Each further guess costs its client a connection.
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Self::NoToken | Self::NoPageKey | Self::LoginEnded | Self::WrongCode => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::WrongToken => {
                headers.insert(
                    WWW_AUTHENTICATE,
                    HeaderValue::from_static("Bearer error=\"invalid_token\""),
                );
            }
            Self::Method => {
                headers.insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            }
            Self::PostOnly => {
                headers.insert(ALLOW, HeaderValue::from_static("POST"));
            }
            Self::Host
            | Self::Origin
            | Self::CrossSite
            | Self::NotJson
            | Self::NoCode
            | Self::Path(_)
            | Self::TooLong(_)
            | Self::Slow
            | Self::Broken(_) => {}
        }
    }
}
