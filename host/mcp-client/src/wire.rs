//! Messages as lines, within bounds: the transport of a server that is reached over pipes.
//!
//! A server is not trusted to be brief, to read, or to speak the protocol. The connection ends when
//! it exceeds a bound.

use crate::handler::Handler;
use palisade::tool::json::{JsonBounds, parse_bounded};
use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

/// The bounds of one message of a server.
pub(crate) const BOUNDS: JsonBounds = JsonBounds { bytes: 4 << 20, depth: 72, members: 100_256 };
/// The most lines of a connection that are no messages: some programs print to their standard
/// output when they start.
const MAX_OTHER_LINES: usize = 1_000;
/// The most requests of a server that wait for a response.
const MAX_UNANSWERED: usize = 16;
/// The longest time for which a server may leave a message unread.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// The reason why a connection was ended, if a bound was exceeded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<&'static str>>>);

impl Fault {
    fn set(&self, reason: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }

    /// Returns the reason.
    pub(crate) fn get(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The transport of a connection.
pub(crate) struct Lines<R, W> {
    reader: R,
    line: Vec<u8>,
    other_lines: usize,
    writer: Arc<tokio::sync::Mutex<W>>,
    unanswered: Arc<AtomicUsize>,
    handler: Handler,
    fault: Fault,
    /// Cancelled when the server does not read.
    stuck: CancellationToken,
}

impl<R: AsyncBufRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Lines<R, W> {
    /// Creates a transport, which reports progress to the handler, and records in `fault` why it
    /// ends the connection.
    pub(crate) fn new(reader: R, writer: W, handler: Handler, fault: Fault) -> Self {
        Self {
            reader,
            line: Vec::new(),
            other_lines: 0,
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            unanswered: Arc::default(),
            handler,
            fault,
            stuck: CancellationToken::new(),
        }
    }

    /// Reads until `line` is a whole line without its end. Returns `None` at the end of the
    /// connection. Keeps what it has read if it is dropped.
    async fn read_line(&mut self) -> Option<()> {
        loop {
            let read = self.reader.fill_buf().await.ok()?;
            if read.is_empty() {
                return None;
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(read.len());
            if self.line.len() + taken > BOUNDS.bytes {
                self.fault.set("it sent a message of more than 4 MiB");
                return None;
            }
            self.line.extend_from_slice(&read[..taken]);
            self.reader.consume(end.map_or(taken, |end| end + 1));
            if end.is_some() {
                return Some(());
            }
        }
    }

    /// Takes the message of the line, if it is one.
    fn take_message(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let line = std::mem::take(&mut self.line);
        let text = str::from_utf8(&line).ok()?;
        let value = parse_bounded(text, BOUNDS).ok()?;
        serde_json::from_value(value).ok()
    }

    /// Returns false if the message is one too many.
    fn admits(&mut self, message: Option<&RxJsonRpcMessage<RoleClient>>) -> bool {
        match message {
            None => {
                self.other_lines += 1;
                if self.other_lines > MAX_OTHER_LINES {
                    self.fault.set("it sent more than 1,000 lines that are no messages");
                }
            }
            Some(JsonRpcMessage::Request(_)) => {
                if self.unanswered.fetch_add(1, Ordering::Relaxed) >= MAX_UNANSWERED {
                    self.fault.set("it sent more than 16 requests and did not read the responses");
                }
            }
            Some(_) => {}
        }
        self.fault.get().is_none()
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        let unanswered = self.unanswered.clone();
        let fault = self.fault.clone();
        let stuck = self.stuck.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let write = async {
                let mut writer = writer.lock().await;
                writer.write_all(&line).await?;
                writer.flush().await
            };
            let written = tokio::time::timeout(WRITE_TIME, write).await.unwrap_or_else(|_| {
                fault.set("it did not read for 30 s");
                stuck.cancel();
                Err(io::ErrorKind::TimedOut.into())
            });
            if matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
                unanswered.fetch_sub(1, Ordering::Relaxed);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let stuck = self.stuck.clone();
        loop {
            tokio::select! {
                biased;
                () = stuck.cancelled() => return None,
                read = self.read_line() => read?,
            }
            let message = self.take_message();
            if !self.admits(message.as_ref()) {
                return None;
            }
            if let Some(JsonRpcMessage::Notification(notification)) = &message
                && let ServerNotification::ProgressNotification(progress) =
                    &notification.notification
            {
                self.handler.report(&progress.params);
            }
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use rmcp::model::{ClientResult, RequestId};
    use tokio::io::{AsyncReadExt as _, BufReader};

    type Wire = Lines<BufReader<tokio::io::DuplexStream>, tokio::io::DuplexStream>;

    /// Returns a transport, the server's ends of its pipes, and its fault.
    fn wire() -> (Wire, tokio::io::DuplexStream, tokio::io::DuplexStream, Fault) {
        let (server_writes, reads) = tokio::io::duplex(64 << 10);
        let (writes, server_reads) = tokio::io::duplex(1 << 10);
        let fault = Fault::default();
        (
            Lines::new(BufReader::new(reads), writes, Handler::default(), fault.clone()),
            server_writes,
            server_reads,
            fault,
        )
    }

    fn response(id: i64) -> TxJsonRpcMessage<RoleClient> {
        JsonRpcMessage::response(ClientResult::empty(()), RequestId::Number(id))
    }

    #[tokio::test]
    async fn message_is_read_after_lines_that_are_none() {
        let (mut wire, mut server, _reads, fault) = wire();
        server.write_all(b"starting\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"meth").await.unwrap();
        tokio::select! {
            biased;
            _ = wire.receive() => panic!("there is no whole message"),
            () = tokio::task::yield_now() => {}
        }
        server.write_all(b"od\":\"ping\"}\n").await.unwrap();
        assert!(matches!(wire.receive().await, Some(JsonRpcMessage::Request(_))));
        drop(server);
        assert!(wire.receive().await.is_none());
        assert_eq!(fault.get(), None);
    }

    #[tokio::test]
    async fn endless_message_ends_the_connection() {
        let (mut wire, mut server, _reads, fault) = wire();
        let flood = tokio::spawn(async move {
            let block = vec![b'x'; 64 << 10];
            let mut written = 0_usize;
            while server.write_all(&block).await.is_ok() {
                written += block.len();
            }
            written
        });
        assert!(wire.receive().await.is_none());
        assert_eq!(fault.get(), Some("it sent a message of more than 4 MiB"));
        assert!(wire.line.capacity() <= 8 << 20, "{}", wire.line.capacity());
        drop(wire);
        assert!(flood.await.unwrap() < 6 << 20);
    }

    #[tokio::test]
    async fn lines_that_are_no_messages_are_bounded() {
        let (mut wire, mut server, _reads, fault) = wire();
        let flood = tokio::spawn(async move { while server.write_all(b"x\n").await.is_ok() {} });
        assert!(wire.receive().await.is_none());
        assert_eq!(fault.get(), Some("it sent more than 1,000 lines that are no messages"));
        drop(wire);
        flood.await.unwrap();
    }

    #[tokio::test]
    async fn requests_without_response_are_bounded() {
        let (mut wire, mut server, mut reads, fault) = wire();
        let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        for id in 0..100 {
            server.write_all(ping).await.unwrap();
            assert!(wire.receive().await.is_some(), "answered requests are not counted");
            wire.send(response(id)).await.unwrap();
            let mut read = [0; 256];
            assert!(reads.read(&mut read).await.unwrap() > 0);
        }
        for _ in 0..MAX_UNANSWERED {
            server.write_all(ping).await.unwrap();
            assert!(wire.receive().await.is_some());
        }
        server.write_all(ping).await.unwrap();
        assert!(wire.receive().await.is_none());
        let reason = "it sent more than 16 requests and did not read the responses";
        assert_eq!(fault.get(), Some(reason));
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_does_not_read_is_left() {
        let (mut wire, _server, _reads, fault) = wire();
        let full: Vec<_> = (0..64).map(|id| tokio::spawn(wire.send(response(id)))).collect();
        assert!(wire.receive().await.is_none());
        assert_eq!(fault.get(), Some("it did not read for 30 s"));
        for sent in full {
            let _ = sent.await.unwrap();
        }
    }
}
