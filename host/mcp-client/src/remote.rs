//! The transport of a server that is reached over HTTP: each message is a request, and its response
//! is a message or a stream of them (Streamable HTTP, revision 2025-06-18 of the specification).
//!
//! The optional stream that a server opens on its own is not asked for, and none is resumed.

use crate::events::{EventTooLong, Events};
use crate::inbox::{self, BOUNDS, Inbox, Place, Received, Sent, TOO_LONG, Taken, failed};
use crate::reach::ServerUrl;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use palisade::tool::text::cut;
use palisade_net::{Exchange, ExchangeError, Reach, Streamed};
use rmcp::RoleClient;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId, ServerResult};
use rmcp::transport::Transport;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The longest wait for the head of a response: longer than a call may take.
const RESPONSE_TIME: Duration = Duration::from_secs(660);
/// The longest wait for the acceptance of a message that has no response.
const ACCEPTANCE_TIME: Duration = Duration::from_secs(5);
/// The header of the session's id.
const SESSION: &str = "mcp-session-id";
/// The header of the protocol version.
const VERSION: &str = "mcp-protocol-version";
/// The longest id of a session, in bytes.
const MAX_SESSION: usize = 1 << 10;
/// The longest protocol version, in bytes.
const MAX_VERSION: usize = 64;

/// The transport of a connection.
pub(crate) struct Remote {
    shared: Arc<Shared>,
    received: mpsc::Receiver<Received>,
}

struct Shared {
    server: ServerUrl,
    inbox: Inbox,
    sender: mpsc::Sender<Received>,
    state: Mutex<State>,
    /// Cancelled when the connection is over.
    over: CancellationToken,
}

#[derive(Default)]
struct State {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// The requests that wait for their responses.
    waiting: HashMap<RequestId, CancellationToken>,
}

impl Remote {
    /// Creates a transport. Nothing is sent yet.
    pub(crate) fn new(server: ServerUrl, inbox: Inbox) -> Self {
        let (sender, received) = mpsc::channel(1);
        let over = CancellationToken::new();
        let shared = Shared { server, inbox, sender, state: Mutex::default(), over };
        Self { shared: Arc::new(shared), received }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.shared.over.cancel();
    }
}

impl Transport<RoleClient> for Remote {
    type Error = io::Error;

