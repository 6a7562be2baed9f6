//! Messages of a server, within bounds. A server is not trusted to be brief, to read, or to speak
//! the protocol: the connection ends when it exceeds a bound.

use crate::handler::Handler;
use crate::{runtime, surrogates};
use palisade::internal::{address_space_limit, fits_address_space, run_blocking};
use palisade::tool::json::{JsonBounds, JsonError, parse_bounded};
use rmcp::RoleClient;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId, ServerNotification, ServerRequest};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::Value;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A message of a server.
pub(crate) type Received = RxJsonRpcMessage<RoleClient>;
/// A message to a server.
pub(crate) type Sent = TxJsonRpcMessage<RoleClient>;

/// The bounds of one message of a server.
pub(crate) const BOUNDS: JsonBounds = JsonBounds { bytes: 4 << 20, depth: 72, members: 100_256 };
/// The most texts of a connection that are no messages: some programs print to their standard
/// output when they start.
const MAX_OTHER_TEXTS: usize = 1_000;
/// The most requests of a server that wait for a response.
const MAX_UNANSWERED: usize = 16;
/// The time for which a place is waited for: requests that come in one piece have no responses yet.
/// It is shorter than the time in which a response has to be accepted.
const PLACE_TIME: Duration = Duration::from_secs(2);
/// The longest id of a request of a server, in bytes. A response repeats it.
const MAX_ID: usize = 1 << 10;
/// The most notifications of a server between two requests to it.
const MAX_NOTIFICATIONS: usize = 100_000;
/// The most bytes of a server between two requests to it, without those of the responses to
/// requests. Reading them takes processor time that no call has asked for.
const MAX_UNASKED_BYTES: usize = 64 << 20;
/// The longest message that is read on the thread of the connections, in bytes. A longer one takes
/// so long that the other servers would notice.
const IN_PLACE: usize = 16 << 10;
/// The most bytes between two requests, without those of the responses, whose messages are read on
/// that thread. Those of a server that goes on are read in turns, like long messages.
const IN_PLACE_TOGETHER: usize = 256 << 10;

/// The turns of long messages: as many as there are cores, and one where the address space is
/// limited, since a look at it reserves nothing.
static LONG_MESSAGES: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Semaphore::new(if address_space_limit().is_some() { 1 } else { cores })
});

/// The fault of a message that is longer than [`BOUNDS`].
pub(crate) const TOO_LONG: &str = "it sent a message of more than 4 MiB";

/// The end of a connection, with its reason if a bound was exceeded.
#[derive(Debug, Clone)]
pub(crate) struct Fault(Arc<Mutex<Option<String>>>, CancellationToken);

impl Default for Fault {
    fn default() -> Self {
        Self(Arc::default(), runtime::end_of_connection())
    }
}

impl Fault {
    /// Ends the connection, and sets the reason, if there is none.
    pub(crate) fn set(&self, reason: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| reason.into());
        self.end();
    }

    /// Ends the connection.
    pub(crate) fn end(&self) {
        self.1.cancel();
    }

    /// Returns the token that is cancelled when the connection ends.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.1
    }

    /// Returns the reason.
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A message that was taken.
pub(crate) enum Taken {
    /// A message for the protocol library.
    Message(Received),
    /// The response to a request of the server.
    Response(Response),
}

/// A response to a request of the server. The request has its place until this is dropped.
pub(crate) struct Response {
    pub(crate) message: Sent,
    pub(crate) place: Place,
}

/// The place of a request of the server that waits for a response.
pub(crate) struct Place(
    #[allow(dead_code, reason = "held, and nothing else")] OwnedSemaphorePermit,
);

/// The receiver of the messages of a connection, with their counts.
#[derive(Clone)]
pub(crate) struct Inbox {
    handler: Handler,
    fault: Fault,
    other_texts: Arc<AtomicUsize>,
    /// A place for each request of the server that waits for a response.
    places: Arc<Semaphore>,
    notifications: Arc<AtomicUsize>,
    unasked_bytes: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    responses: Arc<AtomicUsize>,
}

