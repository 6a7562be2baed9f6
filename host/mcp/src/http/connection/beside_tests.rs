//! Tests of the service of all other paths, over a connection in memory with a paused clock.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod streams;

use super::*;
use crate::http::{Access, Admitted, Body, Role, Token};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body as HttpBody, Frame};
use hyper::header::UPGRADE;
use hyper::upgrade::OnUpgrade;
use palisade::BoxFuture;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const CLIENT: &str = "0123456789abcdef";
const OPERATOR: &str = "fedcba9876543210";

/// A service that tells the role of each request, streams for ever at `/stream`, and echoes at
/// `/echo`, over the connection itself.
struct Roles;

impl Service for Roles {
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>> {
        let role = request.role();
        let mut request = request.into_request();
        let response = match request.uri().path() {
            "/stream" => Response::new(Body::new(Silent)),
            "/echo" => switch(request.extensions_mut().remove::<OnUpgrade>().unwrap()),
            _ => Response::new(Body::from(Bytes::from(format!("{role:?}")))),
        };
        Box::pin(async move { response })
    }

    fn is_public(&self, head: &RequestHead) -> bool {
        head.uri.path() == "/"
    }

    fn is_stream(&self, head: &RequestHead) -> bool {
        head.uri.path() == "/stream"
    }
}

fn switch(upgrade: OnUpgrade) -> Response<Body> {
    tokio::spawn(async move {
        let (mut reads, mut writes) = tokio::io::split(TokioIo::new(upgrade.await.unwrap()));
        let _ = tokio::io::copy(&mut reads, &mut writes).await;
    });
    let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    response.header(UPGRADE, "echo").header("connection", "upgrade").body(Body::empty()).unwrap()
}

/// A stream of one frame that never ends by itself.
struct Silent;

impl HttpBody for Silent {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Pending
    }
}

struct World {
    handler: Arc<ConnectionHandler>,
    logins: Logins,
    stop: CancellationToken,
    ended: CancellationToken,
}

impl World {
    fn new() -> Self {
        let bound = "127.0.0.1:8000".parse().unwrap();
        let access = Access::Token(Token::new(CLIENT).unwrap());
        let settings = Settings::new(bound, access).unwrap();
        let settings = settings.with_operator(Token::new(OPERATOR).unwrap()).unwrap();
        let (logins, ended) = (Logins::default(), CancellationToken::new());
        let service: Arc<dyn Service> = Arc::new(Roles);
        let beside = Beside { service: service.clone(), ended: ended.clone() };
        let handler =
            ConnectionHandler::new(&settings, bound, vec![("/mcp", service)], Limits::default());
        let handler = Arc::new(handler.with_logins(logins.clone()).with_beside(beside));
        Self { handler, logins, stop: CancellationToken::new(), ended }
    }

    fn connect(&self) -> (DuplexStream, JoinHandle<()>) {
        let (client, socket) = duplex(4096);
        let (handler, stop) = (self.handler.clone(), self.stop.clone());
        let from = "127.0.0.1".parse().unwrap();
        let served = tokio::spawn(async move { handler.serve_stream(socket, from, &stop).await });
        (client, served)
    }

    /// Sends a request over its own connection, and reads until its end.
    async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> String {
        let (mut client, _served) = self.connect();
        let length = body.len().to_string();
        let fixed =
            [("host", "localhost:8000"), ("connection", "close"), ("content-length", &length)];
        let headers = fixed.iter().chain(headers);
        let headers: String = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!("{line} HTTP/1.1\r\n{headers}\r\n{body}");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Logs a browser in.
    async fn login(&self) -> Login {
        Login::of(&self.log_in(&self.logins.issue().unwrap(), &[OWN]).await)
    }

    async fn log_in(&self, code: &str, headers: &[(&str, &str)]) -> String {
        let json = ("content-type", "application/json");
        let body = format!("{{\"code\": \"{code}\"}}");
        self.ask("POST /login", &[&[json], headers].concat(), &body).await
    }
}

const OWN: (&str, &str) = ("origin", "http://localhost:8000");

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The headers of both halves of a login.
struct Login {
    cookie: String,
    page_key: String,
}

impl Login {
    /// Reads the halves from the answer to a login.
    fn of(answer: &str) -> Self {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let line = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let page_key = body["page_key"].as_str().unwrap().to_owned();
        Self { cookie: line.split(';').next().unwrap().to_owned(), page_key }
    }