    fn send(&mut self, message: Sent) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let shared = self.shared.clone();
        async move { shared.send(message).await }
    }

    async fn receive(&mut self) -> Option<Received> {
        tokio::select! {
            biased;
            message = self.received.recv() => message,
            () = self.shared.over.cancelled() => None,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.shared.over.cancel();
        let session = self.shared.state().session.take();
        if let Some(session) = session {
            // Best effort: a server forgets its sessions in time.
            let request = self.shared.request(Method::DELETE, Bytes::new(), Some(session));
            let _ = self.shared.server.network.open(request, Duration::from_secs(2)).await;
        }
        Ok(())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message. The response to a request is awaited in a task of its own.
    async fn send(self: Arc<Self>, message: Sent) -> io::Result<()> {
        let body = Bytes::from(serde_json::to_vec(&message)?);
        if let JsonRpcMessage::Request(request) = &message {
            let id = request.id.clone();
            let stop = self.over.child_token();
            self.state().waiting.insert(id.clone(), stop.clone());
            self.inbox.sent(&message);
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = self.answer(&id, body) => {}
                }
                self.state().waiting.remove(&id);
            });
            return Ok(());
        }
        // First, so that a server that accepts nothing holds no connection of a cancelled request.
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.end_waiting(id);
        }
        self.accepted(body).await.map_err(io::Error::other)
    }

    /// Sends a response to the server. Its request has a place until the server has accepted it.
    async fn respond(self: Arc<Self>, response: inbox::Response) {
        let inbox::Response { message, place } = response;
        if let Ok(body) = serde_json::to_vec(&message) {
            // A server that does not accept it waits in vain.
            let _ = self.accepted(body.into()).await;
        }
        drop(place);
    }

    /// Sends a message that has no response.
    async fn accepted(&self, body: Bytes) -> Result<(), String> {
        tokio::select! {
            biased;
            () = self.over.cancelled() => Err("the connection is over".to_owned()),
            accepted = self.post(body, ACCEPTANCE_TIME) => accepted.map(drop),
        }
    }

    /// Sends a request, and passes on what comes as its response.
    async fn answer(self: &Arc<Self>, id: &RequestId, body: Bytes) {
        let mut stream = match self.post(body, RESPONSE_TIME).await {
            Ok(stream) => stream,
            Err(reason) => return self.pass_on(failed(id.clone(), reason)).await,
        };
        self.keep_session(&stream.headers);
        let kind = stream.headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let ended = if is_event_stream(kind) {
            self.read_events(&mut stream, id).await
        } else {
            self.read_message(&mut stream, id).await
        };
        match ended {
            Ok(Response::Passed) => {}
            Ok(Response::Missing) => {
                self.pass_on(failed(id.clone(), "the server sent no response")).await;
            }
            Err(error) => self.pass_on(failed(id.clone(), error.to_string())).await,
        }
    }

    /// Reads a body that is one message.
    async fn read_message(
        self: &Arc<Self>,
        stream: &mut Streamed,
        id: &RequestId,
    ) -> Result<Response, ExchangeError> {
        let mut text = Vec::new();
        while let Some(piece) = stream.next().await? {
            if text.len() + piece.len() > BOUNDS.bytes {
                self.end(TOO_LONG);
                return Ok(Response::Passed);
            }
            text.extend_from_slice(&piece);
        }
        Ok(self.take(text, self.inbox.free_place(), id).await)
    }

    /// Reads a body that is a stream of messages, to the response.
    async fn read_events(
        self: &Arc<Self>,
        stream: &mut Streamed,
        id: &RequestId,
    ) -> Result<Response, ExchangeError> {
        let mut events = Events::default();
        while let Some(piece) = stream.next().await? {
            // The streams of one server leave time for the others, which share its thread.
            tokio::task::yield_now().await;
            let mut texts = Vec::new();
            let read = events.read(&piece, BOUNDS.bytes, |text| texts.push(text));
            self.inbox.count_idle(events.take_idle());
            if self.inbox.fault().get().is_some() {
                self.over.cancel();
                return Ok(Response::Passed);
            }
            for text in texts {
                tokio::task::coop::consume_budget().await;
                let place = self.inbox.place().await;
                if self.take(text, place, id).await == Response::Passed {
                    return Ok(Response::Passed);
                }
            }
            if read == Err(EventTooLong) {
                self.end(TOO_LONG);
                return Ok(Response::Passed);
            }
        }
        Ok(Response::Missing)
    }

    /// Passes on the message of a text, and says whether it is the response to a request, or ends
    /// the connection.
    async fn take(
        self: &Arc<Self>,
        text: Vec<u8>,
        place: Option<Place>,
        id: &RequestId,
    ) -> Response {
        let message = self.inbox.take(text, place).await;
        if self.inbox.fault().get().is_some() {
            self.over.cancel();
            return Response::Passed;
        }
        let message = match message {
            None => return Response::Missing,
            Some(Taken::Response(response)) => {
                tokio::spawn(self.clone().respond(response));
                return Response::Missing;
            }
            // It answers the request whose response it is in.
            Some(Taken::Message(JsonRpcMessage::Error(error))) if error.id.is_none() => {
                failed(id.clone(), error.error.message)
            }
            Some(Taken::Message(message)) => message,
        };
        if let JsonRpcMessage::Response(response) = &message
            && response.id == *id
            && let ServerResult::InitializeResult(result) = &response.result
        {
            let version = result.protocol_version.as_str();
            self.state().version = HeaderValue::from_str(cut(version, MAX_VERSION)).ok();
        }
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        self.pass_on(message).await;
        match answered {
            Some(answered) if answered == *id => Response::Passed,
            Some(another) => {
                self.end_waiting(&another);
                Response::Missing
            }
            None => Response::Missing,
        }
    }

    /// Ends the request that waits for this response: its connection lives no longer than it waits.
    fn end_waiting(&self, id: &RequestId) {
        if let Some(waiting) = self.state().waiting.remove(id) {
            waiting.cancel();
        }
    }

    async fn pass_on(&self, message: Received) {
        // Fails if the connection is over.
        let _ = self.sender.send(message).await;
    }

    /// Ends the connection.
    fn end(&self, reason: &str) {
        self.inbox.fault().set(reason);
        self.over.cancel();
    }

    fn keep_session(&self, headers: &HeaderMap) {
        if let Some(session) = headers.get(SESSION).filter(|it| it.len() <= MAX_SESSION) {
            self.state().session = Some(session.clone());
        }
    }

    fn request(&self, method: Method, body: Bytes, session: Option<HeaderValue>) -> Exchange {
        let mut headers = self.server.headers.clone();
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, accepted);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let version = self.state().version.clone();
        for (name, value) in [(SESSION, session), (VERSION, version)] {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        let (url, reach) = (self.server.url.clone(), Reach::Private);
        Exchange { method, url, headers, body, reach, most: BOUNDS.bytes as u64 }
    }

    /// Sends a message, and returns a response that is no failure.
    async fn post(&self, body: Bytes, time: Duration) -> Result<Streamed, String> {
        let session = self.state().session.clone();
        let has_session = session.is_some();
        let request = self.request(Method::POST, body, session);
        let stream = self.server.network.open(request, time).await;
        let stream = stream.map_err(|error| error.to_string())?;
        match stream.status {
            status if status.is_success() => Ok(stream),
            StatusCode::NOT_FOUND if has_session => {
                let reason = "the server has ended the session";
                self.end(reason);
                Err(reason.to_owned())
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(format!(
                "the server answered {}; `token_env` or `headers` in its table can hold credentials",
                stream.status
            )),
            status => Err(format!("the server answered {status}")),
        }
    }
}

/// Whether the response to a request has been passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Response {
    Passed,
    Missing,
}

/// Returns true if a media type is that of a stream of events. Its letters may be of either case.
fn is_event_stream(kind: &[u8]) -> bool {
    const NAME: &[u8] = b"text/event-stream";
    kind.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}

#[cfg(test)]
mod tests;
