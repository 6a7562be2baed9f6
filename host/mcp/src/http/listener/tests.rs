//! Tests of the connection limit and of shutdown, over real sockets.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::http::connection::HEAD_TIME;
use crate::http::{Access, Admitted, Body, Service, SettingsError, Token};
use hyper::Response;
use palisade::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A service that answers `ok`, or never answers a request that has a query.
struct Fake;

impl Service for Fake {
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>> {
        let is_quick = request.into_request().uri().query().is_none();
        Box::pin(async move {
            if !is_quick {
                std::future::pending::<()>().await;
            }
            Response::new(Body::from(bytes::Bytes::from("ok")))
        })
    }
}

fn std_listener() -> std::net::TcpListener {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap()
}

/// Starts a server, and returns its address, its stop token and its task.
fn start() -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    start_with(ConnectionLimit::new(64, 64))
}

fn start_with(limit: ConnectionLimit) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    start_within(limit, Limits::default())
}

fn start_within(
    limit: ConnectionLimit,
    limits: Limits,
) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let settings = Settings::new("127.0.0.1:0".parse().unwrap(), Access::Unauthenticated).unwrap();
    start_as(settings, limit, limits)
}

fn start_as(
    settings: Settings,
    limit: ConnectionLimit,
    limits: Limits,
) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let listener = Listener { limit, ..Listener::new(std_listener(), settings).unwrap() };
    let handler = listener.handler(vec![("/x", Arc::new(Fake))], limits);
    let (address, stop) = (listener.address(), CancellationToken::new());
    (address, stop.clone(), tokio::spawn(listener.run(handler, stop)))
}

/// Sends a request and returns the first bytes of the response.
async fn ask(socket: &mut TcpStream, target: &str) -> String {
    ask_with(socket, target, "").await
}

/// Sends a request with further header lines, and returns the first bytes of the response.
async fn ask_with(socket: &mut TcpStream, target: &str, headers: &str) -> String {
    let host = socket.peer_addr().unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
    let _ = socket.write_all(request.as_bytes()).await;
    let mut answer = [0; 1024];
    let count =
        timeout(Duration::from_secs(60), socket.read(&mut answer)).await.unwrap().unwrap_or(0);
    String::from_utf8_lossy(&answer[..count]).into_owned()
}

/// Sends a request that is never answered.
async fn hang(address: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket
        .write_all(format!("GET /x?hang HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    socket
}

/// Opens a connection, sends a request, and returns the first bytes of the response.
async fn ask_anew(address: SocketAddr) -> String {
    ask(&mut TcpStream::connect(address).await.unwrap(), "/x").await
}

/// Waits until the server answers a new connection.
async fn until_answered(address: SocketAddr) {
    let until = Instant::now() + Duration::from_secs(60);
    while !ask_anew(address).await.contains(" 200 OK") {
        assert!(Instant::now() < until, "no connection is free again");
    }
}

#[tokio::test]
async fn connection_above_the_limit_gets_503_and_the_others_are_answered() {
    let (address, _stop, _running) = start_with(ConnectionLimit::new(20, 8));
    let mut sockets = Vec::new();
    for _ in 0..8 {
        sockets.push(TcpStream::connect(address).await.unwrap());
    }
    // The server accepts in order: the first eight have their connections.
    for _ in 0..3 {
        let answer = ask_anew(address).await;
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"),
            "{answer}"
        );
        assert!(answer.contains("\"code\":\"too_many_connections\""), "{answer}");
    }
    for socket in &mut sockets {
        assert!(ask(socket, "/x").await.contains(" 200 OK"));
    }
}

#[tokio::test]
async fn operator_has_a_connection_beside_as_many_clients_as_are_let_in() {
    const OPERATOR: &str = "fedcba9876543210";
    let settings = Settings::new("127.0.0.1:0".parse().unwrap(), Access::Unauthenticated).unwrap();
    let settings = settings.with_operator(Token::new(OPERATOR).unwrap()).unwrap();
    let limit = ConnectionLimit::new(20, 8);
    let (address, _stop, _running) = start_as(settings, limit, Limits::default());
    let mut sockets = Vec::new();
    for _ in 0..7 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut socket, "/x").await.contains(" 200 OK"));
        sockets.push(socket);
    }
    // The last connection of the address is not for one more client.
    let answer = ask_anew(address).await;
    assert!(answer.contains("\"code\":\"too_many_connections\""), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    let bearer = format!("authorization: Bearer {OPERATOR}\r\n");
    let mut operator = TcpStream::connect(address).await.unwrap();
    assert!(ask_with(&mut operator, "/x", &bearer).await.contains(" 200 OK"));
    // A client that leaves makes room for another.
    drop(sockets.pop());
    drop(operator);
    until_answered(address).await;
}

#[tokio::test]
async fn closed_connection_makes_room_for_another() {
    let (address, _stop, _running) = start_with(ConnectionLimit::new(20, 2));
    let sockets = [hang(address).await, hang(address).await];
    assert!(ask_anew(address).await.contains(" 503 "));
    drop(sockets);
    until_answered(address).await;
}

