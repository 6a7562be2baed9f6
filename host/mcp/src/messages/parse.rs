//! Parses messages within bounds, or returns the error response.

use super::request_id;
use crate::protocol::methods::check_filter;
use crate::protocol::tool_result::exhausted_error;
use palisade::tool::budget::Budget;
use palisade::tool::json::{JsonBounds, JsonError, parse_within};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use serde_json::Value;

/// The bounds of one message: 2 MiB, for an input of 1 MiB with JSON escapes; depth and members as
/// for an input, plus the envelope.
pub(crate) const BOUNDS: JsonBounds = JsonBounds { bytes: 2 << 20, depth: 72, members: 100_256 };

/// A rejected message, with the id for the error response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RejectedMessage {
    /// The id of the request, if it is known.
    pub(crate) id: Option<RequestId>,
    /// The error to answer with.
    pub(crate) error: ErrorData,
}

impl RejectedMessage {
    /// Returns the error response.
    pub(crate) fn into_response(self) -> ServerJsonRpcMessage {
        JsonRpcMessage::error(self.error, self.id)
    }
}

/// Converts a JSON object into a message.
pub(crate) fn to_message(value: Value) -> Result<ClientJsonRpcMessage, RejectedMessage> {
    // The id of a response is one of the server's own, which the client uses for other requests.
    let is_response = value.get("result").is_some() || value.get("error").is_some();
    let id = request_id::of_object(&value).filter(|_| !is_response);
    serde_json::from_value(value).map_err(|_| not_a_message(id))
}

/// Builds the error for an object that is not a message.
pub(crate) fn not_a_message(id: Option<RequestId>) -> RejectedMessage {
    let error =
        ErrorData::invalid_request("want a JSON-RPC 2.0 request, notification or response", None);
    RejectedMessage { id, error }
}

/// Parses bytes as one JSON object within bounds. Its memory stays reserved in the budget.
pub(crate) fn parse_object(bytes: &[u8], budget: &dyn Budget) -> Result<Value, RejectedMessage> {
    let refused = |error| RejectedMessage { id: request_id::of_invalid(bytes), error };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| refused(ErrorData::parse_error(error.to_string(), None)))?;
    let (value, _kept) =
        parse_within(text, BOUNDS, budget).map_err(|error| refused(unreadable(&error)))?;
    match value {
        Value::Object(_) => match check_filter(&value) {
            Ok(()) => Ok(value),
            Err(error) => Err(RejectedMessage { id: request_id::of_object(&value), error }),
        },
        Value::Array(_) => Err(refused(ErrorData::invalid_request(
            "send one message at a time, not a batch",
            None,
        ))),
        _ => Err(refused(ErrorData::invalid_request("want a JSON object", None))),
    }
}

