//! Connections over HTTP: how many are answered, and the answer to those above the limit.

use super::http::{request, session};
use super::{call, serving};
use palisade_tests::World;
use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::mcp::{MODERN, modern};
use palisade_tests::mcp_http::{Answer, Endpoint, answer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// An upper bound for the time until an answer arrives, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of connections that one address may have in any case.
const ANSWERED: usize = 200;
/// The largest number of connections that one address may have.
const LIMIT: usize = 256;

const HEADERS: [(&str, &str); 3] =
    [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "good")];

/// Returns the message of a call of the tool `good`.
fn message() -> Value {
    let params = modern(call("good", json!({})), &json!({}));
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

fn start(world: &World) -> Endpoint {
    Endpoint::start(serving(world, LOADER_GOOD), &[])
}

/// Opens connections, and sends nothing.
fn connect(endpoint: &Endpoint, count: usize) -> Vec<TcpStream> {
    let open = || {
        let socket = TcpStream::connect(&endpoint.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    (0..count).map(|_| open()).collect()
}

/// Sends the call on an open connection.
fn send(endpoint: &Endpoint, socket: &mut TcpStream) {
    let body = message().to_string();
    let mut request = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", endpoint.address);
    let length = body.len().to_string();
    let more = [
        ("Connection", "close"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Length", length.as_str()),
    ];
    for (name, value) in HEADERS.iter().chain(&more) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
}

#[track_caller]
fn is_answered(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.message()["result"]["content"][0]["text"], "good", "{answer:?}");
}

#[test]
fn two_hundred_connections_of_one_address_are_answered() {
    let world = World::new();
    let endpoint = start(&world);
    let mut sockets = connect(&endpoint, ANSWERED);
    sockets.iter_mut().for_each(|socket| send(&endpoint, socket));
    sockets.into_iter().for_each(|socket| is_answered(&answer(socket)));
}

#[test]
fn fifty_calls_at_once_in_one_session_are_answered() {
    let world = World::new();
    let endpoint = start(&world);
    let id = session(&endpoint);
    let begin = |number: u32| {
        let mut message = request("tools/call", &call("good", json!({})));
        message["id"] = json!(number);
        endpoint.begin("POST", &[("Mcp-Session-Id", &id)], &message.to_string())
    };
    let sockets: Vec<_> = (1..=50).map(begin).collect();
    for (number, socket) in (1..).zip(sockets) {
        let answer = answer(socket);
        is_answered(&answer);
        assert_eq!(answer.message()["id"], json!(number));
    }
}

#[test]
fn connection_above_the_limit_gets_a_written_503() {
    let world = World::new();
    let endpoint = start(&world);
    let mut sockets = connect(&endpoint, LIMIT);
    // The server accepts in order, so that all slots of this address are taken now.
    let rejected = endpoint.post(&HEADERS, &message());
    assert_eq!((rejected.status, rejected.header("retry-after")), (503, Some("1")));
    assert_eq!(rejected.message()["code"], "too_many_connections", "{rejected:?}");
    let mut first = sockets.remove(0);
    send(&endpoint, &mut first);
    is_answered(&answer(first));
    drop(sockets);
    let start = Instant::now();
    while endpoint.post(&HEADERS, &message()).status != 200 {
        assert!(start.elapsed() < PATIENCE, "closed connections release no capacity");
    }
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).unwrap();
    endpoint.end().stderr_contains(&["turned away a connection from 127.0.0.1"]);
}

#[test]
fn every_response_varies_by_origin() {
    let world = World::new();
    let endpoint = start(&world);
    for (header, status) in [
        (("Origin", "http://evil.example"), 403),
        (("Host", "evil.example"), 403),
        (("Mcp-Name", "good"), 200),
    ] {
        let headers = HEADERS.iter().copied().filter(|(name, _)| *name != header.0);
        let headers: Vec<_> = headers.chain([header]).collect();
        let answer = endpoint.post(&headers, &message());
        assert_eq!((answer.status, answer.header("vary")), (status, Some("origin")), "{answer:?}");
    }
}
