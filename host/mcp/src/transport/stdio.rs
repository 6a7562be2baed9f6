//! The transport of newline-delimited messages: bounded, in order, and with backpressure. Pipes and
//! sockets are read and written inline where that does not block, and other files on I/O threads.

mod backlog;
mod input;
mod line_splitter;
mod nonblocking;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use writer::Disconnect;

use super::fast_path::SimpleCall;
use crate::clients::client::Client;
use crate::handler::McpHandler;
use crate::messages::in_flight::{AdmissionError, InFlightRequests, Weight, cancelled_request};
use crate::messages::offload;
use crate::messages::parse::RejectedMessage;
use crate::messages::reply_accounts::ReplyAccounts;
use crate::messages::response_resources::ResponseResources;
use crate::messages::serialize::Serialized;
use crate::protocol::lifecycle::VERSION_KEY;
use backlog::{Incoming, ParsedMessage};
use input::{Backpressure, Input, InputEvent};
use nonblocking::{BlockingFile, NonblockingReader, NonblockingWriter, is_pollable};
use palisade::internal::Account;
use palisade::sandbox::limits::Limits;
use reader::LineReader;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, Extensions, GetExtensions as _, GetMeta as _,
    JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use writer::LineWriter;

/// The transport of one client.
pub(crate) struct StdioTransport {
    input: Input,
    writer: Arc<LineWriter>,
    connection: Connection,
    requests: Arc<Mutex<InFlightRequests>>,
    replies: ReplyAccounts,
    handshake: Handshake,
}

/// A connection: its client, the handler of the fast path, and its shutdown signals.
pub(crate) struct Connection {
    /// The client.
    pub(crate) client: Arc<Client>,
    /// The limits that the memory of messages counts against.
    pub(crate) limits: Limits,
    /// Answers the calls on the fast path.
    pub(crate) handler: Arc<McpHandler>,
    /// Held by each call on the fast path until its response is written. Its receiver learns when
    /// all of them are answered.
    pub(crate) fast_calls: mpsc::Sender<Infallible>,
    /// Cancelled when the connection ends.
    pub(crate) stop: CancellationToken,
    /// Set to the reason if the client disconnects.
    pub(crate) disconnect: Arc<OnceLock<Disconnect>>,
}

/// The state of a stateful client's handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handshake {
    Awaited,
    Begun,
}

impl StdioTransport {
    /// Starts reading and writing on I/O threads. When either ends, the client's calls are
    /// cancelled, and `stop` with them.
    pub(crate) fn on_threads(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        connection: Connection,
    ) -> io::Result<Self> {
        Ok(Self::new(LineReader::start(input)?, LineWriter::start(output)?, connection))
    }

    /// Starts over file descriptors that nothing else reads or writes; pipes and sockets are used
    /// inline. Must be called inside a runtime.
    pub(crate) fn over_descriptors(
        input: OwnedFd,
        output: OwnedFd,
        connection: Connection,
    ) -> io::Result<Self> {
        let reader = if is_pollable(&input) {
            LineReader::Inline(NonblockingReader::new(input)?)
        } else {
            LineReader::start(BlockingFile(File::from(input)))?
        };
        let inline = is_pollable(&output).then(|| output.try_clone()).transpose()?;
        let writer = LineWriter::start(BlockingFile(File::from(output)))?;
        let writer = match inline {
            Some(inline) => writer.with_inline(NonblockingWriter::new(inline)),
            None => writer,
        };
        Ok(Self::new(reader, writer, connection))
    }

    fn new(reader: LineReader, writer: LineWriter, connection: Connection) -> Self {
        let writer = Arc::new(writer.with_reason(connection.disconnect.clone()));
        let handler = connection.handler.clone();
        Self {
            input: Input::new(reader, writer.clone(), connection.limits, handler),
            writer,
            connection,
            requests: Arc::default(),
            replies: ReplyAccounts::default(),
            handshake: Handshake::Awaited,
        }
    }

