//! Input that was read while the output was full: held back in order and within bounds, so that
//! cancellations and the end of the input are noticed behind it.

use super::super::fast_path::SimpleCall;
use super::line_splitter::Line;
use crate::messages::in_flight::cancelled_request;
use crate::messages::parse::{RejectedMessage, to_message};
use crate::messages::request_id::{self, HEAD_LENGTH};
use palisade::internal::Account;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use serde_json::Value;
use std::collections::VecDeque;

/// The maximum number of messages that are held back: as many as a client may have in flight.
const MAX_MESSAGES: usize = 128;
/// The number of bytes from which no further message is held back. The last one may exceed it.
const MAX_BYTES: usize = 16 << 20;

/// A message for a handler.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A call for the fast path.
    Call(Box<SimpleCall>),
    /// Any other message.
    Message(Box<ClientJsonRpcMessage>),
}

impl Incoming {
    /// Converts a short message.
    pub(super) fn convert(value: Value) -> Result<Self, RejectedMessage> {
        match SimpleCall::from_message(value) {
            Ok(call) => Ok(Self::Call(Box::new(call))),
            Err(value) => to_message(value).map(|message| Self::Message(Box::new(message))),
        }
    }

    /// Returns the id of a request.
    fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Call(call) => Some(call.id()),
            Self::Message(message) => match &**message {
                JsonRpcMessage::Request(request) => Some(&request.id),
                _ => None,
            },
        }
    }

    /// Returns true for a cancellation or a response.
    fn is_urgent(&self) -> bool {
        match self {
            Self::Call(_) => false,
            Self::Message(message) => match &**message {
                JsonRpcMessage::Request(_) => false,
                JsonRpcMessage::Notification(_) => cancelled_request(message).is_some(),
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
            },
        }
    }
}

/// A parsed message, with the account that its memory is reserved in.
#[derive(Debug)]
pub(super) struct ParsedMessage {
    /// The message.
    pub(super) message: Incoming,
    /// The account, which holds the memory until the message is answered.
    pub(super) account: Account,
}

/// A message that waits for room in the output.
#[derive(Debug)]
pub(super) enum HeldMessage {
    /// A request that was not parsed yet.
    Line(Line),
    /// A message that had to be parsed.
    Parsed(ParsedMessage),
    /// A message that is not valid.
    Rejected(RejectedMessage),
}

/// The messages that wait, in order.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Backlog {
    /// Returns true if no message waits.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if another message may be read.
    pub(super) fn has_room(&self) -> bool {
        self.entries.len() < MAX_MESSAGES && self.bytes < MAX_BYTES
    }

    /// Holds a line back if its beginning shows that it is a request. Returns it otherwise: it may
    /// be a cancellation.
    pub(super) fn push_line(&mut self, line: Line) -> Result<(), Line> {
        match line {
            Line::Whole(text) => {
                let Some(id) = request_id::in_head(&text[..text.len().min(HEAD_LENGTH)]) else {
                    return Err(Line::Whole(text));
                };
                self.push_unparsed(Some(id), text.len(), Line::Whole(text));
            }
            Line::TooLong(id) => self.push_unparsed(id.clone(), 0, Line::TooLong(id)),
        }
        Ok(())
    }

    /// Holds a parsed message back, unless it is a cancellation or a response.
    pub(super) fn push_parsed(&mut self, message: ParsedMessage) -> Result<(), ParsedMessage> {
        if message.message.is_urgent() {
            return Err(message);
        }
        let id = message.message.id().filter(|id| !request_id::is_long(id)).cloned();
        let bytes = usize::try_from(message.account.held()).unwrap_or(usize::MAX);
        self.push(id, bytes, HeldMessage::Parsed(message));
        Ok(())
    }

    /// Holds an error response back.
    pub(super) fn push_rejected(&mut self, rejected: RejectedMessage) {
        self.push(None, 0, HeldMessage::Rejected(rejected));
    }

    /// Removes the first message.
    pub(super) fn pop(&mut self) -> Option<HeldMessage> {
        let first = self.entries.pop_front()?;
        self.bytes -= first.bytes;
        Some(first.message)
    }

    /// Removes the requests with this id. Returns true if there was one.
    pub(super) fn cancel(&mut self, id: &RequestId) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.id.as_ref() != Some(id));
        self.bytes = self.entries.iter().map(|entry| entry.bytes).sum();
        self.entries.len() < before
    }

    /// Removes everything. Returns the ids of the requests.
    pub(super) fn clear(&mut self) -> Vec<RequestId> {
        self.bytes = 0;
        self.entries.drain(..).filter_map(|entry| entry.id).collect()
    }

    fn push_unparsed(&mut self, id: Option<RequestId>, bytes: usize, line: Line) {
        self.push(id, bytes, HeldMessage::Line(line));
    }

    fn push(&mut self, id: Option<RequestId>, bytes: usize, message: HeldMessage) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.entries.push_back(Entry { id, bytes, message });
    }
}

