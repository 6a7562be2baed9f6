//! Tests of a connection to a client that does not read: what is still heard, and how it ends.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::line_splitter::Line;
use super::*;
use crate::clients::client_session::TransportKind;
use crate::{ServeError, Server, Settings};
use palisade::Host;
use palisade::plugins::Shipped;
use palisade::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use palisade::{Definition, ErrorKind, SideEffects};
use rmcp::model::ServerResult;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::mpsc as threads;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Serves a client that sends one request, with this output.
async fn served(output: impl Write + Send + 'static) -> Result<(), ServeError> {
    let (input, mut asks) = io::pipe().unwrap();
    asks.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    let host = Host::builder().shipped(Shipped::LeftOut).build().unwrap();
    let server = Server::new(Arc::new(host), Settings::default()).unwrap();
    let ended = server.serve_lines(input, output, CancellationToken::new()).await;
    // The input stays open until here, so that its end did not end the connection.
    drop(asks);
    ended
}

/// A pipe that is never read.
struct Stuck(threads::Receiver<()>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe whose reader has closed it.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_client_is_dropped_with_an_error() {
    let (_holds, stuck) = threads::channel();
    let ended = served(Stuck(stuck)).await;
    assert!(matches!(ended, Err(ServeError::Stalled)), "{ended:?}");
}

/// Runs in real time: a paused clock would advance while the writer thread meets the closed end.
#[tokio::test]
async fn closed_connection_ends_the_session() {
    assert!(served(Closed).await.is_ok());
}

/// A tool that runs until it is cancelled, and tells of both.
struct Waiting(Definition, UnboundedSender<&'static str>);

impl Tool for Waiting {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        call: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move {
            let _ = self.1.send("started");
            call.cancelled().await;
            let _ = self.1.send("cancelled");
            Err(ErrorKind::Cancelled)
        })
    }
}

/// A client that reads nothing, with a call of [`Waiting`] under the id 1 in flight.
struct Deaf {
    asks: io::PipeWriter,
    seen: UnboundedReceiver<&'static str>,
    _holds: threads::Sender<()>,
}

impl Deaf {
    async fn calling() -> Self {
        let (input, asks) = io::pipe().unwrap();
        let (tell, seen) = unbounded_channel();
        let (holds, stuck) = threads::channel();
        let make = move || {
            let definition =
                Definition::new("wait", "A tool.", SideEffects::None, json!({"type": "object"}))
                    .unwrap();
            Box::new(Waiting(definition, tell.clone())) as Box<dyn Tool>
        };
        let host = Host::builder().shipped(Shipped::LeftOut).tool(Arc::new(make)).build().unwrap();
        let server = Server::new(Arc::new(host), Settings::default()).unwrap();
        tokio::spawn(async move {
            server.serve_lines(input, Stuck(stuck), CancellationToken::new()).await
        });
        let mut client = Self { asks, seen, _holds: holds };
        client.says(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }}}));
        assert_eq!(client.sees().await, Some("started"));
        client
    }

    fn says(&mut self, message: &Value) {
        self.asks.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends more requests than the output has room for responses.
    fn fills_the_output(&mut self) {
        (2..102).for_each(|id| self.says(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
    }

    /// Returns the next event of the tool. It arrives long before the client is given up.
    async fn sees(&mut self) -> Option<&'static str> {
        timeout(Duration::from_secs(10), self.seen.recv()).await.ok()?
    }
}

#[tokio::test]
async fn stalled_client_can_cancel_a_call() {
    let mut client = Deaf::calling().await;
    client.fills_the_output();
    client.says(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    assert_eq!(client.sees().await, Some("cancelled"));
}

#[tokio::test]
async fn end_of_input_cancels_calls_of_a_stalled_client() {
    let mut client = Deaf::calling().await;
    client.fills_the_output();
    let Deaf { asks, mut seen, _holds } = client;
    drop(asks);
    assert_eq!(timeout(Duration::from_secs(10), seen.recv()).await, Ok(Some("cancelled")));
}

/// Returns the next message, if there is one now.
async fn now(transport: &mut StdioTransport) -> Option<ClientJsonRpcMessage> {
    let mut next = pin!(tokio::task::unconstrained(transport.next()));
    poll_fn(|cx| match next.as_mut().poll(cx) {
        Poll::Ready(message) => Poll::Ready(message),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn input_of_a_stalled_client_is_bounded() {
    let (_holds, stuck) = threads::channel();
    let (asks, asked) = mpsc::channel(1000);
    let host = Host::builder().shipped(Shipped::LeftOut).build().unwrap();
    let state = Server::new(Arc::new(host), Settings::default()).unwrap().0;
    let client = Arc::new(Client::new(&state.sessions, TransportKind::Stdio));
    let handler = Arc::new(McpHandler::for_client(state.clone(), client.clone()));
    let (fast_calls, _) = mpsc::channel(1);
    let connection = Connection {
        client,
        limits: state.host.limits(),
        handler,
        fast_calls,
        stop: CancellationToken::new(),
        disconnect: Arc::default(),
    };
    let writer = LineWriter::start(Stuck(stuck)).unwrap();
    let mut transport = StdioTransport::new(LineReader::Thread(asked), writer, connection);
    for id in 0..1000 {
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        asks.try_send(Line::Whole(ping.into())).unwrap();
    }
    while let Some(JsonRpcMessage::Request(ping)) = now(&mut transport).await {
        drop(transport.send(JsonRpcMessage::response(ServerResult::empty(()), ping.id)));
    }
    assert_eq!(
        asks.capacity(),
        64 + 128,
        "as many as have room in the output, and those that are held back"
    );
}
