//! `POST /login` and `POST /logout`: the exchange of a code for the operator's login, and its end.

use super::auth::Auth;
use super::credentials::LoggedIn;
use super::rejection::Rejection;
use super::response_body::Body;
use super::same_origin::{Answer, Source, accepts_login};
use bytes::Bytes;
use hyper::body::Body as HttpBody;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, SET_COOKIE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use std::fmt::Display;
use std::net::IpAddr;

/// The paths, with what is done there.
const PATHS: [(&str, Action); 2] = [("/login", Action::LogIn), ("/logout", Action::LogOut)];
/// The maximum length of the body, in bytes.
const MAX: usize = 1024;

/// The action that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// To exchange a code for a login.
    LogIn,
    /// To end a login.
    LogOut,
}

impl Action {
    /// Returns the action of a path.
    pub(super) fn at(path: &str) -> Option<Self> {
        PATHS.iter().find(|(known, _)| *known == path).map(|(_, action)| *action)
    }

    /// Does what a request asks for. Every page but the server's own is refused, so that none can
    /// log a browser in or out.
    pub(super) async fn answer<B>(
        self,
        auth: &Auth,
        request: Request<B>,
        from: IpAddr,
    ) -> Result<Response<Body>, Rejection>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Display,
    {
        auth.check_target(request.uri(), request.headers())?;
        if *request.method() != Method::POST {
            return Err(Rejection::PostOnly);
        }
        auth.admit_public(from)?;
        let (head, body) = request.into_parts();
        let mut response = match self {
            Self::LogIn => logged_in(log_in(auth, &head, body, from).await?),
            Self::LogOut if !accepts_login(&head, Answer::Whole) => {
                return Err(Rejection::CrossSite);
            }
            Self::LogOut => logged_out(auth.credentials().log_out(&head.headers)?),
        };
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }
}

/// Gives one half of the login to the browser, and the other one to the page.
fn logged_in(LoggedIn { cookie, page_key }: LoggedIn) -> Response<Body> {
    let answer = json!({"page_key": page_key}).to_string();
    let mut response = Response::new(Body::from(Bytes::from(answer)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(SET_COOKIE, cookie);
    response
}

fn logged_out(cookie: Option<HeaderValue>) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    response
}

async fn log_in<B>(auth: &Auth, head: &Parts, body: B, from: IpAddr) -> Result<LoggedIn, Rejection>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Display,
{
    if Source::of(&head.headers) == Source::Foreign {
        return Err(Rejection::CrossSite);
    }
    // The form of another page could not send this type.
    if !is_json(&head.headers) {
        return Err(Rejection::NotJson);
    }
    // Its length is announced, so that a client without a code holds no memory.
    if body.size_hint().exact().is_none_or(|length| length > MAX as u64) {
        return Err(Rejection::TooLong(MAX));
    }
    let body = auth.read_public(body, from).await?;
    let body: Value = serde_json::from_slice(&body).map_err(|_| Rejection::NoCode)?;
    let code = body.get("code").and_then(Value::as_str).ok_or(Rejection::NoCode)?;
    match auth.credentials().log_in(code, &head.headers) {
        Err(Rejection::WrongCode) => Err(auth.note_failure(from, Rejection::WrongCode)),
        answered => answered,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = |value: &HeaderValue| {
        let essence = value.to_str().ok()?.split(';').next()?.trim().to_ascii_lowercase();
        Some(essence == "application/json")
    };
    headers.get(CONTENT_TYPE).and_then(essence).unwrap_or(false)
}
