//! Bytes made into a message, within bounds; or into the error that they are answered with.

use crate::tool::json::{JsonBounds, JsonError, parse_bounded};
use rmcp::model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

/// What one message may be: 2 MiB, for an input of 1 MiB that stands in it with escapes; and as deep and as full as an input, with what stands around it.
pub(super) const BOUNDS: JsonBounds = JsonBounds { bytes: 2 << 20, depth: 72, members: 100_256 };

/// A message that was refused, and whom to tell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refused {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

impl Refused {
    /// The answer to the message.
    pub(super) fn into_message(self) -> ServerJsonRpcMessage {
        JsonRpcMessage::error(self.error, self.id)
    }
}

/// Reads a message that was found to be an object.
pub(super) fn message(value: Value) -> Result<ClientJsonRpcMessage, Refused> {
    let id = id(&value);
    serde_json::from_value(value).map_err(|_| no_message(id))
}

/// What is said of an object that is no message.
pub(super) fn no_message(id: Option<RequestId>) -> Refused {
    let error = ErrorData::invalid_request("want a JSON-RPC 2.0 request, notification or response", None);
    Refused { id, error }
}

/// Checks that bytes are one JSON object within bounds.
pub(super) fn check(bytes: &[u8]) -> Result<Value, Refused> {
    let refused = |error| Refused { id: None, error };
    let text = std::str::from_utf8(bytes).map_err(|error| refused(ErrorData::parse_error(error.to_string(), None)))?;
    let value = parse_bounded(text, BOUNDS).map_err(|error| refused(unreadable(&error)))?;
    match value {
        Value::Object(_) => Ok(value),
        Value::Array(_) => Err(refused(ErrorData::invalid_request("send one message at a time, not a batch", None))),
        _ => Err(refused(ErrorData::invalid_request("want a JSON object", None))),
    }
}

fn unreadable(error: &JsonError) -> ErrorData {
    match error {
        JsonError::Syntax { .. } => ErrorData::parse_error(error.to_string(), None),
        _ => ErrorData::invalid_request(error.to_string(), None),
    }
}

/// The id that an object has, if it can be one.
pub(super) fn id(message: &Value) -> Option<RequestId> {
    serde_json::from_value(message.get("id")?.clone()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::{ClientJsonRpcMessage, JsonRpcMessage, Refused, RequestId, check};

    fn message(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Refused> {
        check(bytes).and_then(super::message)
    }

    fn refusal(text: &str) -> (i32, Option<RequestId>) {
        let refused = message(text.as_bytes()).unwrap_err();
        (refused.error.code.0, refused.id)
    }

    #[test]
    fn a_message_is_read() {
        let read = message(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).unwrap();
        assert!(matches!(read, JsonRpcMessage::Request(_)));
    }

    #[test]
    fn what_is_no_json_is_a_parse_error() {
        for text in ["", "{", "nonsense", r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#] {
            assert_eq!(refusal(text), (-32700, None), "{text}");
        }
        assert_eq!(message(b"\xff{}").unwrap_err().error.code.0, -32700);
    }

    #[test]
    fn what_is_json_and_no_message_is_an_invalid_request_with_its_id() {
        assert_eq!(refusal(r#"{"id":7,"method":3}"#), (-32600, Some(RequestId::Number(7))));
        assert_eq!(refusal(r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#).0, -32600);
        assert_eq!(refusal("[]"), (-32600, None));
        assert_eq!(refusal("3"), (-32600, None));
    }

    #[test]
    fn a_key_twice_too_deep_and_too_much_are_refused() {
        let call = |arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
            )
        };
        assert_eq!(refusal(&call(r#"{"a":1,"a":2}"#)), (-32600, None));
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(message(call(&deep(62)).as_bytes()).is_ok());
        assert_eq!(refusal(&call(&deep(80))), (-32600, None));
        assert_eq!(refusal(&call(&format!("{{\"a\":\"{}\"}}", "x".repeat(2 << 20)))), (-32600, None));
    }
}
