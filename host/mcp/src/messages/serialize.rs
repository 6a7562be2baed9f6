//! Serializes messages. The length of a message is measured first, so that its memory is reserved
//! before it is allocated.

use crate::http::guarded_bytes;
use crate::protocol::tool_result::{exhausted_error, exhausted_result};
use bytes::Bytes;
use palisade::internal::{Account, IN_PLACE, Owed, address_space_limit};
use palisade::tool::budget::Exhausted;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde::Serialize;
use std::io::{self, Write};

/// The maximum length of a message that is serialized in the measuring pass, in bytes. Queues of
/// such messages are bounded by their number, so that their memory is not accounted for.
pub(crate) const MAX_SMALL: usize = 4 << 10;

/// The number of copies that `rmcp` makes of a response while it writes it: the text, the spare
/// capacity of its growing buffer, and the event made from the text.
const COPIES: u64 = 3;

/// The error message for a response that does not fit into memory.
pub(crate) const CANNOT_ANSWER: &str = "the answer cannot be made";

/// A serialized message, with its accounted memory.
#[derive(Debug)]
pub(crate) struct Serialized {
    bytes: Vec<u8>,
    owed: Option<Owed>,
}

impl Serialized {
    /// Serializes a response, reserving its memory in the account of the request. Returns an error
    /// response instead if there is not enough memory.
    pub(crate) fn response(message: &ServerJsonRpcMessage, account: &Account) -> Self {
        Self::or_failure(measure_and_serialize(message, account), message)
    }

    /// Same as [`response`](Self::response), if the response is short enough to be serialized in
    /// place.
    pub(crate) fn short_response(
        message: &ServerJsonRpcMessage,
        account: &Account,
    ) -> Option<Self> {
        let mut measured = MeasuringWriter { limit: IN_PLACE, ..MeasuringWriter::default() };
        serde_json::to_writer(&mut measured, message).ok()?;
        Some(Self::or_failure(serialize(measured, message, account), message))
    }

    /// Returns the error response for a response that cannot be serialized in time.
    pub(crate) fn late_response(message: &ServerJsonRpcMessage) -> Self {
        Self::bounded(&failure_response(message, Exhausted::Deadline))
    }

    /// Serializes a message that is bounded where it is created.
    pub(crate) fn bounded(message: &ServerJsonRpcMessage) -> Self {
        // Serialization cannot fail: these types always map to JSON.
        let bytes = serde_json::to_vec(message).unwrap_or_default();
        let owed = (bytes.len() > MAX_SMALL).then(|| Owed::new(bytes.len()));
        Self { bytes, owed }
    }

    /// Returns the message as a line, with its accounted memory.
    pub(crate) fn into_line(mut self) -> (Vec<u8>, Option<Owed>) {
        self.bytes.push(b'\n');
        (self.bytes, self.owed)
    }

    /// Returns the message as a response body, accounted for until it is sent.
    pub(crate) fn into_body(self) -> Bytes {
        match self.owed {
            Some(owed) => guarded_bytes(self.bytes, owed),
            None => self.bytes.into(),
        }
    }

    fn or_failure(serialized: Result<Self, Exhausted>, message: &ServerJsonRpcMessage) -> Self {
        serialized.unwrap_or_else(|why| {
            tracing::warn!("an answer was left out: {why}");
            Self::bounded(&failure_response(message, why))
        })
    }
}

#[cfg(test)]
impl Serialized {
    /// Wraps these bytes.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes, owed: None }
    }
}

/// Returns the length of the text of a message, in bytes.
pub(crate) fn text_length(message: &ServerJsonRpcMessage) -> usize {
    let mut measured = MeasuringWriter::default();
    // Serialization cannot fail: these types always map to JSON.
    let _ = serde_json::to_writer(&mut measured, message);
    measured.length
}

/// Returns true if a value has a short text.
pub(super) fn is_short_text(value: &impl Serialize) -> bool {
    let mut measured = MeasuringWriter { limit: IN_PLACE, ..MeasuringWriter::default() };
    serde_json::to_writer(&mut measured, value).is_ok()
}

/// Serializes a value. The memory of the text is reserved until it is dropped.
pub(super) fn charged_text(value: &impl Serialize, account: &Account) -> Result<Bytes, Exhausted> {
    let mut measured = MeasuringWriter::default();
    // Serialization cannot fail: these types always map to JSON.
    let _ = serde_json::to_writer(&mut measured, value);
    let charge = account.charge(measured.length as u64)?;
    let mut text = reserved(measured.length)?;
    let _ = serde_json::to_writer(&mut text, value);
    Ok(guarded_bytes(text, charge))
}

/// Reserves the memory that `rmcp` needs to write this result in the account of its request, if
/// `rmcp` writes the response: see [`account_of_library`](super::extensions::account_of_library).
/// Returns the result. The memory is held until the response is sent.
///
/// # Errors
///
/// [`Exhausted`] if the account has not enough memory.
pub(crate) fn within_memory<T: Serialize>(
    result: T,
    library: Option<&Account>,
) -> Result<T, Exhausted> {
    library.map_or(Ok(()), |account| reserve(&result, account)).map(|()| result)
}