impl Inbox {
    /// Creates an inbox, which reports progress to the handler, and records in `fault` why it ends
    /// the connection.
    pub(crate) fn new(handler: Handler, fault: Fault) -> Self {
        Self {
            handler,
            fault,
            other_texts: Arc::default(),
            places: Arc::new(Semaphore::new(MAX_UNANSWERED)),
            notifications: Arc::default(),
            unasked_bytes: Arc::default(),
            requests: Arc::default(),
            responses: Arc::default(),
        }
    }

    /// Returns the reason for which the connection ends.
    pub(crate) fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Reads a message, a long one on another thread. Returns `None` for a text that is no message,
    /// for a notification, and for a message that exceeds a bound, which is a fault. Notifications
    /// and requests of the server end here: the protocol library would start a task for each, and
    /// queue responses without a bound. A request needs a place. The future owns everything, so
    /// that a caller who stops waiting can go on later.
    pub(crate) fn take(
        &self,
        text: Vec<u8>,
        place: Option<Place>,
    ) -> impl Future<Output = Option<Taken>> + Send + 'static {
        let inbox = self.clone();
        async move {
            if inbox.reads_in_place(text.len()) {
                return inbox.take_here(&text, place);
            }
            let fault = inbox.fault.clone();
            let turn = LONG_MESSAGES.acquire().await.ok();
            let taken = run_blocking(move || {
                // Held until the message is read, even if the connection has dropped the future.
                let _turn = turn;
                inbox.take_here(&text, place)
            });
            taken.await.unwrap_or_else(|error| {
                fault.set(format!("its message cannot be read: {error}"));
                None
            })
        }
    }

    /// Returns whether a message of this length is read on the thread of the connections.
    fn reads_in_place(&self, length: usize) -> bool {
        let together = self.unasked_bytes.load(Ordering::Relaxed).saturating_add(length);
        length <= IN_PLACE && together <= IN_PLACE_TOGETHER
    }

    fn take_here(&self, text: &[u8], place: Option<Place>) -> Option<Taken> {
        let message = self.read(text);
        self.count_bytes(text.len(), message.as_ref());
        let taken = match message {
            None => {
                if self.other_texts.fetch_add(1, Ordering::Relaxed) >= MAX_OTHER_TEXTS {
                    self.fault.set("it sent more than 1,000 lines that are no messages");
                }
                None
            }
            Some(JsonRpcMessage::Request(request)) => {
                self.respond(request.id, &request.request, place).map(Taken::Response)
            }
            Some(JsonRpcMessage::Notification(notification)) => {
                self.notified(&notification.notification);
                None
            }
            Some(message) => {
                let responses = self.responses.fetch_add(1, Ordering::Relaxed);
                if responses > self.requests.load(Ordering::Relaxed) + MAX_OTHER_TEXTS {
                    self.fault.set("it sent more than 1,000 responses to no request");
                }
                Some(Taken::Message(message))
            }
        };
        taken.filter(|_| self.fault.get().is_none())
    }

    /// Waits for the place of another request of the server, within bounds. The messages of the
    /// server wait meanwhile, and the next one gets the place.
    pub(crate) async fn place(&self) -> Option<Place> {
        let place = timeout(PLACE_TIME, self.places.clone().acquire_owned()).await;
        place.ok()?.ok().map(Place)
    }

    /// Returns a place if one is free, without waiting: a single message is most often a response.
    pub(crate) fn free_place(&self) -> Option<Place> {
        self.places.clone().try_acquire_owned().ok().map(Place)
    }

    /// Returns the response to a request of the server.
    fn respond(
        &self,
        id: RequestId,
        request: &ServerRequest,
        place: Option<Place>,
    ) -> Option<Response> {
        if matches!(&id, RequestId::String(id) if id.len() > MAX_ID) {
            self.fault.set("it sent a request with an id of more than 1 KiB");
            return None;
        }
        let Some(place) = place else {
            self.fault.set("it sent more than 16 requests and did not read the responses");
            return None;
        };
        let message = match self.handler.response(request) {
            Ok(result) => JsonRpcMessage::response(result, id),
            Err(error) => JsonRpcMessage::error(error, Some(id)),
        };
        Some(Response { message, place })
    }

    /// Counts the bytes of a message, unless it answers a request.
    fn count_bytes(&self, bytes: usize, message: Option<&Received>) {
        let is_response =
            matches!(message, Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)));
        let responses = self.responses.load(Ordering::Relaxed);
        if is_response && responses < self.requests.load(Ordering::Relaxed) {
            return;
        }
        self.count_idle(bytes);
    }

    /// Counts bytes that are no message, such as comments of a stream of events.
    pub(crate) fn count_idle(&self, bytes: usize) {
        if self.unasked_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_UNASKED_BYTES {
            self.fault.set("it sent more than 64 MiB between two requests");
        }
    }

    fn count_notification(&self) {
        if self.notifications.fetch_add(1, Ordering::Relaxed) >= MAX_NOTIFICATIONS {
            self.fault.set("it sent more than 100,000 notifications between two requests");
        }
    }

    /// Takes a notification.
    fn notified(&self, notification: &ServerNotification) {
        self.count_notification();
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                self.handler.report(&progress.params);
            }
            ServerNotification::ToolListChangedNotification(_) => self.handler.set_new_list(true),
            _ => {}
        }
    }

    fn read(&self, text: &[u8]) -> Option<Received> {
        let is_object = text.trim_ascii_start().first() == Some(&b'{');
        let text = match str::from_utf8(text) {
            Ok(text) => surrogates::paired(text),
            Err(_) if !is_object => return None,
            Err(_) => {
                // The request whose response it is would wait for its deadline.
                self.fault.set("it sent a message that is not UTF-8");
                return None;
            }
        };
        if !fits_address_space(most_memory(text.len())) {
            self.fault.set("its message does not fit into the address space (`ulimit -v`)");
            return None;
        }
        let value = match parse_bounded(&text, BOUNDS) {
            Ok(value) => value,
            Err(JsonError::Syntax { .. }) if !is_object => return None,
            Err(JsonError::TooLong { .. }) => {
                self.fault.set(TOO_LONG);
                return None;
            }
            Err(error) => {
                self.fault.set(format!("it sent a message that is not accepted: {error}"));
                return None;
            }
        };
        let id = id_of_response(&value);
        let message = serde_json::from_value(value).ok();
        // Without it, the request would wait for its deadline.
        message.or_else(|| id.map(|id| failed(id, "the response is not valid")))
    }

    /// Counts a message that was sent.
    pub(crate) fn sent(&self, message: &Sent) {
        if let JsonRpcMessage::Request(_) = message {
            self.notifications.store(0, Ordering::Relaxed);
            self.unasked_bytes.store(0, Ordering::Relaxed);
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns the error response to a request.
pub(crate) fn failed(id: RequestId, message: impl Into<String>) -> Received {
    JsonRpcMessage::error(ErrorData::internal_error(message.into(), None), Some(id))
}

/// Returns the memory that a message of this length takes once it is parsed, in bytes, at most: its
/// text, and values of up to 256 bytes each, of which none has less than two bytes of text.
fn most_memory(text: usize) -> usize {
    text + (text / 2).min(BOUNDS.members) * 256
}

/// Returns the id of a response.
fn id_of_response(value: &Value) -> Option<RequestId> {
    let is_response = value.get("result").is_some() || value.get("error").is_some();
    serde_json::from_value(value.get("id").filter(|_| is_response)?.clone()).ok()
}

#[cfg(test)]
mod tests;
