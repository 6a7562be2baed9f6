//! Serializes messages. The length of a message is measured first, so that its memory is reserved
//! before it is allocated.

use super::{endpoint, outcome};
use crate::http::kept;
use bytes::Bytes;
use palisade::internal::{Account, IN_PLACE, Owed, address_space_limit};
use palisade::tool::budget::Exhausted;
use rmcp::model::{ErrorData, Extensions, JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde::Serialize;
use std::io::{self, Write};

/// The maximum length of a message that is serialized in the measuring pass, in bytes. Queues of
/// such messages are bounded by their number, so that their memory is not accounted for.
pub(super) const SMALL: usize = 4 << 10;

/// The number of copies that the library makes of a response while it writes it: the text, the
/// spare capacity of its growing buffer, and the event made from the text.
const COPIES: u64 = 3;

/// The error message for a response that does not fit into memory.
pub(super) const LEFT_OUT: &str = "the answer cannot be made";

/// A serialized message, with its accounted memory.
#[derive(Debug)]
pub(super) struct Written {
    bytes: Vec<u8>,
    owed: Option<Owed>,
}

impl Written {
    /// Serializes a response, reserving its memory in the account of the request. Returns an error
    /// response instead if there is not enough memory.
    pub(super) fn answer(message: &ServerJsonRpcMessage, account: &Account) -> Self {
        Self::or_failure(written(message, account), message)
    }

    /// Same as [`answer`](Self::answer), if the response is short enough to be serialized in place.
    pub(super) fn at_once(message: &ServerJsonRpcMessage, account: &Account) -> Option<Self> {
        let mut counted = Counted { most: IN_PLACE, ..Counted::default() };
        serde_json::to_writer(&mut counted, message).ok()?;
        Some(Self::or_failure(made(counted, message, account), message))
    }

    /// The error response if a response cannot be serialized in time.
    pub(super) fn late(message: &ServerJsonRpcMessage) -> Self {
        Self::unasked(&without_memory(message, Exhausted::Deadline))
    }

    fn or_failure(written: Result<Self, Exhausted>, message: &ServerJsonRpcMessage) -> Self {
        written.unwrap_or_else(|why| {
            tracing::warn!("an answer was left out: {why}");
            Self::unasked(&without_memory(message, why))
        })
    }

    /// Serializes a message that is bounded where it is created.
    pub(super) fn unasked(message: &ServerJsonRpcMessage) -> Self {
        // Serialization cannot fail: these types always map to JSON.
        let bytes = serde_json::to_vec(message).unwrap_or_default();
        let owed = (bytes.len() > SMALL).then(|| Owed::new(bytes.len()));
        Self { bytes, owed }
    }

    /// Returns the message as a line, with its accounted memory.
    pub(super) fn into_line(mut self) -> (Vec<u8>, Option<Owed>) {
        self.bytes.push(b'\n');
        (self.bytes, self.owed)
    }

    /// Returns the message as a response body, accounted for until it is sent.
    pub(super) fn into_body(self) -> Bytes {
        match self.owed {
            Some(owed) => kept(self.bytes, owed),
            None => self.bytes.into(),
        }
    }
}

#[cfg(test)]
impl Written {
    /// Wraps these bytes.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self { bytes, owed: None }
    }
}

/// Reserves the memory that the library needs to write this result, if the library writes the
/// response to this request, and returns the result. The memory is held until the response is sent.
///
/// # Errors
///
/// [`Exhausted`] if the account of the request has not enough memory.
pub(super) fn afforded<T: Serialize>(result: T, request: &Extensions) -> Result<T, Exhausted> {
    endpoint::library(request).map_or(Ok(()), |account| reserve(&result, &account)).map(|()| result)
}

/// Same as [`afforded`], with an error response.
pub(super) fn granted<T: Serialize>(result: T, request: &Extensions) -> Result<T, ErrorData> {
    afforded(result, request).map_err(|why| outcome::exhausted(LEFT_OUT, why))
}

/// Reserves the memory that the library needs to write a response. Small responses need none.
fn reserve(answer: &impl Serialize, account: &Account) -> Result<(), Exhausted> {
    let mut counted = Counted::default();
    // Serialization cannot fail: these types always map to JSON.
    let _ = serde_json::to_writer(&mut counted, answer);
    if counted.length <= SMALL { Ok(()) } else { account.reserve(COPIES * counted.length as u64) }
}

fn written(message: &ServerJsonRpcMessage, account: &Account) -> Result<Written, Exhausted> {
    let mut counted = Counted::default();
    // Serialization cannot fail: these types always map to JSON.
    let _ = serde_json::to_writer(&mut counted, message);
    made(counted, message, account)
}

