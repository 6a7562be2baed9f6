//! Connections above the limit: each is answered with a written 503 and closed, so that its client
//! knows why and when to try again.

use super::connection::http_builder;
use super::rejection::Rejection;
use super::request_body;
use crate::rate_limit::{Rate, TokenBucket};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::ready;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink};
use tokio::time::{Instant, timeout};

/// The time for the whole exchange with a client that is turned away.
const TIME: Duration = Duration::from_secs(1);
/// The rate of log lines about turned away clients: one in ten seconds.
const LOG: Rate = Rate::one_per(Duration::from_secs(10), 1);

/// Reads the head of one request, answers it with this rejection, and closes the connection. Takes
/// a second at most; a client that sends no request in this time gets no answer.
pub(super) async fn turn_away<S>(socket: S, rejection: Rejection)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let _ = timeout(TIME, answer(socket, rejection)).await;
}

async fn answer<S>(socket: S, rejection: Rejection)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|_: Request<Incoming>| {
        ready(Ok::<_, Infallible>(rejection.clone().into_response()))
    });
    let mut http = http_builder(TIME);
    let connection = http.keep_alive(false).serve_connection(TokioIo::new(socket), service);
    if let Ok(parts) = connection.without_shutdown().await {
        let mut socket = parts.io.into_inner();
        let _ = socket.shutdown().await;
        // Closing a socket with unread bytes resets the connection, and the client could lose the
        // answer. So the rest of the request is read, and discarded.
        let _ = copy(&mut socket.take(request_body::MAX as u64), &mut sink()).await;
    }
}

/// The log of turned away clients, which a flood of connections does not fill.
#[derive(Debug)]
pub(super) struct TurnAwayLog {
    bucket: TokenBucket,
    /// The number of clients since the last line.
    unlogged: u64,
}

impl TurnAwayLog {
    pub(super) fn new(now: Instant) -> Self {
        Self { bucket: TokenBucket::new(LOG, now), unlogged: 0 }
    }

    /// Logs that a client was turned away, if the last line is old enough.
    pub(super) fn note(&mut self, from: IpAddr, rejection: &Rejection, now: Instant) {
        if let Some(line) = self.line(from, rejection, now) {
            tracing::warn!("{line}");
        }
    }

    fn line(&mut self, from: IpAddr, rejection: &Rejection, now: Instant) -> Option<String> {
        if self.bucket.take(now).is_err() {
            self.unlogged += 1;
            return None;
        }
        let more = match std::mem::take(&mut self.unlogged) {
            0 => String::new(),
            count => format!(" ({count} more connections since the last such line)"),
        };
        Some(format!("turned away a connection from {from}: {rejection}{more}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use tokio::io::{DuplexStream, duplex};
    use tokio::time::sleep;

    const FULL: Rejection = Rejection::AddressFull(256);
    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// Returns the client's end of a connection that is turned away.
    fn turned_away() -> DuplexStream {
        let (client, socket) = duplex(4096);
        tokio::spawn(turn_away(socket, FULL));
        client
    }

    async fn rest(mut client: DuplexStream) -> String {
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test(start_paused = true)]
    async fn client_gets_a_written_503() {
        let mut client = turned_away();
        client.write_all(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let answer = rest(client).await;
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
        for line in ["retry-after: 1\r\n", "connection: close\r\n", "application/json\r\n"] {
            assert!(answer.contains(line), "{line}: {answer}");
        }
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"], "too_many_connections");
        assert!(body["message"].as_str().unwrap().contains("256 connections"), "{body}");
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_follows_the_answer_is_read() {
        let mut client = turned_away();
        let body = vec![b'x'; 100 << 10];
        let head = format!("POST /x HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
        client.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 503");
        client.write_all(&body).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn request_that_has_arrived_is_answered_without_a_wait() {
        let (mut client, socket) = duplex(4096);
        client.write_all(b"GET /x HTTP/1.1\r\n\r\n").await.unwrap();
        let begun = Instant::now();
        let _ = timeout(Duration::ZERO, turn_away(socket, FULL)).await;
        assert!(rest(client).await.starts_with("HTTP/1.1 503 "));
        assert!(begun.elapsed() < Duration::from_millis(10), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn silent_client_is_closed_after_a_second() {
        let begun = Instant::now();
        let client = turned_away();
        assert_eq!(rest(client).await, "");
        assert_eq!(begun.elapsed(), TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn body_without_end_is_read_for_a_second() {
        let begun = Instant::now();
        let mut client = turned_away();
        let head = b"POST /x HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n";
        client.write_all(head).await.unwrap();
        while client.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
        assert!(begun.elapsed() >= TIME && begun.elapsed() < 2 * TIME, "{:?}", begun.elapsed());
    }

    #[test]
    fn flood_of_connections_is_logged_once_in_ten_seconds() {
        let start = Instant::now();
        let mut log = TurnAwayLog::new(start);
        let first = log.line(FROM, &FULL, start).unwrap();
        assert!(first.starts_with("turned away a connection from 127.0.0.1: all 256 "), "{first}");
        assert!((0..50).all(|_| log.line(FROM, &FULL, start).is_none()));
        let later = log.line(FROM, &FULL, start + Duration::from_secs(10)).unwrap();
        assert!(later.ends_with("(50 more connections since the last such line)"), "{later}");
    }
}
