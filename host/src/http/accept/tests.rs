//! How many connections there are, and how they end, over real sockets.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::execution::BoxFuture;
use crate::http::{Admitted, Body, Service, SettingsError, Token};
use hyper::Response;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Says `ok`, or nothing ever.
struct Fake;

impl Service for Fake {
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>> {
        let is_quick = request.into_request().uri().query().is_none();
        Box::pin(async move {
            if !is_quick {
                std::future::pending::<()>().await;
            }
            Response::new(http_body_util::BodyExt::boxed(http_body_util::Full::from("ok")))
        })
    }
}

fn listener() -> std::net::TcpListener {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap()
}

fn start() -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let settings = Settings::new("127.0.0.1:0".parse().unwrap(), None).unwrap();
    let server = Server::new(listener(), settings).unwrap();
    let (address, stop, door) = (server.address(), CancellationToken::new(), server.door(vec![("/x", Arc::new(Fake))]));
    (address, stop.clone(), tokio::spawn(server.run(door, stop)))
}

/// Sends a request, and reads what comes of an answer.
async fn ask(socket: &mut TcpStream, target: &str) -> String {
    let host = socket.peer_addr().unwrap();
    let _ = socket.write_all(format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await;
    let mut answer = [0; 1024];
    let count = timeout(Duration::from_secs(60), socket.read(&mut answer)).await.unwrap().unwrap_or(0);
    String::from_utf8_lossy(&answer[..count]).into_owned()
}

fn from(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

#[test]
fn one_address_has_thirty_two_connections_and_no_more() {
    let places = Places::default();
    let mut taken: Vec<_> = (0..32).map(|_| places.take(from(1)).unwrap()).collect();
    assert!(places.take(from(1)).is_none());
    assert!(places.take(from(2)).is_some());
    taken.pop();
    assert!(places.take(from(1)).is_some());
}

#[test]
fn all_together_have_a_hundred_and_twenty_eight() {
    let places = Places::default();
    let mut taken: Vec<_> = (0..128).map(|number| places.take(from(number / 32)).unwrap()).collect();
    assert!(places.take(from(9)).is_none());
    taken.pop();
    assert!(places.take(from(9)).is_some());
    drop(taken);
    assert!(places.0.lock().unwrap().is_empty(), "nothing is kept of those that have gone");
}
#[tokio::test]
async fn of_five_hundred_connections_thirty_two_are_served_and_later_others() {
    let (address, stop, running) = start();
    let mut sockets = Vec::new();
    for _ in 0..500 {
        sockets.push(TcpStream::connect(address).await.unwrap());
    }
    let mut served = 0;
    for socket in &mut sockets {
        let answer = ask(socket, "/x").await;
        assert!(answer.is_empty() || answer.contains(" 200 OK") || answer.contains(" 503 "), "{answer}");
        served += usize::from(answer.contains(" 200 OK"));
    }
    assert_eq!(served, 32);
    drop(sockets);
    let until = Instant::now() + Duration::from_secs(60);
    while !ask(&mut TcpStream::connect(address).await.unwrap(), "/x").await.contains(" 200 OK") {
        assert!(Instant::now() < until, "there is room again");
    }
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_server_knows_its_names_and_the_port_that_the_system_chose() {
    let settings = Settings::new("127.0.0.1:0".parse().unwrap(), None).unwrap().with_host("tools.example").unwrap();
    let server = Server::new(listener(), settings).unwrap();
    assert_ne!(server.address().port(), 0);
    assert_eq!(server.hosts(), ["127.0.0.1", "[::1]", "localhost", "tools.example"]);
}

#[tokio::test]
async fn at_the_end_nobody_is_let_in_and_who_hangs_is_waited_for_two_seconds() {
    let (address, stop, running) = start();
    let mut hanging = TcpStream::connect(address).await.unwrap();
    hanging.write_all(format!("GET /x?hang HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).await.unwrap();
    // It was taken in before this one, which was answered.
    assert!(ask(&mut TcpStream::connect(address).await.unwrap(), "/x").await.contains(" 200 OK"));
    let begun = Instant::now();
    stop.cancel();
    running.await.unwrap();
    assert!(begun.elapsed() >= GRACE && begun.elapsed() < 5 * GRACE, "{:?}", begun.elapsed());
    assert_eq!(hanging.read(&mut [0; 16]).await.unwrap_or(0), 0);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_server_whose_clients_have_gone_ends_at_once() {
    let (address, stop, running) = start();
    let mut idle = TcpStream::connect(address).await.unwrap();
    assert!(ask(&mut idle, "/x").await.contains(" 200 OK"));
    let begun = Instant::now();
    stop.cancel();
    running.await.unwrap();
    assert!(begun.elapsed() < GRACE);
}

#[tokio::test]
async fn a_listener_that_others_can_reach_needs_a_token_whatever_the_settings_were_made_for() {
    let settings = |token: Option<&str>| {
        Settings::new("127.0.0.1:0".parse().unwrap(), token.map(|token| Token::new(token).unwrap())).unwrap()
    };
    let open = || std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let error = Server::new(open(), settings(None)).unwrap_err();
    let reason = error.get_ref().unwrap().downcast_ref::<SettingsError>();
    assert!(matches!(reason, Some(SettingsError::TokenNeeded(_))), "{error}");
    assert!(Server::new(open(), settings(Some("0123456789abcdef"))).is_ok());
    assert!(Server::new(listener(), settings(None)).is_ok());
}
