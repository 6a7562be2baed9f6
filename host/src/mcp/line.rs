//! A message a line: in bounds, and in order; read and written in place where that does not wait, and on threads of their own otherwise.

mod reader;
#[cfg(unix)]
mod ready;
mod split;
#[cfg(test)]
mod tests;
mod writer;

use super::answer::Written;
use super::client::Client;
use super::frame::{self, Refused};
use super::handler::Front;
use super::replies::Replies;
use super::requests::{NotTaken, Requests, Weight, cancelled};
use super::short::Plain;
use crate::execution::account::Account;
use reader::Reader;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, Extensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use split::Line;
use std::convert::Infallible;
#[cfg(unix)]
use std::fs::File;
use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
pub(super) use writer::Gone;
use writer::Writer;

/// The lines of one client.
pub(super) struct Lines {
    reader: Reader,
    writer: Arc<Writer>,
    ends: Ends,
    requests: Arc<Mutex<Requests>>,
    replies: Replies,
    /// Held by each call that goes the short way until it was answered.
    underway: mpsc::Sender<Infallible>,
    handshake: Handshake,
}

/// What lines lead to.
pub(super) struct Ends {
    /// Answers what goes the short way.
    pub(super) short: Arc<Front>,
    pub(super) client: Arc<Client>,
    pub(super) stop: CancellationToken,
    /// Whose other end learns when all calls were answered that went the short way.
    pub(super) underway: mpsc::Sender<Infallible>,
    /// Where the reason is left if the client does not read any more.
    pub(super) gone: Arc<OnceLock<Gone>>,
}

/// Whether a legacy client has said who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handshake {
    Awaited,
    Begun,
}

impl Lines {
    /// Starts to read and to write; when either has ended, the client's calls are, and `stop` is cancelled.
    pub(super) fn start(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        ends: Ends,
    ) -> io::Result<Self> {
        Ok(Self::over(Reader::start(input)?, Writer::start(output)?, ends))
    }

    /// The same over two that may be pipes or sockets, in which nobody else reads or writes. Called inside of a runtime.
    #[cfg(unix)]
    pub(super) fn between(input: OwnedFd, output: OwnedFd, ends: Ends) -> io::Result<Self> {
        let reader = if ready::tells(&input) {
            Reader::Here(ready::Ready::new(input)?)
        } else {
            Reader::start(ready::Patient(File::from(input)))?
        };
        let room = ready::tells(&output).then(|| output.try_clone()).transpose()?.map(ready::Room::new);
        let writer = Writer::start(ready::Patient(File::from(output)))?;
        let writer = match room {
            Some(room) => writer.in_place(room),
            None => writer,
        };
        Ok(Self::over(reader, writer, ends))
    }

    fn over(reader: Reader, writer: Writer, ends: Ends) -> Self {
        let (writer, underway) = (Arc::new(writer.noting(ends.gone.clone())), ends.underway.clone());
        Self {
            reader,
            writer,
            ends,
            requests: Arc::default(),
            replies: Replies::default(),
            underway,
            handshake: Handshake::Awaited,
        }
    }

    /// The next message that may go on; one that may not is answered here. `None` at the end.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let line = tokio::select! {
                biased;
                _ = self.writer.gone() => return None,
                // Whoever does not read what was answered is not read any further.
                line = async { self.writer.room().await; self.reader.next().await } => line?,
            };
            match self.take(line) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                // Waited for: whoever sends nonsense and reads nothing is not read any further.
                Err(refused) => self.writer.write(&refused.into_message()).await.ok()?,
            }
        }
    }

    /// The message of a line, unless it is a call that has begun with this.
    fn take(&mut self, line: Line) -> Result<Option<ClientJsonRpcMessage>, Refused> {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong(id) => return Err(Refused { id, error: too_long() }),
        };
        // What the message takes is held until it is answered.
        let account = self.ends.short.account();
        match Plain::of(frame::check(&bytes, &account)?) {
            Ok(plain) => {
                self.book(plain.id(), Weight::Heavy).map(|ends| self.begin(plain, ends, account)).map(|()| None)
            }
            Err(value) => self.admit(frame::message(value)?).map(|message| Some(self.held(message, account))),
        }
    }

    /// Whether a message may go on to its handler.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Result<ClientJsonRpcMessage, Refused> {
        if let JsonRpcMessage::Request(request) = &message {
            self.expect_handshake(&request.request, &request.id)?;
            self.book(&request.id, Weight::of(&request.request))?;
        }
        if let Some(id) = cancelled(&message) {
            books(&self.requests).cancel(id);
        }
        Ok(message)
    }

    /// A message that is handed on with the account that its memory counts in.
    fn held(&self, mut message: ClientJsonRpcMessage, account: Account) -> ClientJsonRpcMessage {
        use rmcp::model::GetExtensions as _;
        if let JsonRpcMessage::Request(request) = &mut message {
            books(&self.requests).keep(&request.id, &account);
            request.request.extensions_mut().insert(account);
        } else {
            self.replies.came(&message, &account);
        }
        message
    }

    fn book(&self, id: &RequestId, weight: Weight) -> Result<CancellationToken, Refused> {
        let taken = books(&self.requests).begin(id, weight);
        // A long id is not repeated.
        let known = |why| (why != NotTaken::LongId).then(|| id.clone());
        taken.map_err(|why| Refused { id: known(why), error: ErrorData::invalid_request(why.to_string(), None) })
    }

    /// Begins with a call, which answers by itself.
    fn begin(&self, call: Plain, ends: CancellationToken, account: Account) {
        let (id, writer, requests) = (call.id().clone(), self.writer.clone(), self.requests.clone());
        let (front, underway) = (self.ends.short.clone(), self.underway.clone());
        let tool = call.tool().to_owned();
        let mut extensions = Extensions::new();
        extensions.insert(account.clone());
        self.ends.short.begin(&tool, async move {
            let answer = call.answered(&*front, ends.clone(), extensions).await;
            let line = Written::answer(&answer, &account);
            drop((answer, account));
            let written = {
                // What was cancelled is not answered: its answer has its place before the next cancellation is read, or gets none.
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
            _ if self.handshake == Handshake::Awaited && request.get_meta().protocol_version().is_none() => {
                let message = "want `initialize` first, or a `_meta` with `io.modelcontextprotocol/protocolVersion`";
                return Err(Refused { id: Some(id.clone()), error: ErrorData::invalid_request(message, None) });
            }
            _ => {}
        }
        Ok(())
    }
}

impl Transport<RoleServer> for Lines {
    type Error = Gone;

    /// The line has its place before this returns, and is written when the future ends.
    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let Some(id) = answered else {
            self.replies.sent(&message);
            return self.writer.put(Written::unasked(&message));
        };
        // Before it is written: whoever reads the answer may use its id again at once.
        let account = books(&self.requests).end(&id);
        self.writer.put(Written::answer(&message, &account.unwrap_or_else(|| self.ends.short.account())))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        match self.next().await {
            Some(message) => Some(message),
            None => {
                // Whoever does not read any more, or write, waits for nothing.
                self.ends.client.leave();
                self.ends.stop.cancel();
                // By that token the library ends sooner than by an end of messages, after which it waits for answers.
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
    let max = frame::BOUNDS.bytes;
    ErrorData::invalid_request(format!("a message may have {max} bytes; this one is longer"), None)
}
