//! Connections above the limit: each is answered with a written 503 and closed, so that its client
//! knows why and when to try again.

use super::connection::http_builder;
use super::rejection::Rejection;
use super::request_body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink};
use tokio::time::timeout;

/// The time for the whole exchange with a client that is turned away.
const TIME: Duration = Duration::from_secs(1);

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use tokio::io::{DuplexStream, duplex};
    use tokio::time::{Instant, sleep};

    const FULL: Rejection = Rejection::AddressFull(256);

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
        for line in ["retry-after: 1\r\n", "connection: close\r\n", "application/problem+json\r\n"]
        {
            assert!(answer.contains(line), "{line}: {answer}");
        }
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["code"], "too_many_connections");
        assert!(body["detail"].as_str().unwrap().contains("256 connections"), "{body}");
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
}
