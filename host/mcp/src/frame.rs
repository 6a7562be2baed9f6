//! Parses messages within bounds, or returns the error response.

use super::outcome::exhausted;
use super::requests::is_long;
use palisade::tool::budget::Budget;
use palisade::tool::json::{JsonBounds, JsonError, parse_within};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The bounds of one message: 2 MiB, for an input of 1 MiB with JSON escapes; depth and members as
/// for an input, plus the envelope.
pub(super) const BOUNDS: JsonBounds = JsonBounds { bytes: 2 << 20, depth: 72, members: 100_256 };

/// The length of the beginning of a long message in which its id is looked for, in bytes.
pub(super) const HEAD: usize = 4 << 10;

/// A rejected message, with the id for the error response.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refused {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

impl Refused {
    /// Returns the error response.
    pub(super) fn into_message(self) -> ServerJsonRpcMessage {
        JsonRpcMessage::error(self.error, self.id)
    }
}

/// Converts a JSON object into a message.
pub(super) fn message(value: Value) -> Result<ClientJsonRpcMessage, Refused> {
    // The id of a response is one of the server's own, which the client uses for other requests.
    let is_response = value.get("result").is_some() || value.get("error").is_some();
    let id = id(&value).filter(|_| !is_response);
    serde_json::from_value(value).map_err(|_| no_message(id))
}

/// Builds the error for an object that is not a message.
pub(super) fn no_message(id: Option<RequestId>) -> Refused {
    let error =
        ErrorData::invalid_request("want a JSON-RPC 2.0 request, notification or response", None);
    Refused { id, error }
}

/// Parses bytes as one JSON object within bounds. Its memory stays reserved.
pub(super) fn check(bytes: &[u8], budget: &dyn Budget) -> Result<Value, Refused> {
    let refused = |error| Refused { id: id_of(bytes), error };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| refused(ErrorData::parse_error(error.to_string(), None)))?;
    let (value, _kept) =
        parse_within(text, BOUNDS, budget).map_err(|error| refused(unreadable(&error)))?;
    match value {
        Value::Object(_) => Ok(value),
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
        JsonError::Exhausted(why) => exhausted("the message cannot be read", *why),
        _ => ErrorData::invalid_request(error.to_string(), None),
    }
}

/// Returns the id of a request that was rejected for its content, such as a duplicate key, too much
/// depth, a lone surrogate or a number out of range, so that the client can tell which of its
/// requests failed.
pub(super) fn id_of(bytes: &[u8]) -> Option<RequestId> {
    let mut head = Head::default();
    let mut source = serde_json::Deserializer::from_slice(bytes);
    HeadOf(&mut head).deserialize(&mut source).and_then(|()| source.end()).ok()?;
    head.id()
}

/// Returns the id of a request of which only a prefix is known.
pub(super) fn id_at_head(bytes: &[u8]) -> Option<RequestId> {
    let mut head = Head::default();
    // The parser fails at the end of the prefix; the members before it count.
    let _ = HeadOf(&mut head).deserialize(&mut serde_json::Deserializer::from_slice(bytes));
    head.id()
}

/// The members of a message that identify a request.
#[derive(Default)]
struct Head {
    /// The id that was read last. It is confirmed by the next token: at the end of a prefix it may
    /// be cut off.
    read: Option<RequestId>,
    known: Option<RequestId>,
    ids: usize,
    has_method: bool,
}

impl Head {
    /// Returns the id of a request. A message without a method is a response, and its id is one of
    /// the server's own.
    fn id(self) -> Option<RequestId> {
        self.known.filter(|id| self.ids == 1 && self.has_method && !is_long(id))
    }
}

/// Parses the head of a message without recursion, by skipping the values of all other members.
struct HeadOf<'h>(&'h mut Head);

impl<'de> DeserializeSeed<'de> for HeadOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let head = self.0;
        loop {
            let key = members.next_key::<Key>()?;
            head.known = head.read.take().or(head.known.take());
            match key {
                None => return Ok(()),
                Some(Key::Id) => {
                    head.ids += 1;
                    head.read = Some(members.next_value()?);
                }
                Some(key) => {
                    members.next_value::<IgnoredAny>()?;
                    head.has_method |= key == Key::Method;
                }
            }
        }
    }
}

/// The name of a member.
#[derive(PartialEq, Eq)]
enum Key {
    Id,
    Method,
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        // As bytes, so that a name that is not valid UTF-8 counts as another member.
        source.deserialize_bytes(KeyOf)
    }
}

struct KeyOf;

impl Visitor<'_> for KeyOf {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Key, E> {
        Ok(match name {
            b"id" => Key::Id,
            b"method" => Key::Method,
            _ => Key::Other,
        })
    }
}

/// Returns the id of an object, if it is a valid one.
pub(super) fn id(message: &Value) -> Option<RequestId> {
    let id = match message.get("id")? {
        Value::String(text) => RequestId::String(text.as_str().into()),
        Value::Number(number) => RequestId::Number(number.as_i64()?),
        _ => return None,
    };
    Some(id).filter(|id| !is_long(id))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::{
        BOUNDS, ClientJsonRpcMessage, JsonRpcMessage, Refused, RequestId, check, id_at_head,
    };
    use palisade::internal::{Account, MemoryLimits};
    use palisade::tool::budget::Unlimited;

    fn message(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Refused> {
        check(bytes, &Unlimited).and_then(super::message)
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
            let refused = check(text.as_bytes(), &account).unwrap_err();
            let data = refused.error.data.unwrap();
            assert_eq!(
                (&data["class"], &data["detail"]["limit"]),
                (&"resource_exhausted".into(), &limit.into())
            );
            assert_eq!(account.held(), 0);
        }
        let account = of(u64::MAX, u64::MAX);
        assert!(check(text.as_bytes(), &account).is_ok());
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
        let head = |bytes: usize| id_at_head(&whole.as_bytes()[..bytes]);
        let method = whole.find(r#","params""#).unwrap();
        assert_eq!(head(BOUNDS.bytes), Some(RequestId::Number(12)));
        assert!(
            (0..method).all(|bytes| head(bytes).is_none()),
            "nothing says that it is a request"
        );
        let last = r#"{"method":"ping","id":12"#;
        assert_eq!(id_at_head(last.as_bytes()), None, "there may be more digits");
        assert_eq!(id_at_head(format!("{last},\"a\"").as_bytes()), Some(RequestId::Number(12)));
    }
}