fn unreadable(error: &JsonError) -> ErrorData {
    match error {
        JsonError::Syntax { .. } => ErrorData::parse_error(error.to_string(), None),
        JsonError::Exhausted(why) => exhausted_error("the message cannot be read", *why),
        _ => ErrorData::invalid_request(error.to_string(), None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::request_id::in_head;
    use super::*;
    use palisade::internal::{Account, MemoryLimits};
    use palisade::tool::budget::Unlimited;

    fn message(bytes: &[u8]) -> Result<ClientJsonRpcMessage, RejectedMessage> {
        parse_object(bytes, &Unlimited).and_then(to_message)
    }

    #[test]
    fn message_above_the_memory_limit_is_refused() {
        let arguments = vec![r#"{"":0}"#; 49_000].join(",");
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":[{arguments}]}}}}"#);
        let of = |call, total| Account::new(MemoryLimits { call, total });
        for (account, limit) in
            [(of(0, u64::MAX), "memory"), (of(u64::MAX, 1 << 20), "total_memory")]
        {
            let refused = parse_object(text.as_bytes(), &account).unwrap_err();
            let data = refused.error.data.unwrap();
            assert_eq!(
                (&data["class"], &data["detail"]["limit"]),
                (&"resource_exhausted".into(), &limit.into())
            );
            assert_eq!(account.held(), 0);
        }
        let account = of(u64::MAX, u64::MAX);
        assert!(parse_object(text.as_bytes(), &account).is_ok());
        assert!(
            account.held() > 30 << 20,
            "{}: it counts for as long as the account lives",
            account.held()
        );
    }

    fn refusal(text: &str) -> (i32, Option<RequestId>) {
        let refused = message(text.as_bytes()).unwrap_err();
        (refused.error.code.0, refused.id)
    }

    #[test]
    fn message_is_read() {
        let read = message(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).unwrap();
        assert!(matches!(read, JsonRpcMessage::Request(_)));
    }

    #[test]
    fn filter_of_a_subscription_is_bounded() {
        let listen = |count: usize| {
            let uris = vec![r#""a:1""#; count].join(",");
            message(
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":[{uris}]}}}}}}"#
                )
                .as_bytes(),
            )
        };
        assert!(listen(256).is_ok());
        let refused = listen(257).unwrap_err();
        assert_eq!((refused.error.code.0, refused.id), (-32602, Some(RequestId::Number(1))));
        assert!(refused.error.message.contains("257"), "{}", refused.error.message);
    }

    #[test]
    fn invalid_json_is_a_parse_error() {
        for text in ["", "{", "nonsense", r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#] {
            assert_eq!(refusal(text), (-32700, None), "{text}");
        }
        assert_eq!(message(b"\xff{}").unwrap_err().error.code.0, -32700);
    }

    #[test]
    fn json_without_message_is_an_invalid_request() {
        assert_eq!(refusal(r#"{"id":7,"method":3}"#), (-32600, Some(RequestId::Number(7))));
        assert_eq!(refusal(r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#).0, -32600);
        assert_eq!(refusal("[]"), (-32600, None));
        assert_eq!(refusal("3"), (-32600, None));
    }

    #[test]
    fn malformed_response_or_long_id_is_refused_without_id() {
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#), (-32600, None));
        let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":3}}"#, "x".repeat(1 << 20));
        assert_eq!(refusal(&long), (-32600, None));
    }

    fn call(id: &str, arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
        )
    }

    fn deep(levels: usize) -> String {
        format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn malformed_request_is_refused_under_its_id() {
        let first = Some(RequestId::Number(1));
        assert_eq!(refusal(&call("1", r#"{"a":1,"a":2}"#)), (-32600, first.clone()));
        assert!(message(call("1", &deep(62)).as_bytes()).is_ok());
        assert_eq!(refusal(&call("1", &deep(80))), (-32600, first.clone()));
        assert_eq!(
            refusal(&call("1", &format!("{{\"a\":\"{}\"}}", "x".repeat(2 << 20)))),
            (-32600, first)
        );
    }

    #[test]
    fn every_refusal_has_the_readable_id() {
        let named = Some(RequestId::String("r".into()));
        for (arguments, code) in [
            (r#"{"a":"\ud800"}"#, -32700),
            (r#"{"\udc00":1}"#, -32700),
            (r#"{"a":1e400}"#, -32700),
            (r#"{"a":-1e999}"#, -32700),
            (deep(100_000).as_str(), -32600),
            (r#"{"a":1,"a":{"id":5,"method":"x"}}"#, -32600),
        ] {
            assert_eq!(
                refusal(&call(r#""r""#, arguments)),
                (code, named.clone()),
                "{arguments:.60}"
            );
        }
        // The error may be anywhere, also in the name of a member or before the id.
        assert_eq!(refusal(r#"{"\ud800":1,"id":"r","method":"ping"}"#).1, named);
        assert_eq!(refusal(r#"{"method":"ping","method":"ping","id":"r"}"#).1, named);
        assert_eq!(refusal(r#"{"\u0069d":"r","method":"ping","a":1e400}"#).1, named);
        let bytes = [&b"{\"id\":\"r\",\"method\":\"ping\",\"a\":\"\xff"[..], b"\"}"].concat();
        assert_eq!(message(&bytes).unwrap_err().id, named, "text that is not UTF-8");
    }

    #[test]
    fn ambiguous_id_is_absent() {
        for text in [
            r#"{"id":1,"id":1,"method":"ping"}"#,
            r#"{"id":1,"id":2,"method":"ping"}"#,
            r#"{"id":1e400,"method":"ping"}"#,
            r#"{"id":"\ud800","method":"ping"}"#,
            r#"{"id":[1],"method":"ping","a":1e400}"#,
            r#"{"params":{"id":1},"method":"ping","a":1e400}"#,
            r#"{"id":1,"result":{"a":1e400}}"#,
            r#"{"id":1,"method":"ping","a":1e400"#,
            r#"{"id":1,"method":"ping","a":1e400} {}"#,
            r#"[{"id":1,"method":"ping","a":1e400}]"#,
        ] {
            assert_eq!(refusal(text).1, None, "{text}");
        }
        let long = "x".repeat(1025);
        assert_eq!(
            refusal(&call(&format!("\"{long}\""), r#"{"a":1e400}"#)).1,
            None,
            "a long id is not repeated"
        );
    }

    #[test]
    fn id_is_read_from_the_head_of_a_long_message() {
        let whole = call("12", &format!("{{\"a\":\"{}\"}}", "x".repeat(BOUNDS.bytes)));
        let head = |bytes: usize| in_head(&whole.as_bytes()[..bytes]);
        let method = whole.find(r#","params""#).unwrap();
        assert_eq!(head(BOUNDS.bytes), Some(RequestId::Number(12)));
        assert!(
            (0..method).all(|bytes| head(bytes).is_none()),
            "nothing says that it is a request"
        );
        let sorted = format!(r#"{{"id":12,"jsonrpc":"2.0","params":{{"a":"{}"#, "x".repeat(4096));
        assert_eq!(in_head(sorted.as_bytes()), Some(RequestId::Number(12)), "the method is behind");
        let response = r#"{"id":12,"jsonrpc":"2.0","result":{"a":"#;
        assert_eq!(in_head(response.as_bytes()), None, "a response has an id of the server");
        let last = r#"{"method":"ping","id":12"#;
        assert_eq!(in_head(last.as_bytes()), None, "there may be more digits");
        assert_eq!(in_head(format!("{last},\"a\"").as_bytes()), Some(RequestId::Number(12)));
    }
}
