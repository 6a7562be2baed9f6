//! Tests of each check, with requests that pass and requests that fail.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::http::{Access, Token};
use http_body_util::Full;
use hyper::body::Frame;
use palisade::internal::input_turns_of;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

const TOKEN: &str = "0123456789abcdef";
const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

fn auth(token: Option<&str>) -> Auth {
    limited(token, Limits::default())
}

fn limited(token: Option<&str>, limits: Limits) -> Auth {
    let bound = "127.0.0.1:8000".parse().unwrap();
    let settings = Settings::new(
        bound,
        token.map_or(Access::Unauthenticated, |token| Access::Token(Token::new(token).unwrap())),
    )
    .unwrap();
    Auth::new(&settings.with_origin("https://app.example").unwrap(), bound, vec!["/mcp"], limits)
}

fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(target);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Full::new(Bytes::from_static(b"{}"))).unwrap()
}

async fn answer(auth: &Auth, request: Request<Full<Bytes>>) -> Result<Caller, Rejection> {
    auth.admit(request, NEAR, no_session).await.map(|admitted| admitted.caller())
}

/// Method, target, headers, and the expected result.
type Line<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], Result<(), Rejection>);

const OWN: (&str, &str) = ("host", "localhost:8000");

/// The session of a request that belongs to none.
fn no_session(_: &RequestHead, _: Caller) -> Option<String> {
    None
}

#[tokio::test]
async fn host_origin_path_and_method_are_checked() {
    let auth = auth(None);
    let table: &[Line<'_>] = &[
        ("POST", "/mcp", &[OWN], Ok(())),
        ("GET", "/mcp", &[OWN], Ok(())),
        ("DELETE", "/mcp", &[OWN], Ok(())),
        ("POST", "/mcp?query", &[OWN], Ok(())),
        ("POST", "/mcp", &[("host", "127.0.0.1:8000")], Ok(())),
        ("POST", "/mcp", &[], Err(Rejection::Host)),
        ("POST", "/mcp", &[("host", "evil.example:8000")], Err(Rejection::Host)),
        ("POST", "/mcp", &[("host", "localhost:8001")], Err(Rejection::Host)),
        ("POST", "/mcp", &[OWN, OWN], Err(Rejection::Host)),
        ("POST", "http://localhost:8000/mcp", &[OWN], Ok(())),
        ("POST", "http://evil.example:8000/mcp", &[OWN], Err(Rejection::Host)),
        ("POST", "/mcp", &[OWN, ("origin", "http://localhost:8000")], Ok(())),
        ("POST", "/mcp", &[OWN, ("origin", "https://app.example")], Ok(())),
        ("POST", "/mcp", &[OWN, ("origin", "https://evil.example")], Err(Rejection::Origin)),
        ("POST", "/mcp", &[OWN, ("origin", "null")], Err(Rejection::Origin)),
        ("POST", "/mcp", &[OWN, ("origin", "")], Err(Rejection::Origin)),
        ("GET", "/mcp", &[OWN, ("origin", "https://evil.example")], Err(Rejection::Origin)),
        (
            "POST",
            "/mcp",
            &[OWN, ("origin", "https://app.example"), ("origin", "https://evil.example")],
            Err(Rejection::Origin),
        ),
        ("POST", "/", &[OWN], Err(Rejection::Path(vec!["/mcp"]))),
        ("POST", "/mcp/", &[OWN], Err(Rejection::Path(vec!["/mcp"]))),
        ("POST", "//mcp", &[OWN], Err(Rejection::Path(vec!["/mcp"]))),
        ("POST", "/MCP", &[OWN], Err(Rejection::Path(vec!["/mcp"]))),
        ("PUT", "/mcp", &[OWN], Err(Rejection::Method)),
        ("OPTIONS", "/mcp", &[OWN, ("origin", "https://app.example")], Err(Rejection::Method)),
        ("HEAD", "/mcp", &[OWN], Err(Rejection::Method)),
    ];
    for (method, target, headers, expected) in table {
        let got = answer(&auth, request(method, target, headers)).await.map(|_| ());
        assert_eq!(&got, expected, "{method} {target} {headers:?}");
    }
}

