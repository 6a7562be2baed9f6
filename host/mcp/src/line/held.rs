//! Input that was read while the output was full: held back in order and within bounds, so that
//! cancellations and the end of the input are noticed behind it.

use super::split::Line;
use crate::frame::{self, HEAD, Refused};
use palisade::internal::{Account, Owed};
use rmcp::model::RequestId;
use serde_json::Value;
use std::collections::VecDeque;

/// The maximum number of messages that are held back: as many as a client may have in flight.
const MESSAGES: usize = 128;
/// The number of bytes from which no further message is held back. The last one may exceed it.
const BYTES: usize = 16 << 20;

/// The method of the notification that is never held back.
const CANCELLED: &str = "notifications/cancelled";

/// A message that waits for room in the output.
#[derive(Debug)]
pub(super) enum Input {
    /// A request that was not parsed yet, with its accounted memory.
    Line(Line, Owed),
    /// A message that had to be parsed.
    Parsed(Value, Account),
    /// A message that is not valid.
    Refused(Refused),
}

/// The messages that wait, in order.
#[derive(Debug, Default)]
pub(super) struct Held {
    messages: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    id: Option<RequestId>,
    bytes: usize,
    input: Input,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns true if another message may be read.
    pub(super) fn has_room(&self) -> bool {
        self.messages.len() < MESSAGES && self.bytes < BYTES
    }

    /// Holds a line back if its beginning shows that it is a request. Returns it otherwise: it may
    /// be a cancellation.
    pub(super) fn put(&mut self, line: Line) -> Result<(), Line> {
        let (id, bytes) = match &line {
            Line::Whole(bytes) => match frame::id_at_head(&bytes[..bytes.len().min(HEAD)]) {
                Some(id) => (Some(id), bytes.len()),
                None => return Err(line),
            },
            Line::TooLong(id) => (id.clone(), 0),
        };
        self.push(id, bytes, Input::Line(line, Owed::new(bytes)));
        Ok(())
    }

    /// Holds a parsed message back, unless it is a cancellation or a response.
    pub(super) fn put_parsed(
        &mut self,
        value: Value,
        account: Account,
    ) -> Result<(), (Value, Account)> {
        if value.get("method").is_none_or(|method| method == CANCELLED) {
            return Err((value, account));
        }
        let bytes = usize::try_from(account.held()).unwrap_or(usize::MAX);
        self.push(frame::id(&value), bytes, Input::Parsed(value, account));
        Ok(())
    }

    /// Holds an error response back.
    pub(super) fn put_refused(&mut self, refused: Refused) {
        self.push(None, 0, Input::Refused(refused));
    }

    /// Removes the first message.
    pub(super) fn take(&mut self) -> Option<Input> {
        let first = self.messages.pop_front()?;
        self.bytes -= first.bytes;
        Some(first.input)
    }

    /// Removes the requests with this id. Returns true if there was one.
    pub(super) fn cancel(&mut self, id: &RequestId) -> bool {
        let before = self.messages.len();
        self.messages.retain(|message| message.id.as_ref() != Some(id));
        self.bytes = self.messages.iter().map(|message| message.bytes).sum();
        self.messages.len() < before
    }

    /// Removes everything. Returns the ids of the requests.
    pub(super) fn clear(&mut self) -> Vec<RequestId> {
        self.bytes = 0;
        self.messages.drain(..).filter_map(|message| message.id).collect()
    }

    fn push(&mut self, id: Option<RequestId>, bytes: usize, input: Input) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.messages.push_back(Waiting { id, bytes, input });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::internal::MemoryLimits;
    use serde_json::json;

    fn request(id: i64, length: usize) -> Line {
        let text = json!({"id": id, "method": "x", "params": "x".repeat(length)}).to_string();
        Line::Whole(text.into_bytes())
    }

    fn parsed(value: Value) -> Result<(), Value> {
        let account = Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
        Held::default().put_parsed(value, account).map_err(|(value, _)| value)
    }

    #[test]
    fn held_messages_are_bounded_in_number_and_bytes() {
        let mut held = Held::default();
        let fills = |held: &mut Held, length| {
            (0..1000)
                .find(|id| !held.has_room() || held.put(request(*id, length)).is_err())
                .unwrap()
        };
        assert_eq!(fills(&mut held, 1), MESSAGES as i64);
        assert!(held.take().is_some() && held.has_room());
        let mut held = Held::default();
        assert_eq!(fills(&mut held, 1 << 20), 16);
        held.cancel(&RequestId::Number(0));
        assert!(held.has_room(), "a cancelled request leaves its room");
        held.clear();
        assert_eq!((held.bytes, held.is_empty()), (0, true));
    }

    #[test]
    fn messages_leave_in_order_without_cancelled_ones() {
        let mut held = Held::default();
        for id in 0..3 {
            held.put(request(id, 1)).unwrap();
        }
        held.put(Line::TooLong(Some(RequestId::Number(3)))).unwrap();
        assert!(held.cancel(&RequestId::Number(1)) && !held.cancel(&RequestId::Number(1)));
        assert!(matches!(held.take(), Some(Input::Line(line, _)) if line == request(0, 1)));
        assert!(matches!(held.take(), Some(Input::Line(line, _)) if line == request(2, 1)));
        assert_eq!(held.clear(), [RequestId::Number(3)]);
    }

    #[test]
    fn cancellations_and_responses_are_not_held_back() {
        let line = |value: &Value| Held::default().put(Line::Whole(value.to_string().into_bytes()));
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
