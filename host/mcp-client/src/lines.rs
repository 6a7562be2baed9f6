//! Messages as lines: the transport of a server that is reached over pipes.

use crate::inbox::{BOUNDS, Inbox, Received, Response, Sent, TOO_LONG, Taken};
use crate::runtime::LAST_MOMENT;
use palisade::tool::text::{cut, visible};
use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::transport::Transport;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The longest time for which a server may leave a message unread.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// The longest wait for a message that is being written when the connection is closed.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// The longest message of a server in a fault, in bytes.
const MAX_MESSAGE: usize = 512;

/// A message that is being read, which may take longer than one wait for it.
type Taking = Pin<Box<dyn Future<Output = Option<Taken>> + Send>>;

/// The transport of a connection.
pub(crate) struct Lines<R: AsyncRead + Unpin + Send + 'static, W> {
    /// `None` once the transport is dropped.
    reader: Option<R>,
    line: Vec<u8>,
    /// The message that is being read.
    taking: Option<Taking>,
    writer: Arc<tokio::sync::Mutex<W>>,
    inbox: Inbox,
}

impl<R: AsyncBufRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Lines<R, W> {
    /// Creates a transport.
    pub(crate) fn new(reader: R, writer: W, inbox: Inbox) -> Self {
        Self {
            reader: Some(reader),
            line: Vec::new(),
            taking: None,
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            inbox,
        }
    }

    fn ended(&self) -> CancellationToken {
        self.inbox.fault().ended().clone()
    }

    /// Reads until `line` is a whole line without its end. Returns `None` at the end of the
    /// connection. Keeps what it has read if it is dropped.
    async fn read_line(&mut self) -> Option<()> {
        loop {
            let reader = self.reader.as_mut()?;
            let read = reader.fill_buf().await.ok()?;
            if read.is_empty() {
                return None;
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(read.len());
            if self.line.len() + taken > BOUNDS.bytes {
                self.inbox.fault().set(TOO_LONG);
                return None;
            }
            self.line.extend_from_slice(&read[..taken]);
            reader.consume(end.map_or(taken, |end| end + 1));
            if end.is_some() {
                return Some(());
            }
        }
    }
}

impl<R: AsyncRead + Unpin + Send + 'static, W> Drop for Lines<R, W> {
    fn drop(&mut self) {
        let fault = self.inbox.fault();
        fault.end();
        let reader = self.reader.take().filter(|_| fault.get().is_none());
        let Some(mut reader) = reader else { return };
        // A program that writes after the end of its input would be killed by a closed pipe, before
        // it has written what it holds.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let rest = async { tokio::io::copy(&mut reader, &mut tokio::io::sink()).await };
                let _ = tokio::time::timeout(LAST_MOMENT, rest).await;
            });
        }
    }
}