    /// Returns the next message that is admitted, answering rejected ones. `None` at the end.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let (admitted, backpressure) = match self.input.next().await {
                InputEvent::Message(message, backpressure) => (self.take(message), backpressure),
                InputEvent::Rejected(rejected, backpressure) => (Err(rejected), backpressure),
                InputEvent::Ended(held_back) => {
                    held_back.into_iter().for_each(|id| self.reject(not_begun(id)));
                    return None;
                }
                InputEvent::Disconnected => return None,
            };
            match admitted {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(rejected) => match backpressure {
                    Backpressure::On => self.input.hold_back(rejected),
                    Backpressure::Off => self.reject(rejected),
                },
            }
        }
    }

    /// Queues an error response.
    fn reject(&self, rejected: RejectedMessage) {
        let written = self.writer.write(Serialized::bounded(&rejected.into_response()));
        let fast_calls = self.connection.fast_calls.clone();
        // The queue bounds the number of these tasks, which notice a client that does not read.
        tokio::spawn(async move {
            let _ = written.await;
            drop(fast_calls);
        });
    }

    /// Takes a message. Returns `None` for a call that was started on the fast path.
    fn take(
        &mut self,
        message: ParsedMessage,
    ) -> Result<Option<ClientJsonRpcMessage>, RejectedMessage> {
        let ParsedMessage { message, account } = message;
        match message {
            Incoming::Call(call) => {
                let cancelled = self.begin(call.id(), Weight::Heavy)?;
                self.start(*call, cancelled, account);
                Ok(None)
            }
            Incoming::Message(mut message) => {
                self.admit(&message)?;
                self.attach_account(&mut message, account);
                Ok(Some(*message))
            }
        }
    }

    /// Checks that a message may go to its handler.
    fn admit(&mut self, message: &ClientJsonRpcMessage) -> Result<(), RejectedMessage> {
        if let JsonRpcMessage::Request(request) = message {
            self.expect_handshake(&request.request, &request.id)?;
            self.begin(&request.id, Weight::of(&request.request))?;
        }
        if let Some(id) = cancelled_request(message) {
            let is_waiting = self.input.cancel(id);
            lock(&self.requests).cancel(id, is_waiting);
        }
        Ok(())
    }

    fn attach_account(&self, message: &mut ClientJsonRpcMessage, account: Account) {
        if let JsonRpcMessage::Request(request) = message {
            let resources = ResponseResources::new(account);
            lock(&self.requests).attach(&request.id, &resources);
            resources.attach(request.request.extensions_mut());
        } else {
            self.replies.deliver(message, &account);
        }
    }

    fn begin(&self, id: &RequestId, weight: Weight) -> Result<CancellationToken, RejectedMessage> {
        lock(&self.requests).begin(id, weight).map_err(|why| {
            // The error must not repeat a long id.
            let id = (why != AdmissionError::LongId).then(|| id.clone());
            RejectedMessage { id, error: ErrorData::invalid_request(why.to_string(), None) }
        })
    }

    /// Starts a call on the fast path, which writes its own response.
    fn start(&self, call: SimpleCall, cancelled: CancellationToken, account: Account) {
        let id = call.id().clone();
        let writer = self.writer.clone();
        let requests = self.requests.clone();
        let handler = self.connection.handler.clone();
        let fast_calls = self.connection.fast_calls.clone();
        let resources = ResponseResources::new(account);
        let mut extensions = Extensions::new();
        resources.attach(&mut extensions);
        tokio::spawn(async move {
            let response = call.run(&*handler, cancelled.clone(), extensions).await;
            let line = offload::serialize(response, resources).await;
            let written = {
                // A cancelled call must not be answered. The response takes its place in the queue
                // under the lock, before the next cancellation can be read.
                let mut requests = lock(&requests);
                requests.finish(&id, &cancelled).then(|| writer.write(line))
            };
            if let Some(written) = written {
                let _ = written.await;
            }
            drop(fast_calls);
        });
    }

    fn expect_handshake(
        &mut self,
        request: &ClientRequest,
        id: &RequestId,
    ) -> Result<(), RejectedMessage> {
        match request {
            ClientRequest::InitializeRequest(_) => self.handshake = Handshake::Begun,
            ClientRequest::PingRequest(_) => {}
            _ if self.handshake == Handshake::Awaited
                && request.get_meta().protocol_version().is_none() =>
            {
                let message = format!("want `initialize` first, or a `_meta` with `{VERSION_KEY}`");
                let error = ErrorData::invalid_request(message, None);
                return Err(RejectedMessage { id: Some(id.clone()), error });
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes an answered request. Returns the resources for its response.
    fn remove(&self, id: &RequestId) -> ResponseResources {
        let known = lock(&self.requests).remove(id);
        known.unwrap_or_else(|| ResponseResources::new(self.connection.limits.account()))
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = Disconnect;

    /// Queues the line before returning; the future completes when it is written.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Disconnect>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let line = match answered {
            None => {
                self.replies.record_request(&message);
                Ok(Serialized::bounded(&message))
            }
            Some(id) => {
                // Remove the request before the write: the client may reuse the id as soon as it
                // has read the response.
                let resources = self.remove(&id);
                Serialized::short_response(&message, &resources.account).ok_or((message, resources))
            }
        };
        let writer = self.writer.clone();
        let written = line.map(|line| writer.write(line));
        async move {
            match written {
                Ok(written) => written.await,
                Err((message, resources)) => {
                    let line = offload::serialize_long(message, resources).await;
                    writer.write(line).await
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        match self.next().await {
            Some(message) => Some(message),
            None => {
                // The connection has ended: cancel its in-flight calls.
                self.connection.client.disconnect();
                self.connection.stop.cancel();
                // The token stops `rmcp` at once. After an end of input it would wait for
                // responses.
                std::future::pending().await
            }
        }
    }

    async fn close(&mut self) -> Result<(), Disconnect> {
        self.connection.client.disconnect();
        Ok(())
    }
}

fn lock(requests: &Mutex<InFlightRequests>) -> MutexGuard<'_, InFlightRequests> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds the error for a request that was held back when the input ended.
fn not_begun(id: RequestId) -> RejectedMessage {
    let message = "the input ended before the request could begin";
    RejectedMessage { id: Some(id), error: ErrorData::internal_error(message, None) }
}
