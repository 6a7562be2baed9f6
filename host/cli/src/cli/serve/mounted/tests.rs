//! Tests of a router behind the gate, over real sockets.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use axum::Extension;
use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{Message, WebSocket};
use axum::routing::{any, get};
use palisade::Host;
use palisade::plugins::Shipped;
use palisade_mcp::Server;
use palisade_mcp::http::{Access, Logins, Settings, Token};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const CLIENT: &str = "0123456789abcdef";
const OPERATOR: &str = "fedcba9876543210";

/// The extension by which the router knows who sent a request.
#[derive(Debug, Clone)]
struct Sender(String);

fn router() -> Router {
    Router::new()
        .route("/healthz", get(|| async { "healthy" }))
        .route("/sender", any(|Extension(Sender(sender)): Extension<Sender>| async { sender }))
        .route("/events", any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(greet) }))
}

async fn greet(mut socket: WebSocket) {
    let _ = socket.send(Message::Text("hello".into())).await;
    while socket.recv().await.is_some() {}
}

struct Running {
    address: SocketAddr,
    logins: Logins,
    stop: CancellationToken,
    served: JoinHandle<()>,
    _workspace: tempfile::TempDir,
}

fn start() -> Running {
    let workspace = tempfile::tempdir().unwrap();
    let host = Host::builder().workspace(workspace.path()).shipped(Shipped::LeftOut).build();
    let server = Server::new(Arc::new(host.unwrap()), palisade_mcp::Settings::default()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings::new(address, Access::Token(Token::new(CLIENT).unwrap())).unwrap();
    let settings = settings.with_operator(Token::new(OPERATOR).unwrap()).unwrap();
    let mounted = Mounted::new(
        router(),
        |head| head.uri.path() == "/healthz",
        |head| head.uri.path() == "/events",
        |caller, role, request| {
            let id = caller.id();
            let kind = id.split('-').next().unwrap_or_default();
            request.extensions_mut().insert(Sender(format!("{kind} {role:?}")));
        },
    );
    let http = server.over_http(listener, settings).unwrap().with_fallback(Arc::new(mounted));
    let logins = http.logins().unwrap();
    let stop = CancellationToken::new();
    let served = tokio::spawn(http.run(stop.clone()));
    Running { address, logins, stop, served, _workspace: workspace }
}

impl Running {
    /// Opens a connection, and sends a request.
    async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let length = body.len().to_string();
        let host = self.address.to_string();
        let fixed = [("host", host.as_str()), ("content-length", &length)];
        let lines = fixed.iter().chain(headers);
        let lines: String = lines.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!("{line} HTTP/1.1\r\n{lines}\r\n{body}");
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> String {
        let headers = [headers, &[("connection", "close")]].concat();
        let mut answer = String::new();
        self.send(line, &headers, body).await.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

#[tokio::test]
async fn router_knows_who_asks() {
    let running = start();
    let public = running.ask("GET /healthz", &[], "").await;
    assert!(public.starts_with("HTTP/1.1 200 ") && public.ends_with("healthy"), "{public}");
    let head = running.ask("HEAD /healthz", &[], "").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("content-length: 7\r\n"), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    for (token, sender) in [(CLIENT, "token Some(Client)"), (OPERATOR, "token Some(Operator)")] {
        let bearer = format!("Bearer {token}");
        let answer = running.ask("POST /sender", &[("authorization", &bearer)], "").await;
        assert!(answer.ends_with(sender), "{answer}");
    }
    let stranger = running.ask("GET /sender", &[], "").await;
    assert!(stranger.starts_with("HTTP/1.1 401 "), "{stranger}");
}

#[tokio::test]
async fn logged_in_browser_opens_a_websocket_that_ends_with_the_server() {
    let running = start();
    let origin = format!("http://{}", running.address);
    let origin = ("origin", origin.as_str());
    let body = format!("{{\"code\":\"{}\"}}", running.logins.issue().unwrap());
    let json = ("content-type", "application/json");
    let answer = running.ask("POST /login", &[origin, json], &body).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = ("cookie", cookie.split(';').next().unwrap());
    let half = running.ask("GET /sender", &[cookie, origin], "").await;
    assert!(half.starts_with("HTTP/1.1 401 "), "{half}");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let key = ("palisade-page-key", body["page_key"].as_str().unwrap());
    let known = running.ask("GET /sender", &[cookie, key], "").await;
    assert!(known.ends_with("browser Some(Operator)"), "{known}");
    // The key and the answer are those of RFC 6455, section 1.3.
    let handshake = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let cross_site = [&handshake[..], &[cookie, key]].concat();
    let mut refused = running.send("GET /events", &cross_site, "").await;
    let mut start = [0; 12];
    refused.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 403");
    let mut socket = running.send("GET /events", &[&cross_site[..], &[origin]].concat(), "").await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
    let mut frame = [0; 7];
    socket.read_exact(&mut frame).await.unwrap();
    assert_eq!(&frame, b"\x81\x05hello");
    running.stop.cancel();
    timeout(Duration::from_secs(10), running.served).await.unwrap().unwrap();
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
    assert!(rest.len() <= 4, "at most a close frame: {rest:?}");
}
