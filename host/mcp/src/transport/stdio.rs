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

use crate::clients::client::Client;
use crate::handler::Front;
use crate::messages::in_flight::{NotTaken, Requests, Weight, cancelled};
use crate::messages::offload;
use crate::messages::parse::{self, Refused};
use crate::messages::reply_accounts::Replies;
use crate::messages::response_resources::Maker;
use crate::messages::serialize::Written;
use crate::transport::fast_path::Plain;
use backlog::{Held, Input};
use input::{Heard, Parsing, Turn};
use palisade::internal::Account;
use reader::Reader;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, Extensions, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
pub(crate) use writer::Gone;
use writer::Writer;

/// The connection of one client.
pub(crate) struct Lines {
    reader: Reader,
    writer: Arc<Writer>,
    ends: Ends,
    requests: Arc<Mutex<Requests>>,
    replies: Replies,
    /// Messages that wait for room in the output.
    held: Held,
    /// A long message that is parsed on another thread. It is kept here, because the library may
    /// drop the future of `receive` while it waits.
    parsing: Option<Parsing>,
    /// Held by each call on the fast path until its response is written.
    underway: mpsc::Sender<Infallible>,
    handshake: Handshake,
}

/// The endpoints of a connection: the fast path's handler, the client, and shutdown signals.
pub(crate) struct Ends {
    /// Answers the calls on the fast path.
    pub(crate) short: Arc<Front>,
    pub(crate) client: Arc<Client>,
    pub(crate) stop: CancellationToken,
    /// Its receiver learns when all calls on the fast path are answered.
    pub(crate) underway: mpsc::Sender<Infallible>,
    /// Set to the reason if the client stops reading.
    pub(crate) gone: Arc<OnceLock<Gone>>,
}

/// The state of a legacy client's handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handshake {
    Awaited,
    Begun,
}

impl Lines {
    /// Starts reading and writing on I/O threads. When either ends, the client's calls are
    /// cancelled, and `stop` with them.
    pub(crate) fn start(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        ends: Ends,
    ) -> io::Result<Self> {
        Ok(Self::over(Reader::start(input)?, Writer::start(output)?, ends))
    }

    /// Starts over file descriptors that nothing else reads or writes; pipes and sockets are used
    /// inline. Must be called inside a runtime.
    pub(crate) fn between(input: OwnedFd, output: OwnedFd, ends: Ends) -> io::Result<Self> {
        let reader = if nonblocking::tells(&input) {
            Reader::Here(nonblocking::Ready::new(input)?)
        } else {
            Reader::start(nonblocking::Patient(File::from(input)))?
        };
        let room = nonblocking::tells(&output)
            .then(|| output.try_clone())
            .transpose()?
            .map(nonblocking::Room::new);
        let writer = Writer::start(nonblocking::Patient(File::from(output)))?;
        let writer = match room {
            Some(room) => writer.in_place(room),
            None => writer,
        };
        Ok(Self::over(reader, writer, ends))
    }

    fn over(reader: Reader, writer: Writer, ends: Ends) -> Self {
        let (writer, underway) =
            (Arc::new(writer.noting(ends.gone.clone())), ends.underway.clone());
        Self {
            reader,
            writer,
            ends,
            requests: Arc::default(),
            replies: Replies::default(),
            held: Held::default(),
            parsing: None,
            underway,
            handshake: Handshake::Awaited,
        }
    }