/// A message with its size.
#[derive(Debug)]
struct Entry {
    id: Option<RequestId>,
    bytes: usize,
    message: HeldMessage,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::internal::MemoryLimits;
    use serde_json::json;

    fn request(id: i64, length: usize) -> Line {
        let text = json!({"id": id, "method": "x", "params": "x".repeat(length)}).to_string();
        Line::Whole(text.into())
    }

    const CANCELLED: &str = "notifications/cancelled";

    fn parsed(value: Value) -> Result<(), Value> {
        let account = Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
        let mut whole = value.clone();
        whole["jsonrpc"] = json!("2.0");
        let message = ParsedMessage { message: Incoming::convert(whole).unwrap(), account };
        Backlog::default().push_parsed(message).map_err(|_| value)
    }

    #[test]
    fn held_messages_are_bounded_in_number_and_bytes() {
        let mut backlog = Backlog::default();
        let fills = |backlog: &mut Backlog, length| {
            (0..1000)
                .find(|id| !backlog.has_room() || backlog.push_line(request(*id, length)).is_err())
                .unwrap()
        };
        assert_eq!(fills(&mut backlog, 1), MAX_MESSAGES as i64);
        assert!(backlog.pop().is_some() && backlog.has_room());
        let mut backlog = Backlog::default();
        assert_eq!(fills(&mut backlog, 1 << 20), 16);
        backlog.cancel(&RequestId::Number(0));
        assert!(backlog.has_room(), "a cancelled request leaves its room");
        backlog.clear();
        assert_eq!((backlog.bytes, backlog.is_empty()), (0, true));
    }

    #[test]
    fn messages_leave_in_order_without_cancelled_ones() {
        let mut backlog = Backlog::default();
        for id in 0..3 {
            backlog.push_line(request(id, 1)).unwrap();
        }
        backlog.push_line(Line::TooLong(Some(RequestId::Number(3)))).unwrap();
        assert!(backlog.cancel(&RequestId::Number(1)) && !backlog.cancel(&RequestId::Number(1)));
        assert!(matches!(backlog.pop(), Some(HeldMessage::Line(line)) if line == request(0, 1)));
        assert!(matches!(backlog.pop(), Some(HeldMessage::Line(line)) if line == request(2, 1)));
        assert_eq!(backlog.clear(), [RequestId::Number(3)]);
    }

    #[test]
    fn cancellations_and_responses_are_not_held_back() {
        let line =
            |value: &Value| Backlog::default().push_line(Line::Whole(value.to_string().into()));
        for passes in [
            json!({"method": CANCELLED, "params": {"requestId": 1}}),
            json!({"id": 1, "result": {}}),
            json!({"id": 1, "error": {"code": 1, "message": "no"}}),
        ] {
            assert!(line(&passes).is_err());
            assert_eq!(parsed(passes.clone()), Err(passes));
        }
        assert_eq!(parsed(json!({"method": "notifications/initialized"})), Ok(()));
        assert_eq!(parsed(json!({"id": 1, "method": "ping"})), Ok(()));
    }
}