impl<R, W> Lines<R, W>
where
    R: AsyncBufRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// Takes the next line. Returns `None` at the end of the connection. Keeps what it has read if
    /// it is dropped.
    async fn take(&mut self) -> Option<Option<Taken>> {
        if self.taking.is_none() {
            let place = self.inbox.place().await;
            self.read_line().await?;
            let line = std::mem::take(&mut self.line);
            self.taking = Some(Box::pin(self.inbox.take(line, place)));
        }
        let taken = self.taking.as_mut()?.await;
        self.taking = None;
        Some(taken)
    }

    /// Sends a response to the server. Its request has a place until the server has room for it.
    fn respond(&mut self, response: Response) {
        let Response { message, place } = response;
        let sent = self.send(message);
        tokio::spawn(async move {
            // A failure has ended the connection.
            let _ = sent.await;
            drop(place);
        });
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncBufRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: Sent) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        let inbox = self.inbox.clone();
        let ended = self.ended();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let write = async {
                let mut writer = writer.lock().await;
                writer.write_all(&line).await?;
                writer.flush().await
            };
            let written = tokio::select! {
                biased;
                () = ended.cancelled() => Err(io::ErrorKind::TimedOut.into()),
                written = tokio::time::timeout(WRITE_TIME, write) => {
                    written.unwrap_or_else(|_| {
                        inbox.fault().set("it did not read for 30 s");
                        Err(io::ErrorKind::TimedOut.into())
                    })
                }
            };
            inbox.sent(&message);
            if written.is_err() {
                // A server that reads nothing more is of no use: the next call starts it again.
                inbox.fault().end();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<Received> {
        let ended = self.ended();
        loop {
            // The lines of one server leave time for the others, which share its thread.
            tokio::task::coop::consume_budget().await;
            let taken = tokio::select! {
                biased;
                () = ended.cancelled() => return None,
                taken = self.take() => taken?,
            };
            match taken {
                Some(Taken::Message(JsonRpcMessage::Error(error))) if error.id.is_none() => {
                    // Nothing says which request it answers.
                    let message = visible(cut(&error.error.message, MAX_MESSAGE));
                    self.inbox.fault().set(format!("it sent an error without an id: {message}"));
                    return None;
                }
                Some(Taken::Message(message)) => return Some(message),
                Some(Taken::Response(response)) => self.respond(response),
                None if self.inbox.fault().get().is_some() => return None,
                None => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The messages that wait to be written have no reader.
        self.inbox.fault().end();
        match tokio::time::timeout(CLOSE_TIME, self.writer.lock()).await {
            Ok(mut writer) => writer.shutdown().await,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::handler::Handler;
    use crate::inbox::Fault;
    use rmcp::model::{ClientResult, RequestId};
    use tokio::io::{AsyncReadExt as _, BufReader};

    type Wire = Lines<BufReader<tokio::io::DuplexStream>, tokio::io::DuplexStream>;

    /// Returns a transport, the server's ends of its pipes, and its fault.
    fn wire() -> (Wire, tokio::io::DuplexStream, tokio::io::DuplexStream, Fault) {
        let (server_writes, reads) = tokio::io::duplex(64 << 10);
        let (writes, server_reads) = tokio::io::duplex(1 << 10);
        let fault = Fault::default();
        let inbox = Inbox::new(Handler::default(), fault.clone());
        (Lines::new(BufReader::new(reads), writes, inbox), server_writes, server_reads, fault)
    }

    fn response(id: i64) -> Sent {
        JsonRpcMessage::response(ClientResult::empty(()), RequestId::Number(id))
    }

    #[tokio::test]
    async fn message_is_read_after_lines_that_are_none() {
        let (mut wire, mut server, _reads, fault) = wire();
        server.write_all(b"starting\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"res").await.unwrap();
        tokio::select! {
            biased;
            _ = wire.receive() => panic!("there is no whole message"),
            () = tokio::task::yield_now() => {}
        }
        server.write_all(b"ult\":{}}\n").await.unwrap();
        assert!(matches!(wire.receive().await, Some(JsonRpcMessage::Response(_))));
        drop(server);
        assert!(wire.receive().await.is_none());
        assert_eq!(fault.get(), None);
    }

    #[tokio::test]
    async fn long_message_is_read_beside_the_other_connections() {
        let (mut wire, mut server, _reads, _fault) = wire();
        let mut long =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}1]}}"#, "{},".repeat(90_000));
        long.push('\n');
        let writing = tokio::spawn(async move { server.write_all(long.as_bytes()).await });
        let mut others = 0;
        loop {
            tokio::select! {
                biased;
                message = wire.receive() => {
                    assert!(matches!(message, Some(JsonRpcMessage::Response(_))));
                    break;
                }
                // The thread is free while the message is read, and loses nothing of it.
                () = tokio::task::yield_now(), if wire.taking.is_some() => others += 1,
                () = tokio::task::yield_now() => {}
            }
        }
        assert!(others > 0);
        writing.await.unwrap().unwrap();
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
        assert_eq!(fault.get().as_deref(), Some(TOO_LONG));
        assert!(wire.line.capacity() <= 8 << 20, "{}", wire.line.capacity());
        drop(wire);
        assert!(flood.await.unwrap() < 6 << 20);
    }

    #[tokio::test]
    async fn server_that_closes_its_input_is_left() {
        let (mut wire, _server, reads, fault) = wire();
        drop(reads);
        assert!(wire.send(response(1)).await.is_err());
        assert!(wire.receive().await.is_none());
        assert!(fault.ended().is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_bounded_by_their_unread_responses() {
        let (mut wire, mut server, mut reads, fault) = wire();
        let receiving = tokio::spawn(async move { wire.receive().await.is_none() });
        // The same id each time: a server without a state counts anew in each stream.
        let ping = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}\n";
        let response = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n";
        for _ in 0..100 {
            server.write_all(ping).await.unwrap();
            let mut read = vec![0; response.len()];
            reads.read_exact(&mut read).await.unwrap();
            assert_eq!(read, response);
        }
        // More than the pipe holds responses to, in one piece.
        server.write_all(&ping.repeat(100)).await.unwrap();
        let mut read = vec![0; response.len() * 100];
        reads.read_exact(&mut read).await.unwrap();
        assert_eq!(fault.get(), None, "requests with a response are not counted");
        server.write_all(&ping.repeat(100)).await.unwrap();
        assert!(receiving.await.unwrap());
        let reason = "it sent more than 16 requests and did not read the responses";
        assert_eq!(fault.get().as_deref(), Some(reason));
    }

    #[tokio::test]
    async fn error_without_an_id_ends_the_connection() {
        let (mut wire, mut server, _reads, fault) = wire();
        let error =
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}\n";
        server.write_all(error).await.unwrap();
        assert!(wire.receive().await.is_none());
        assert_eq!(fault.get().as_deref(), Some("it sent an error without an id: no"));
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_does_not_read_is_left() {
        let (mut wire, _server, _reads, fault) = wire();
        let full: Vec<_> = (0..64).map(|id| tokio::spawn(wire.send(response(id)))).collect();
        assert!(wire.receive().await.is_none());
        assert_eq!(fault.get().as_deref(), Some("it did not read for 30 s"));
        for sent in full {
            let _ = sent.await.unwrap();
        }
    }
}