#[tokio::test]
async fn silent_connection_is_free_again_after_the_head_timeout() {
    let (address, _stop, _running) = start_with(ConnectionLimit::new(20, 1));
    let mut silent = TcpStream::connect(address).await.unwrap();
    assert!(ask_anew(address).await.contains(" 503 "));
    tokio::time::pause();
    tokio::time::advance(HEAD_TIME).await;
    tokio::time::resume();
    assert_eq!(silent.read(&mut [0; 16]).await.unwrap(), 0);
    until_answered(address).await;
}

#[tokio::test]
async fn flood_above_the_limit_delays_no_admitted_client() {
    let (address, _stop, _running) = start_with(ConnectionLimit::new(20, 1));
    let mut admitted = TcpStream::connect(address).await.unwrap();
    assert!(ask(&mut admitted, "/x").await.contains(" 200 OK"));
    let mut silent = Vec::new();
    for _ in 0..3 * TURNED_AWAY {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(ask(&mut admitted, "/x").await.contains(" 200 OK"));
    drop((admitted, silent));
    until_answered(address).await;
}

#[tokio::test]
async fn listener_knows_its_names_and_port() {
    let settings = Settings::new("127.0.0.1:0".parse().unwrap(), Access::Unauthenticated)
        .unwrap()
        .with_host("tools.example")
        .unwrap();
    let listener = Listener::new(std_listener(), settings).unwrap();
    assert_ne!(listener.address().port(), 0);
    let all = ["127.0.0.1", "[::1]", "localhost", "tools.example"];
    assert_eq!(
        (listener.hosts(), listener.leading_hosts()),
        (all.map(str::to_owned).into(), all.map(str::to_owned).into())
    );
}

#[tokio::test]
async fn names_that_lead_to_another_program_are_not_told() {
    let Ok(other) = std::net::TcpListener::bind("[::1]:0") else { return };
    let port = other.local_addr().unwrap().port();
    let own = std::net::TcpListener::bind(("0.0.0.0", port)).unwrap();
    let access = Access::Token(Token::new("0123456789abcdef").unwrap());
    let settings = Settings::new(own.local_addr().unwrap(), access).unwrap();
    assert_eq!(Listener::new(own, settings).unwrap().leading_hosts(), ["127.0.0.1"]);
}

#[tokio::test]
async fn wildcard_listener_is_reachable_at_loopback() {
    for (bound, reachable) in [("0.0.0.0:0", "127.0.0.1"), ("127.0.0.1:0", "127.0.0.1")] {
        let socket = std::net::TcpListener::bind(bound).unwrap();
        let access = Access::Token(Token::new("0123456789abcdef").unwrap());
        let settings = Settings::new(bound.parse().unwrap(), access).unwrap();
        let listener = Listener::new(socket, settings).unwrap();
        let told = listener.reachable();
        assert_eq!(
            (told.ip().to_string(), told.port()),
            (reachable.to_owned(), listener.address().port())
        );
        assert!(AllowedHosts::new(listener.address(), &[], &[]).allows_host(&told.to_string()));
    }
}

#[tokio::test]
async fn shutdown_accepts_nothing_and_waits_two_seconds() {
    let (address, stop, running) = start();
    let mut hanging = hang(address).await;
    // The server accepts in order: the hanging connection was accepted before this one.
    assert!(ask(&mut TcpStream::connect(address).await.unwrap(), "/x").await.contains(" 200 OK"));
    let begun = Instant::now();
    stop.cancel();
    running.await.unwrap();
    assert!(begun.elapsed() >= GRACE && begun.elapsed() < 5 * GRACE, "{:?}", begun.elapsed());
    assert_eq!(hanging.read(&mut [0; 16]).await.unwrap_or(0), 0);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn shutdown_without_requests_is_immediate() {
    let (address, stop, running) = start();
    let mut idle = TcpStream::connect(address).await.unwrap();
    assert!(ask(&mut idle, "/x").await.contains(" 200 OK"));
    let begun = Instant::now();
    stop.cancel();
    running.await.unwrap();
    assert!(begun.elapsed() < GRACE);
}

#[tokio::test]
async fn bound_address_decides_whether_a_token_is_needed() {
    let settings = |token: Option<&str>| {
        let access = token
            .map_or(Access::Unauthenticated, |token| Access::Token(Token::new(token).unwrap()));
        Settings::new("127.0.0.1:0".parse().unwrap(), access).unwrap()
    };
    let open = || std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let error = Listener::new(open(), settings(None)).unwrap_err();
    let reason = error.get_ref().unwrap().downcast_ref::<SettingsError>();
    assert!(matches!(reason, Some(SettingsError::TokenNeeded(_))), "{error}");
    assert!(Listener::new(open(), settings(Some("0123456789abcdef"))).is_ok());
    assert!(Listener::new(std_listener(), settings(None)).is_ok());
}

#[tokio::test]
async fn connection_without_memory_gets_a_written_503() {
    let none = Limits { total_memory: 0, ..Limits::default() };
    let (address, _stop, _served) = start_within(ConnectionLimit::new(64, 64), none);
    let answer = ask_anew(address).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
}
