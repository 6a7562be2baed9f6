//! A message a line: read and written on threads of their own, in bounds, and in order.

mod reader;
mod writer;

use super::client::Client;
use super::frame::{self, Refused};
use super::retired::Retired;
use reader::{Line, Reader};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;
use writer::{Gone, Writer};

/// The most requests of a client that are answered at once. What runs of them at once is the session's cap.
const IN_FLIGHT: usize = 64;

/// The lines of one client.
pub(super) struct Lines {
    reader: Reader,
    writer: Writer,
    client: Arc<Client>,
    stop: CancellationToken,
    in_flight: Arc<Mutex<HashSet<RequestId>>>,
    retired: Retired,
    handshake: Handshake,
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
        (client, stop): (Arc<Client>, CancellationToken),
    ) -> io::Result<Self> {
        let (reader, writer) = (Reader::start(input)?, Writer::start(output)?);
        Ok(Self {
            reader,
            writer,
            client,
            stop,
            in_flight: Arc::default(),
            retired: Retired::default(),
            handshake: Handshake::Awaited,
        })
    }

    /// The next message that may go on; one that may not is answered here. `None` at the end.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let line = tokio::select! {
                biased;
                () = self.writer.gone() => return None,
                line = self.reader.next() => line?,
            };
            let checked = match line {
                Line::Whole(bytes) => frame::message(&bytes).and_then(|message| self.admit(message)),
                Line::TooLong => Err(Refused { id: None, error: too_long() }),
            };
            match checked {
                Ok(message) => return Some(message),
                // Waited for: whoever sends nonsense and reads nothing is not read any further.
                Err(refused) => self.writer.write(&refused.into_message()).await.ok()?,
            }
        }
    }

    /// Whether a message may go on to its handler.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Result<ClientJsonRpcMessage, Refused> {
        match &message {
            JsonRpcMessage::Request(request) => {
                self.expect_handshake(&request.request, &request.id)?;
                self.take_off(&request.id)?;
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // It is not answered any more.
                    if books(&self.in_flight).remove(id) {
                        self.retired.add(id.clone());
                    }
                }
            }
            _ => {}
        }
        Ok(message)
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

    fn take_off(&self, id: &RequestId) -> Result<(), Refused> {
        let mut in_flight = books(&self.in_flight);
        let message = if in_flight.contains(id) {
            "a request of this id is still being answered"
        } else if self.retired.has(id) {
            "a request of this id was cancelled; no id may be used twice"
        } else if in_flight.len() >= IN_FLIGHT {
            "64 requests are being answered; send more when some of them have been"
        } else {
            in_flight.insert(id.clone());
            return Ok(());
        };
        Err(Refused { id: Some(id.clone()), error: ErrorData::invalid_request(message, None) })
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
        let (written, in_flight) = (self.writer.write(&message), self.in_flight.clone());
        async move {
            let written = written.await;
            if let Some(id) = answered {
                books(&in_flight).remove(&id);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        match self.next().await {
            Some(message) => Some(message),
            None => {
                // Whoever does not read any more, or write, waits for nothing.
                self.client.leave();
                self.stop.cancel();
                // By that token the library ends sooner than by an end of messages, after which it waits for answers.
                std::future::pending().await
            }
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        self.client.leave();
        Ok(())
    }
}

fn books(in_flight: &Mutex<HashSet<RequestId>>) -> MutexGuard<'_, HashSet<RequestId>> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}

fn too_long() -> ErrorData {
    let max = frame::BOUNDS.bytes;
    ErrorData::invalid_request(format!("a message may have {max} bytes; this one is longer"), None)
}
