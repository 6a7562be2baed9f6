//! Tests of one connection, in memory and with a paused clock.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::http::{Access, Admitted, Body, Service};
use bytes::Bytes;
use hyper::body::Frame;
use palisade::BoxFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::DropGuard;

/// A service that echoes the body, or answers an empty one with an endless stream.
struct Echo(CancellationToken);

struct Endless {
    _dropped: DropGuard,
}

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1024])))))
    }
}

impl Service for Echo {
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>> {
        let body = match request.into_request().into_body() {
            body if body.is_empty() => Body::new(Endless { _dropped: self.0.clone().drop_guard() }),
            body => Body::from(body),
        };
        Box::pin(async move { Response::new(body) })
    }
}

struct Line {
    client: DuplexStream,
    stop: CancellationToken,
    /// Cancelled when an endless body is dropped.
    dropped: CancellationToken,
    served: JoinHandle<()>,
}

impl Line {
    fn open() -> Self {
        let bound = "127.0.0.1:8000".parse().unwrap();
        let (client, socket) = duplex(4096);
        let (stop, dropped) = (CancellationToken::new(), CancellationToken::new());
        let routes: Routes = vec![("/x", Arc::new(Echo(dropped.clone())))];
        let settings = Settings::new(bound, Access::Unauthenticated).unwrap();
        let handler = ConnectionHandler::new(&settings, bound, routes, Limits::default());
        let ended = stop.clone();
        let served =
            tokio::spawn(async move { handler.serve_stream(socket, bound.ip(), &ended).await });
        Self { client, stop, dropped, served }
    }

    async fn send(&mut self, text: &str) {
        let _ = self.client.write_all(text.as_bytes()).await;
    }

    /// Reads until the server closes the connection.
    async fn rest(&mut self) -> String {
        let mut text = Vec::new();
        let _ = self.client.read_to_end(&mut text).await;
        String::from_utf8_lossy(&text).into_owned()
    }

    async fn until(&mut self, end: &str) -> String {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            text.push(self.client.read_u8().await.unwrap());
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

const HEAD: &str = "POST /x HTTP/1.1\r\nhost: localhost:8000\r\n";

#[tokio::test(start_paused = true)]
async fn connection_answers_several_requests() {
    let mut line = Line::open();
    for text in ["one", "two!"] {
        line.send(&format!("{HEAD}content-length: {}\r\n\r\n{text}", text.len())).await;
        let answer = line.until(text).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_after_ten_seconds() {
    let mut line = Line::open();
    line.send(&format!("{HEAD}content-length: 1\r\n\r\nx")).await;
    line.until("x").await;
    let begun = Instant::now();
    assert_eq!(line.rest().await, "");
    assert_eq!(begun.elapsed(), HEAD_TIME);
}

#[tokio::test(start_paused = true)]
async fn slow_head_is_closed_after_ten_seconds() {
    let mut line = Line::open();
    let begun = Instant::now();
    line.send("POST /x HTTP/1.1\r\n").await;
    for _ in 0..9 {
        sleep(Duration::from_secs(1)).await;
        line.send("a: b\r\n").await;
    }
    assert_eq!(line.rest().await, "");
    assert_eq!(begun.elapsed(), HEAD_TIME);
}

#[tokio::test(start_paused = true)]
async fn silent_connection_is_closed_after_ten_seconds() {
    let (mut line, begun) = (Line::open(), Instant::now());
    assert_eq!(line.rest().await, "");
    assert_eq!(begun.elapsed(), HEAD_TIME);
}

#[tokio::test(start_paused = true)]
async fn head_has_64_headers_and_32_kibibytes_at_most() {
    let headers = |count| (0..count).map(|number| format!("a{number}: b\r\n")).collect::<String>();
    let long = |length| format!("a: {}\r\n", "b".repeat(length));
    let end = "content-length: 1\r\n\r\nx";
    for (head, status) in [
        (headers(62), "200"),
        (headers(63), "431"),
        (long(30 << 10), "200"),
        (long(32 << 10), "431"),
    ] {
        let (mut reader, mut writer) = tokio::io::split(Line::open().client);
        let text = format!("{HEAD}{head}{end}");
        let writing = tokio::spawn(async move { writer.write_all(text.as_bytes()).await });
        let mut answer = [0; 12];
        reader.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
        writing.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn missing_body_is_refused_after_ten_seconds() {
    let (mut line, begun) = (Line::open(), Instant::now());
    line.send(&format!("{HEAD}content-length: 5\r\n\r\nxx")).await;
    let answer = line.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("body_too_slow"), "{answer}");
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn client_that_reads_nothing_is_dropped_with_its_response() {
    let (mut line, begun) = (Line::open(), Instant::now());
    line.send(&format!("{HEAD}content-length: 0\r\n\r\n")).await;
    line.dropped.cancelled().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
    line.served.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn disconnect_drops_the_response() {
    let mut line = Line::open();
    line.send(&format!("{HEAD}content-length: 0\r\n\r\n")).await;
    line.until("\r\n\r\n").await;
    drop(line.client);
    line.dropped.cancelled().await;
    line.served.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_closes_idle_connections_at_once() {
    let mut line = Line::open();
    line.send(&format!("{HEAD}content-length: 1\r\n\r\nx")).await;
    line.until("x").await;
    let begun = Instant::now();
    line.stop.cancel();
    assert_eq!(line.rest().await, "");
    assert!(begun.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn rejected_request_leaves_the_connection_open() {
    let mut line = Line::open();
    line.send("GET /x HTTP/1.1\r\nhost: evil.example\r\n\r\n").await;
    let answer = timeout(Duration::from_secs(1), line.until("}")).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("\"code\":\"host_refused\""),
        "{answer}"
    );
    line.send(&format!("{HEAD}content-length: 2\r\n\r\nok")).await;
    assert!(line.until("ok").await.contains("200 OK"));
}

#[tokio::test(start_paused = true)]
async fn every_response_varies_by_origin() {
    for (headers, status) in [
        ("host: evil.example\r\n", 403),
        ("host: localhost:8000\r\norigin: https://evil.example\r\n", 403),
        ("host: localhost:8000\r\norigin: http://localhost:8000\r\n", 200),
        ("host: localhost:8000\r\n", 200),
    ] {
        let mut line = Line::open();
        line.send(&format!("POST /x HTTP/1.1\r\n{headers}content-length: 1\r\n\r\nx")).await;
        let head = line.until("\r\n\r\n").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert!(head.contains("\r\nvary: origin\r\n"), "{head}");
    }
}
