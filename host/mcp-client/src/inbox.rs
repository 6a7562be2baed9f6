//! Messages of a server, within bounds. A server is not trusted to be brief, to read, or to speak
//! the protocol: the connection ends when it exceeds a bound.

use crate::handler::Handler;
use crate::runtime;
use palisade::tool::json::{JsonBounds, JsonError, parse_bounded};
use rmcp::RoleClient;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
/// The most notifications of a server between two requests to it.
const MAX_NOTIFICATIONS: usize = 100_000;

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

/// What a connection has received.
#[derive(Clone)]
pub(crate) struct Inbox {
    handler: Handler,
    fault: Fault,
    other_texts: Arc<AtomicUsize>,
    /// The requests of the server that wait for a response.
    unanswered: Arc<Mutex<HashSet<RequestId>>>,
    notifications: Arc<AtomicUsize>,
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
            unanswered: Arc::default(),
            notifications: Arc::default(),
            requests: Arc::default(),
            responses: Arc::default(),
        }
    }

    /// Returns the reason for which the connection ends.
    pub(crate) fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Reads a message. Returns `None` for a text that is no message, for a notification, which
    /// ends here, and for a message that exceeds a bound, which is a fault.
    pub(crate) fn take(&self, text: &[u8]) -> Option<Received> {
        let message = self.read(text);
        match &message {
            None => {
                if self.other_texts.fetch_add(1, Ordering::Relaxed) >= MAX_OTHER_TEXTS {
                    self.fault.set("it sent more than 1,000 lines that are no messages");
                }
            }
            Some(JsonRpcMessage::Request(request)) => self.asked(&request.id),
            Some(JsonRpcMessage::Notification(notification)) => {
                self.notified(&notification.notification);
                // It ends here: the protocol library would start a task for each.
                return None;
            }
            Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => {
                let responses = self.responses.fetch_add(1, Ordering::Relaxed);
                if responses > self.requests.load(Ordering::Relaxed) + MAX_OTHER_TEXTS {
                    self.fault.set("it sent more than 1,000 responses to no request");
                }
            }
        }
        message.filter(|_| self.fault.get().is_none())
    }

    /// Takes a request of the server.
    fn asked(&self, id: &RequestId) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        if unanswered.len() >= MAX_UNANSWERED {
            self.fault.set("it sent more than 16 requests and did not read the responses");
        } else if !unanswered.insert(id.clone()) {
            // Each stream of a server without a state may count its requests anew. The protocol
            // library responds to one of them.
            self.count_notification();
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
        let value = match parse_bounded(str::from_utf8(text).ok()?, BOUNDS) {
            Ok(value) => value,
            Err(JsonError::Syntax { .. }) if text.first() != Some(&b'{') => return None,
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

    fn answered(&self, id: &RequestId) {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Counts a message that was sent.
    pub(crate) fn sent(&self, message: &Sent) {
        match message {
            JsonRpcMessage::Response(response) => self.answered(&response.id),
            JsonRpcMessage::Error(error) => {
                error.id.iter().for_each(|id| self.answered(id));
            }
            JsonRpcMessage::Request(_) => {
                self.notifications.store(0, Ordering::Relaxed);
                self.requests.fetch_add(1, Ordering::Relaxed);
            }
            JsonRpcMessage::Notification(_) => {}
        }
    }
}

/// Returns the error response to a request.
pub(crate) fn failed(id: RequestId, message: impl Into<String>) -> Received {
    JsonRpcMessage::error(ErrorData::internal_error(message.into(), None), Some(id))
}

/// Returns the id of a response.
fn id_of_response(value: &Value) -> Option<RequestId> {
    let is_response = value.get("result").is_some() || value.get("error").is_some();
    serde_json::from_value(value.get("id").filter(|_| is_response)?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox() -> Inbox {
        Inbox::new(Handler::default(), Fault::default())
    }

    #[test]
    fn invalid_response_fails_its_request() {
        let inbox = inbox();
        let text = br#"{"jsonrpc":"2.0","id":7,"error":{"code":"none"}}"#;
        let Some(JsonRpcMessage::Error(error)) = inbox.take(text) else { panic!("no error") };
        assert_eq!(error.id, Some(RequestId::Number(7)));
        assert_eq!(inbox.fault().get(), None);
    }

    #[test]
    fn message_beyond_the_bounds_is_a_fault() {
        let deep =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}1{}}}"#, "[".repeat(90), "]".repeat(90));
        let many = format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}1]}}"#, "1,".repeat(101_000));
        let twice = r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#;
        for (text, reason) in [
            (deep.as_str(), "nested"),
            (many.as_str(), "more than"),
            (twice, "twice"),
            ("{1", "JSON"),
        ] {
            let inbox = inbox();
            assert!(inbox.take(text.as_bytes()).is_none());
            let fault = inbox.fault().get().expect("a fault");
            assert!(fault.contains(reason), "{fault}");
        }
    }

    #[test]
    fn notifications_end_here_and_are_bounded() {
        let inbox = inbox();
        let note = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        for _ in 0..MAX_NOTIFICATIONS {
            assert!(inbox.take(note).is_none());
        }
        assert!(inbox.handler.has_new_list());
        assert_eq!(inbox.fault().get(), None);
        assert!(inbox.take(note).is_none());
        assert!(inbox.fault().get().is_some_and(|fault| fault.contains("100,000 notifications")));
    }

    #[test]
    fn requests_with_one_id_count_as_notifications() {
        let inbox = inbox();
        let ping = br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
        for _ in 0..=MAX_NOTIFICATIONS {
            assert!(inbox.take(ping).is_some());
        }
        assert!(inbox.take(ping).is_none());
        assert!(inbox.fault().get().is_some_and(|fault| fault.contains("100,000 notifications")));
    }

    #[test]
    fn texts_that_are_no_messages_are_bounded() {
        let inbox = inbox();
        for _ in 0..MAX_OTHER_TEXTS {
            assert!(inbox.take(b"starting").is_none());
            assert_eq!(inbox.fault().get(), None);
        }
        assert!(inbox.take(b"starting").is_none());
        let reason = "it sent more than 1,000 lines that are no messages";
        assert_eq!(inbox.fault().get().as_deref(), Some(reason));
    }
}