/// Same as [`within_memory`], for a result whose length is known.
pub(crate) fn reserve_length(length: usize, library: Option<&Account>) -> Result<(), Exhausted> {
    match library {
        Some(account) if length > MAX_SMALL => account.reserve(COPIES * length as u64),
        _ => Ok(()),
    }
}

/// Reserves the memory that `rmcp` needs to write a response. Small responses need none.
fn reserve(answer: &impl Serialize, account: &Account) -> Result<(), Exhausted> {
    let mut measured = MeasuringWriter::default();
    // Serialization cannot fail: these types always map to JSON.
    let _ = serde_json::to_writer(&mut measured, answer);
    reserve_length(measured.length, Some(account))
}

fn measure_and_serialize(
    message: &ServerJsonRpcMessage,
    account: &Account,
) -> Result<Serialized, Exhausted> {
    let mut measured = MeasuringWriter::default();
    // Serialization cannot fail: these types always map to JSON.
    let _ = serde_json::to_writer(&mut measured, message);
    serialize(measured, message, account)
}

/// Serializes a message that has been measured.
fn serialize(
    measured: MeasuringWriter,
    message: &ServerJsonRpcMessage,
    account: &Account,
) -> Result<Serialized, Exhausted> {
    let MeasuringWriter { head, length, .. } = measured;
    if length <= MAX_SMALL {
        return Ok(Serialized { bytes: head, owed: None });
    }
    drop(head);
    // One byte more, for the line feed.
    let charge = account.charge(length as u64 + 1)?;
    let mut bytes = reserved(length + 1)?;
    let _ = serde_json::to_writer(&mut bytes, message);
    Ok(Serialized { bytes, owed: Some(charge.into_owed()) })
}

/// Allocates a buffer of exactly this many bytes.
fn reserved(bytes: usize) -> Result<Vec<u8>, Exhausted> {
    let mut buffer = Vec::new();
    let no_space = |_| Exhausted::AddressSpace { limit: address_space_limit().unwrap_or(u64::MAX) };
    buffer.try_reserve_exact(bytes).map_err(no_space)?;
    Ok(buffer)
}

/// Builds the response to a request whose own response does not fit into memory.
fn failure_response(message: &ServerJsonRpcMessage, why: Exhausted) -> ServerJsonRpcMessage {
    let id = match message {
        JsonRpcMessage::Response(answer) => {
            if let ServerResult::CallToolResult(result) = &answer.result {
                let mut failed = exhausted_result(why);
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
    JsonRpcMessage::error(exhausted_error(CANNOT_ANSWER, why), id)
}

/// A writer that measures a message, and keeps its bytes while it is small. It fails beyond a
/// length.
struct MeasuringWriter {
    head: Vec<u8>,
    length: usize,
    limit: usize,
}

impl Default for MeasuringWriter {
    fn default() -> Self {
        Self { head: Vec::new(), length: 0, limit: usize::MAX }
    }
}

impl Write for MeasuringWriter {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        if self.length > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.length <= MAX_SMALL {
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

    fn line(written: Serialized) -> Value {
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
            &"\u{1}".repeat(MAX_SMALL),
            &"x".repeat(1 << 20),
        ] {
            let message = answer(text);
            let mut measured = MeasuringWriter::default();
            serde_json::to_writer(&mut measured, &message).unwrap();
            let whole = serde_json::to_vec(&message).unwrap();
            assert_eq!(measured.length, whole.len());
            let written = measure_and_serialize(&message, &account(u64::MAX, u64::MAX)).unwrap();
            assert_eq!(
                (written.bytes == whole, written.owed.is_some()),
                (true, whole.len() > MAX_SMALL)
            );
            assert!(
                written.owed.is_none() || written.bytes.capacity() == whole.len() + 1,
                "the line is made once"
            );
        }
    }

    #[test]
    fn answer_without_memory_becomes_a_failure() {
        let large = answer(&"\u{1}".repeat(MAX_SMALL));
        for (account, limit) in
            [(account(6 << 10, u64::MAX), "memory"), (account(u64::MAX, 1), "total_memory")]
        {
            let said = line(Serialized::response(&large, &account));
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
        let other = ServerResult::CustomResult(CustomResult(json!("x".repeat(MAX_SMALL))));
        let said = line(Serialized::response(
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
        let written = measure_and_serialize(&answer(&"\u{1}".repeat(MAX_SMALL)), &call).unwrap();
        assert_eq!((call.held(), written.owed.is_some()), (0, true));
        let message = answer(&"x".repeat(MAX_SMALL));
        assert_eq!(reserve(&message, &call), Ok(()));
        let length = serde_json::to_vec(&message).unwrap().len() as u64;
        assert_eq!(call.held(), COPIES * length);
        assert!(matches!(
            reserve(&message, &account(COPIES * length - 1, u64::MAX)),
            Err(Exhausted::CallMemory { .. })
        ));
    }
}