/// Serializes a message that has been measured.
fn made(
    counted: Counted,
    message: &ServerJsonRpcMessage,
    account: &Account,
) -> Result<Written, Exhausted> {
    let Counted { head, length, .. } = counted;
    if length <= SMALL {
        return Ok(Written { bytes: head, owed: None });
    }
    drop(head);
    // One byte more, for the line feed.
    let charge = account.charge(length as u64 + 1)?;
    let mut bytes = Vec::new();
    let no_space = |_| Exhausted::AddressSpace { limit: address_space_limit().unwrap_or(u64::MAX) };
    bytes.try_reserve_exact(length + 1).map_err(no_space)?;
    let _ = serde_json::to_writer(&mut bytes, message);
    Ok(Written { bytes, owed: Some(charge.into_owed()) })
}

/// Builds the response to a request whose own response does not fit into memory.
fn without_memory(message: &ServerJsonRpcMessage, why: Exhausted) -> ServerJsonRpcMessage {
    let id = match message {
        JsonRpcMessage::Response(answer) => {
            if let ServerResult::CallToolResult(result) = &answer.result {
                let mut failed = outcome::without_memory(why);
                failed.result_type = result.result_type.clone();
                return JsonRpcMessage::response(
                    ServerResult::CallToolResult(failed),
                    answer.id.clone(),
                );
            }
            Some(answer.id.clone())
        }
        JsonRpcMessage::Error(error) => error.id.clone(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    };
    JsonRpcMessage::error(outcome::exhausted(LEFT_OUT, why), id)
}

/// A writer that measures a message, and keeps its bytes while it is small. It fails beyond a length.
struct Counted {
    head: Vec<u8>,
    length: usize,
    most: usize,
}

impl Default for Counted {
    fn default() -> Self {
        Self { head: Vec::new(), length: 0, most: usize::MAX }
    }
}

impl Write for Counted {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        if self.length > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.length <= SMALL {
            self.head.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::internal::MemoryLimits;
    use rmcp::model::{CallToolResult, ContentBlock, CustomResult, RequestId};
    use serde_json::{Value, json};

    fn account(call: u64, total: u64) -> Account {
        Account::exactly(MemoryLimits { call, total })
    }

    fn answer(text: &str) -> ServerJsonRpcMessage {
        let result = CallToolResult::success(vec![ContentBlock::text(text)]);
        JsonRpcMessage::response(ServerResult::CallToolResult(result), RequestId::Number(7))
    }

    fn line(written: Written) -> Value {
        serde_json::from_slice(&written.into_line().0).unwrap()
    }

    #[test]
    fn counted_length_equals_the_escaped_length() {
        for text in [
            "",
            "a",
            "\u{1}",
            "\"\\\n\t\u{7f}",
            "ü漢🦀",
            &"\u{1}".repeat(SMALL),
            &"x".repeat(1 << 20),
        ] {
            let message = answer(text);
            let mut counted = Counted::default();
            serde_json::to_writer(&mut counted, &message).unwrap();
            let whole = serde_json::to_vec(&message).unwrap();
            assert_eq!(counted.length, whole.len());
            let written = written(&message, &account(u64::MAX, u64::MAX)).unwrap();
            assert_eq!(
                (written.bytes == whole, written.owed.is_some()),
                (true, whole.len() > SMALL)
            );
            assert!(
                written.owed.is_none() || written.bytes.capacity() == whole.len() + 1,
                "the line is made once"
            );
        }
    }

    #[test]
    fn answer_without_memory_becomes_a_failure() {
        let large = answer(&"\u{1}".repeat(SMALL));
        for (account, limit) in
            [(account(6 << 10, u64::MAX), "memory"), (account(u64::MAX, 1), "total_memory")]
        {
            let said = line(Written::answer(&large, &account));
            let failed = &said["result"];
            let detail = &failed["_meta"]["dev.palisade/error"];
            assert_eq!((&said["id"], &failed["isError"]), (&json!(7), &json!(true)));
            assert_eq!(
                (&detail["class"], &detail["detail"]["limit"]),
                (&json!("resource_exhausted"), &json!(limit))
            );
            assert_eq!(failed["resultType"], "complete");
            assert_eq!(account.held(), 0);
        }
        let other = ServerResult::CustomResult(CustomResult(json!("x".repeat(SMALL))));
        let said = line(Written::answer(
            &JsonRpcMessage::response(other, RequestId::Number(8)),
            &account(1, 1),
        ));
        assert_eq!(
            (&said["id"], &said["error"]["data"]["class"]),
            (&json!(8), &json!("resource_exhausted"))
        );
    }

    #[test]
    fn call_is_not_charged_after_its_answer() {
        let call = account(30 << 10, u64::MAX);
        let written = written(&answer(&"\u{1}".repeat(SMALL)), &call).unwrap();
        assert_eq!((call.held(), written.owed.is_some()), (0, true));
        let message = answer(&"x".repeat(SMALL));
        assert_eq!(reserve(&message, &call), Ok(()));
        let length = serde_json::to_vec(&message).unwrap().len() as u64;
        assert_eq!(call.held(), COPIES * length);
        assert!(matches!(
            reserve(&message, &account(COPIES * length - 1, u64::MAX)),
            Err(Exhausted::CallMemory { .. })
        ));
    }
}