#[tokio::test]
async fn header_that_is_not_text_is_rejected() {
    let value = HeaderValue::from_bytes(b"localhost:8000\xe9").unwrap();
    for (name, rejection) in [(HOST, Rejection::Host), (ORIGIN, Rejection::Origin)] {
        let mut request = request("POST", "/mcp", &[OWN]);
        request.headers_mut().insert(name, value.clone());
        assert_eq!(answer(&auth(None), request).await, Err(rejection));
    }
}

#[tokio::test]
async fn requests_need_the_token() {
    let auth = auth(Some(TOKEN));
    let table = [
        (None, Err(Rejection::NoToken)),
        (Some("0123456789abcdef"), Err(Rejection::NoToken)),
        (Some("Basic 0123456789abcdef"), Err(Rejection::NoToken)),
        (Some("Bearer 0123456789abcdeg"), Err(Rejection::WrongToken)),
        (Some("Bearer 0123456789abcde"), Err(Rejection::WrongToken)),
        (Some("Bearer "), Err(Rejection::WrongToken)),
        (Some("Bearer 0123456789abcdef"), Ok(())),
        (Some("bearer  0123456789abcdef"), Ok(())),
    ];
    for (given, expected) in table {
        let headers: Vec<_> =
            given.map(|given| ("authorization", given)).into_iter().chain([OWN]).collect();
        let got = answer(&auth, request("POST", "/mcp", &headers)).await.map(|_| ());
        assert_eq!(got, expected, "{given:?}");
    }
    let twice = [OWN, ("authorization", "Bearer 0123456789abcdef"), ("authorization", "Bearer x")];
    assert_eq!(answer(&auth, request("POST", "/mcp", &twice)).await, Err(Rejection::WrongToken));
}

#[tokio::test]
async fn admitted_request_has_its_caller_and_no_token() {
    let auth = auth(Some(TOKEN));
    let request = request("POST", "/mcp", &[OWN, ("authorization", "Bearer 0123456789abcdef")]);
    let admitted = auth.admit(request, NEAR, no_session).await.unwrap();
    let caller = admitted.caller();
    assert_eq!(caller, Caller::Bearer(blake3::hash(TOKEN.as_bytes())));
    let request = admitted.into_request();
    assert_eq!(request.headers().get(AUTHORIZATION), None);
    assert_eq!(request.extensions().get::<Caller>(), Some(&caller));
    assert_eq!(request.body().as_ref(), b"{}");
}

fn with_token(token: &str) -> Request<Full<Bytes>> {
    request("POST", "/mcp", &[OWN, ("authorization", &format!("Bearer {token}"))])
}