    /// Returns the header of the cookie, which each port of the host knows.
    fn cookie(&self) -> (&str, &str) {
        ("cookie", &self.cookie)
    }

    /// Returns the header of the page key.
    fn key(&self) -> (&str, &str) {
        ("palisade-page-key", &self.page_key)
    }

    /// Returns the headers of a request of an own page.
    fn own(&self) -> [(&str, &str); 3] {
        [self.cookie(), self.key(), OWN]
    }
}

#[tokio::test(start_paused = true)]
async fn other_paths_belong_to_the_service_with_the_role() {
    let world = World::new();
    for (token, role) in [(CLIENT, Role::Client), (OPERATOR, Role::Operator)] {
        let bearer = format!("Bearer {token}");
        for path in ["/mcp", "/", "/calls", "//mcp", "/mcp/", "/login/x"] {
            let answer =
                world.ask(&format!("POST {path}"), &[("authorization", &bearer)], "").await;
            assert!(answer.ends_with(&format!("\r\n\r\nSome({role:?})")), "{path} {answer}");
        }
    }
    let public = world.ask("GET /", &[], "").await;
    assert!(public.ends_with("\r\n\r\nNone"), "{public}");
    let long = world.ask("GET /", &[], "a body").await;
    assert_eq!(status(&long), 413, "a client without credentials holds no memory");
    let head = world.ask("HEAD /", &[], "").await;
    assert!(status(&head) == 200 && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test(start_paused = true)]
async fn refusal_is_a_problem_at_every_path() {
    let world = World::new();
    for (line, headers, code, status_code) in [
        ("GET /calls", &[][..], "token_needed", 401),
        ("POST /", &[], "token_needed", 401),
        ("HEAD /calls", &[], "", 401),
        ("GET /", &[("origin", "http://evil.example")], "origin_refused", 403),
    ] {
        let answer = world.ask(line, headers, "").await;
        assert_eq!(status(&answer), status_code, "{line} {answer}");
        assert!(answer.contains("content-type: application/problem+json\r\n"), "{answer}");
        assert!(answer.contains("cross-origin-resource-policy: same-origin\r\n"), "{answer}");
        assert!(answer.contains(code), "{answer}");
    }
    let body = async |line| {
        let answer = world.ask(line, &[], "").await;
        assert!(answer.contains("content-type: application/problem+json\r\n"), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    assert_eq!(body("POST /mcp").await, body("POST /calls").await, "one body for both");
}

#[tokio::test(start_paused = true)]
async fn service_answers_every_method_but_the_protocol_has_its_own() {
    let world = World::new();
    let bearer = format!("Bearer {OPERATOR}");
    for method in ["PUT", "PATCH", "OPTIONS", "HEAD", "SEARCH"] {
        let ask = async |path: &str| {
            let line = format!("{method} {path}");
            world.ask(&line, &[("authorization", &bearer)], "").await
        };
        assert_eq!(status(&ask("/calls").await), 200, "{method}");
        let protocol = ask("/mcp").await;
        assert_eq!(status(&protocol), 405, "{method}");
        assert!(protocol.contains("allow: POST, GET, DELETE\r\n"), "{protocol}");
        assert_eq!(status(&world.ask(&format!("{method} /calls"), &[], "").await), 401, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn code_is_exchanged_once_for_a_cookie_of_this_port_and_a_page_key() {
    let world = World::new();
    let code = world.logins.issue().unwrap();
    let answer = world.log_in(&code, &[OWN]).await;
    assert_eq!(status(&answer), 200, "{answer}");
    let line = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let (pair, attributes) = line.split_once(';').unwrap();
    assert_eq!(attributes, " Max-Age=86400; Path=/; HttpOnly; SameSite=Strict");
    let value = pair.strip_prefix("palisade_operator_8000=").unwrap();
    assert!(value.len() == 64 && value != OPERATOR, "{value}");
    assert!(answer.contains("cache-control: no-store\r\n"), "{answer}");
    assert!(answer.contains("content-type: application/json\r\n"), "{answer}");
    let login = Login::of(&answer);
    assert!(login.page_key.len() == 64 && login.page_key != value, "{}", login.page_key);
    let operator = world.ask("POST /calls", &login.own(), "").await;
    assert!(operator.ends_with("Some(Operator)"), "{operator}");
    let replayed = world.log_in(&code, &[OWN]).await;
    assert!(status(&replayed) == 401 && replayed.contains("code_refused"), "{replayed}");
    assert!(!replayed.contains("set-cookie") && !replayed.contains("page_key"), "{replayed}");
    // A second browser.
    let second = Login::of(&world.log_in(&world.logins.issue().unwrap(), &[]).await);
    for login in [&login, &second] {
        let operator = world.ask("GET /calls", &[login.cookie(), login.key()], "").await;
        assert!(operator.ends_with("Some(Operator)"), "{operator}");
    }
    let out = world.ask("POST /logout", &login.own(), "").await;
    assert!(status(&out) == 204 && out.contains("palisade_operator_8000=; Max-Age=0;"), "{out}");
    assert_eq!(status(&world.ask("GET /calls", &login.own(), "").await), 401);
    assert_eq!(status(&world.ask("GET /calls", &second.own(), "").await), 200);
}

#[tokio::test(start_paused = true)]
async fn half_of_a_login_opens_nothing_and_ends_no_login() {
    let world = World::new();
    let (login, other) = (world.login().await, world.login().await);
    for (halves, code) in [
        (&[login.cookie()][..], "page_key_needed"),
        (&[login.cookie(), other.key()], "login_ended"),
        (&[login.key()], "login_ended"),
    ] {
        let headers = [halves, &[OWN, ("sec-fetch-site", "same-origin")]].concat();
        for line in ["GET /calls", "POST /calls", "GET /stream", "GET /echo"] {
            let refused = world.ask(line, &headers, "").await;
            assert!(status(&refused) == 401 && refused.contains(code), "{line} {refused}");
            assert!(!refused.contains("Operator"), "{refused}");
        }
        let upgrade = [&headers[..], &[("upgrade", "websocket")]].concat();
        assert_eq!(status(&world.ask("GET /stream", &upgrade, "").await), 401);
        let out = world.ask("POST /logout", &headers, "").await;
        assert!(status(&out) == 204 || out.contains(code), "{out}");
        let public = world.ask("GET /", &headers, "").await;
        assert!(public.ends_with("\r\n\r\nNone"), "{public}");
    }
    for login in [login, other] {
        assert_eq!(status(&world.ask("GET /calls", &login.own(), "").await), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn code_expires_after_ten_minutes() {
    let world = World::new();
    let code = world.logins.issue().unwrap();
    tokio::time::advance(Duration::from_secs(600)).await;
    assert_eq!(status(&world.log_in(&code, &[OWN]).await), 401);
}

#[tokio::test(start_paused = true)]
async fn other_pages_can_log_nobody_in_or_out() {
    let world = World::new();
    let code = world.logins.issue().unwrap();
    for (headers, status_code) in [
        (&[("origin", "http://evil.example")][..], 403),
        (&[("origin", "null")], 403),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "same-site")], 403),
        (&[("host", "evil.example")], 403),
    ] {
        let answer = world.log_in(&code, headers).await;
        assert_eq!(status(&answer), status_code, "{headers:?} {answer}");
    }
    let body = format!("{{\"code\": \"{code}\"}}");
    for media in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let form = world.ask("POST /login", &[("content-type", media)], &body).await;
        assert!(status(&form) == 415 && form.contains("not_json"), "{form}");
    }
    let login = Login::of(&world.log_in(&code, &[OWN]).await);
    let both = [login.cookie(), login.key()];
    for headers in [&both[..], &[&both[..], &[("sec-fetch-site", "cross-site")]].concat()] {
        assert_eq!(status(&world.ask("POST /logout", headers, "").await), 403);
    }
    assert_eq!(status(&world.ask("GET /logout", &both, "").await), 405);
    assert_eq!(status(&world.ask("GET /calls", &both, "").await), 200);
}

#[tokio::test(start_paused = true)]
async fn login_reads_little_and_limits_guesses() {
    let world = World::new();
    let json = ("content-type", "application/json");
    let long = format!("{{\"code\": \"{}\"}}", "x".repeat(1024));
    for (body, status_code) in
        [(long.as_str(), 413), ("{}", 400), ("code", 400), ("{\"code\": 1}", 400)]
    {
        assert_eq!(status(&world.ask("POST /login", &[json], body).await), status_code, "{body}");
    }
    let (mut wrong, code) = (0, world.logins.issue().unwrap());
    while status(&world.log_in("0123", &[OWN]).await) == 401 {
        wrong += 1;
    }
    assert_eq!(wrong, 1_000);
    assert_eq!(status(&world.log_in(&code, &[OWN]).await), 200, "the right code is still taken");
}