    /// Returns the next message that is admitted, answering rejected ones. `None` at the end.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let (taken, turn) = match self.heard().await? {
                Heard::Line(line) => {
                    let turn = self.turn();
                    (self.come(line, turn), turn)
                }
                Heard::Due(Input::Line(line, _owed)) => (self.read(line, Turn::Now), Turn::Now),
                Heard::Due(Input::Parsed(value, account)) => (self.take(value, account), Turn::Now),
                Heard::Due(Input::Refused(refused)) => (Err(refused), Turn::Now),
                Heard::Parsed(parsed, account, turn) => {
                    (parsed.and_then(|value| self.parsed(value, account, turn)), turn)
                }
            };
            match taken {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refused) if turn == Turn::Later => self.held.put_refused(refused),
                Err(refused) => self.refuse(refused),
            }
        }
    }

    /// Queues an error response.
    fn refuse(&self, refused: Refused) {
        let (written, underway) =
            (self.writer.write(&refused.into_message()), self.underway.clone());
        // The queue bounds the number of these tasks, which notice a client that does not read.
        tokio::spawn(async move {
            let _ = written.await;
            drop(underway);
        });
    }

    /// Takes a message. Returns `None` for a call that was started on the fast path.
    fn take(
        &mut self,
        value: Value,
        account: Account,
    ) -> Result<Option<ClientJsonRpcMessage>, Refused> {
        match Plain::of(value) {
            Ok(plain) => self
                .book(plain.id(), Weight::Heavy)
                .map(|ends| self.begin(plain, ends, account))
                .map(|()| None),
            Err(value) => self
                .admit(parse::message(value)?)
                .map(|message| Some(self.accounted(message, account))),
        }
    }

    /// Checks that a message may go to its handler.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Result<ClientJsonRpcMessage, Refused> {
        if let JsonRpcMessage::Request(request) = &message {
            self.expect_handshake(&request.request, &request.id)?;
            self.book(&request.id, Weight::of(&request.request))?;
        }
        if let Some(id) = cancelled(&message) {
            let is_held = self.held.cancel(id);
            books(&self.requests).cancel(id, is_held);
        }
        Ok(message)
    }

    /// Attaches the memory account to a message.
    fn accounted(
        &self,
        mut message: ClientJsonRpcMessage,
        account: Account,
    ) -> ClientJsonRpcMessage {
        use rmcp::model::GetExtensions as _;
        if let JsonRpcMessage::Request(request) = &mut message {
            let maker = Maker::new(account);
            books(&self.requests).keep(&request.id, &maker);
            maker.attach(request.request.extensions_mut());
        } else {
            self.replies.came(&message, &account);
        }
        message
    }

    fn book(&self, id: &RequestId, weight: Weight) -> Result<CancellationToken, Refused> {
        let taken = books(&self.requests).begin(id, weight);
        // The error must not repeat a long id.
        let known = |why| (why != NotTaken::LongId).then(|| id.clone());
        taken.map_err(|why| Refused {
            id: known(why),
            error: ErrorData::invalid_request(why.to_string(), None),
        })
    }

    /// Starts a call, which writes its own response.
    fn begin(&self, call: Plain, ends: CancellationToken, account: Account) {
        let (id, writer, requests) =
            (call.id().clone(), self.writer.clone(), self.requests.clone());
        let (front, underway) = (self.ends.short.clone(), self.underway.clone());
        let (maker, mut extensions) = (Maker::new(account), Extensions::new());
        maker.attach(&mut extensions);
        tokio::spawn(async move {
            let answer = call.answered(&*front, ends.clone(), extensions).await;
            let line = offload::written(answer, maker).await;
            let written = {
                // A cancelled call must not be answered. The response takes its place in the queue
                // under the lock, before the next cancellation can be read.
                let mut books = books(&requests);
                books.answer(&id, &ends).then(|| writer.put(line))
            };
            if let Some(written) = written {
                let _ = written.await;
            }
            drop(underway);
        });
    }

    fn expect_handshake(&mut self, request: &ClientRequest, id: &RequestId) -> Result<(), Refused> {
        use rmcp::model::GetMeta as _;
        match request {
            ClientRequest::InitializeRequest(_) => self.handshake = Handshake::Begun,
            ClientRequest::PingRequest(_) => {}
            _ if self.handshake == Handshake::Awaited
                && request.get_meta().protocol_version().is_none() =>
            {
                let message = "want `initialize` first, or a `_meta` with `io.modelcontextprotocol/protocolVersion`";
                return Err(Refused {
                    id: Some(id.clone()),
                    error: ErrorData::invalid_request(message, None),
                });
            }
            _ => {}
        }
        Ok(())
    }
}

impl Transport<RoleServer> for Lines {
    type Error = Gone;

    /// Queues the line before returning; the future completes when it is written.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let written = match answered {
            None => {
                self.replies.sent(&message);
                Ok(Written::unasked(&message))
            }
            Some(id) => {
                // Remove the request before the write: the client may reuse the id as soon as it has
                // read the response.
                let known = books(&self.requests).end(&id);
                let maker = known.unwrap_or_else(|| Maker::new(self.ends.short.account()));
                Written::at_once(&message, &maker.account).ok_or((message, maker))
            }
        };
        let queued =
            written.map(|line| self.writer.put(line)).map_err(|large| (large, self.writer.clone()));
        async move {
            match queued {
                Ok(queued) => queued.await,
                Err(((message, maker), writer)) => {
                    let line = offload::large(message, maker).await;
                    writer.put(line).await
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        match self.next().await {
            Some(message) => Some(message),
            None => {
                // The connection has ended: cancel its in-flight calls.
                self.ends.client.leave();
                self.ends.stop.cancel();
                // The token stops the library at once. After an end of input it would wait for
                // responses.
                std::future::pending().await
            }
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        self.ends.client.leave();
        Ok(())
    }
}

fn books(requests: &Mutex<Requests>) -> MutexGuard<'_, Requests> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

fn too_long() -> ErrorData {
    let max = parse::BOUNDS.bytes;
    ErrorData::invalid_request(format!("a message may have {max} bytes; this one is longer"), None)
}