/// Sends wrong tokens until the limit, and returns the number of those before it.
async fn guess(auth: &Auth, from: IpAddr) -> usize {
    for number in 0..10_000 {
        match auth.admit(with_token(&format!("{number:016}")), from, no_session).await.unwrap_err()
        {
            Rejection::WrongToken => {}
            Rejection::FailureRate(_) => return number,
            other => panic!("{other:?}"),
        }
    }
    panic!("there is no limit");
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_are_limited() {
    let auth = auth(Some(TOKEN));
    assert_eq!(guess(&auth, FAR).await, 20);
    let wait = Duration::from_millis(100);
    for failing in [with_token("0000000000000000"), request("POST", "/mcp", &[OWN])] {
        let rejection = auth.admit(failing, FAR, no_session).await.unwrap_err();
        assert_eq!(rejection, Rejection::FailureRate(wait));
        let response = rejection.into_response();
        let headers =
            ["retry-after", "connection"].map(|name| response.headers()[name].to_str().unwrap());
        assert_eq!((response.status().as_u16(), headers), (429, ["1", "close"]));
    }
    tokio::time::advance(wait).await;
    assert_eq!(guess(&auth, FAR).await, 1);
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_keep_out_no_client_with_the_right_one() {
    let auth = auth(Some(TOKEN));
    for from in [NEAR, FAR] {
        guess(&auth, from).await;
        for _ in 0..400 {
            assert!(auth.admit(with_token(TOKEN), from, no_session).await.is_ok(), "{from}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_token_use_up_no_requests_of_others() {
    let auth = auth(Some(TOKEN));
    let origin = ("origin", "https://app.example");
    let asks = ("access-control-request-method", "POST");
    for _ in 0..30_000 {
        let _ = auth.preflight(&request("OPTIONS", "/mcp", &[OWN, origin, asks]));
        let _ = auth.admit(request("POST", "/mcp", &[OWN]), NEAR, no_session).await;
    }
    assert!(auth.admit(with_token(TOKEN), NEAR, no_session).await.is_ok());
    assert!(auth.preflight(&request("OPTIONS", "/mcp", &[OWN, origin, asks])).is_ok());
}

#[tokio::test(start_paused = true)]
async fn remote_address_has_a_burst_of_400_requests() {
    let auth = auth(Some(TOKEN));
    for _ in 0..400 {
        assert!(auth.admit(with_token(TOKEN), FAR, no_session).await.is_ok());
    }
    let rejection = auth.admit(with_token(TOKEN), FAR, no_session).await.unwrap_err();
    assert_eq!(rejection, Rejection::Rate(Duration::from_millis(5)));
    let response = rejection.into_response();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
}

#[test]
fn rejections_have_their_status_and_headers() {
    let unauthorized = Rejection::NoToken.into_response();
    assert_eq!(
        (unauthorized.status().as_u16(), &unauthorized.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    let method = Rejection::Method.into_response();
    assert_eq!(
        (method.status().as_u16(), &method.headers()["allow"]),
        (405, &"POST, GET, DELETE".parse().unwrap())
    );
    let all = [
        Rejection::Host,
        Rejection::Origin,
        Rejection::Path(vec!["/mcp"]),
        Rejection::TooLong(1),
        Rejection::Slow,
        Rejection::ServerFull(1),
        Rejection::AddressFull(1),
    ];
    let statuses = all.map(|rejection| rejection.into_response().status().as_u16());
    assert_eq!(statuses, [403, 403, 404, 413, 408, 503, 503]);
}

/// A body that must not be read.
struct Unread;

impl HttpBody for Unread {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("the body is read")
    }
}

#[tokio::test]
async fn body_is_not_read_before_the_head_is_checked() {
    let auth = auth(Some(TOKEN));
    let right = ("authorization", "Bearer 0123456789abcdef");
    for (method, target, headers) in [
        ("POST", "/mcp", [OWN, ("authorization", "Bearer 0123456789abcdeg")]),
        ("POST", "/mcp", [OWN, ("accept", "application/json")]),
        ("POST", "/mcp", [("host", "evil.example"), right]),
        ("POST", "/", [OWN, right]),
        ("PUT", "/mcp", [OWN, right]),
    ] {
        let unread = request(method, target, &headers).map(|_| Unread);
        assert!(
            auth.admit(unread, NEAR, no_session).await.is_err(),
            "{method} {target} {headers:?}"
        );
    }
}

#[tokio::test]
async fn inputs_of_each_session_and_address_are_read_in_turns_of_their_own() {
    let auth = auth(Some(TOKEN));
    let mut turns = Vec::new();
    for (from, session) in
        [(NEAR, None), (NEAR, Some("one")), (NEAR, Some("other")), (FAR, None), (FAR, Some("one"))]
    {
        let admit = || auth.admit(with_token(TOKEN), from, |_, _| session.map(str::to_owned));
        let (first, second) = (admit().await.unwrap(), admit().await.unwrap());
        assert!(Arc::ptr_eq(
            input_turns_of(Some(first.account())),
            input_turns_of(Some(second.account()))
        ));
        turns.push(input_turns_of(Some(first.account())).clone());
    }
    for (index, own) in turns.iter().enumerate() {
        let others = turns.iter().skip(index + 1);
        assert!(others.into_iter().all(|other| !Arc::ptr_eq(own, other)), "{index}");
    }
}

#[tokio::test]
async fn sessions_of_one_address_take_no_memory_that_another_needs() {
    const MIB: u64 = 1 << 20;
    let limits = Limits { memory: MIB, total_memory: 256 * MIB, ..Limits::default() };
    let auth = limited(Some(TOKEN), limits);
    let mut held = Vec::new();
    for number in 0..40 {
        let session = |_: &RequestHead, _| Some(format!("session {number}"));
        let Ok(busy) = auth.admit(with_token(TOKEN), NEAR, session).await else { continue };
        while busy.account().reserve(MIB).is_ok() {}
        held.push(busy);
    }
    assert!(held.len() > 1, "several sessions found some");
    let other = auth.admit(with_token(TOKEN), FAR, no_session).await.unwrap();
    assert_eq!(other.account().reserve(8 * MIB), Ok(()));
}
