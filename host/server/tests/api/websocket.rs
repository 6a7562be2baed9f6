//! Events over a WebSocket, on a real connection.

use super::world::{CLIENT, World};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use palisade_server::Role;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A program with its own authentication.
fn program(router: Router) -> Router {
    router.layer(middleware::from_fn(|mut request: Request, next: Next| async move {
        request.extensions_mut().insert(Role::Operator { name: "ana".into() });
        next.run(request).await
    }))
}

struct Socket {
    connection: TcpStream,
    bytes: Vec<u8>,
}

impl Socket {
    async fn open(world: &World, path: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = program(world.router.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut connection = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
             upgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut socket = Self { connection, bytes: Vec::new() };
        while !socket.bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            socket.more().await;
        }
        let end = socket.bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        let head: Vec<u8> = socket.bytes.drain(..end + 4).collect();
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        socket
    }

    async fn more(&mut self) {
        let mut bytes = [0; 4096];
        let count = self.connection.read(&mut bytes).await.unwrap();
        assert!(count > 0, "the connection has ended");
        self.bytes.extend_from_slice(&bytes[..count]);
    }

    async fn take(&mut self, count: usize) -> Vec<u8> {
        while self.bytes.len() < count {
            self.more().await;
        }
        self.bytes.drain(..count).collect()
    }

    /// Returns the kind and the payload of the next frame, which a server never masks.
    async fn frame(&mut self) -> (u8, Vec<u8>) {
        let head = self.take(2).await;
        let length = match head[1] {
            126 => usize::from(u16::from_be_bytes(self.take(2).await.try_into().unwrap())),
            127 => u64::from_be_bytes(self.take(8).await.try_into().unwrap()).try_into().unwrap(),
            short => usize::from(short),
        };
        (head[0] & 0x0f, self.take(length).await)
    }

    async fn event(&mut self) -> Value {
        loop {
            if let (1, text) = self.frame().await {
                return serde_json::from_slice(&text).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn events_come_over_a_websocket_and_continue() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let call = json!({"tool": "calculate", "input": {"expression": "1"}});
    let mut socket = Socket::open(&world, "/sessions/s1/events?after=0").await;
    world.post(&CLIENT, "/sessions/s1/calls", call).await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|event: &Value| event["event"] != "tool.completed") {
        seen.push(socket.event().await);
    }
    assert_eq!(seen[0]["data"]["session_id"], "s1");
    let first = seen[0]["id"].as_str().unwrap();
    let mut again = Socket::open(&world, &format!("/sessions/s1/events?after={first}")).await;
    for event in &seen[1..] {
        assert_eq!(again.event().await, *event);
    }
}

#[tokio::test]
async fn websocket_says_that_the_server_ends_soon() {
    let world = World::new();
    let mut socket = Socket::open(&world, "/events").await;
    world.server.drain();
    let told = socket.event().await;
    assert_eq!((&told["event"], &told["id"]), (&json!("server.draining"), &Value::Null));
    assert_eq!(told["data"]["event"], "server.draining", "{told}");
}

#[tokio::test]
async fn websocket_is_one_way() {
    let world = World::new();
    let mut socket = Socket::open(&world, "/events").await;
    // A masked text frame `x`.
    socket.connection.write_all(&[0x81, 0x81, 0, 0, 0, 0, b'x']).await.unwrap();
    let (kind, payload) = loop {
        let frame = socket.frame().await;
        if frame.0 == 8 {
            break frame;
        }
    };
    assert_eq!((kind, u16::from_be_bytes([payload[0], payload[1]])), (8, 1008));
}

/// A masked ping without a payload.
const PING: [u8; 6] = [0x89, 0x80, 0, 0, 0, 0];

#[tokio::test]
async fn pings_are_answered_once_and_too_many_end_the_connection() {
    let world = World::new();
    let mut socket = Socket::open(&world, "/events").await;
    for _ in 0..32 {
        socket.connection.write_all(&PING).await.unwrap();
        while socket.frame().await.0 != 10 {}
    }
    socket.connection.write_all(&PING).await.unwrap();
    let (kind, payload) = loop {
        let frame = socket.frame().await;
        assert_ne!(frame.0, 10, "each ping has one answer, and this one has none");
        if frame.0 == 8 {
            break frame;
        }
    };
    assert_eq!((kind, u16::from_be_bytes([payload[0], payload[1]])), (8, 1008));
}

#[tokio::test]
async fn websocket_counts_as_an_attached_operator() {
    let world = World::new();
    let mut socket = Socket::open(&world, "/events").await;
    assert_eq!(world.server.confirmer().attached(), 1);
    world.server.end_streams();
    while socket.frame().await.0 != 8 {}
}
