//! The ids of requests, also of those that cannot be parsed as a whole.

use rmcp::model::RequestId;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The maximum length of an id, in bytes.
pub(crate) const MAX_LENGTH: usize = 1024;

/// The length of the beginning of a long message in which its id is looked for, in bytes.
pub(crate) const HEAD_LENGTH: usize = 4 << 10;

/// Returns true if an id is too long. Responses do not repeat such an id.
pub(crate) fn is_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > MAX_LENGTH)
}

/// Returns the id of an object, if it is a valid one.
pub(crate) fn of_object(message: &Value) -> Option<RequestId> {
    let id = match message.get("id")? {
        Value::String(text) => RequestId::String(text.as_str().into()),
        Value::Number(number) => RequestId::Number(number.as_i64()?),
        _ => return None,
    };
    Some(id).filter(|id| !is_long(id))
}

/// Returns the id of a request that was rejected for its content, such as a duplicate key, too much
/// depth, a lone surrogate or a number out of range, so that the client can tell which of its
/// requests failed.
pub(crate) fn of_invalid(bytes: &[u8]) -> Option<RequestId> {
    let mut head = Head::default();
    let mut source = serde_json::Deserializer::from_slice(bytes);
    HeadVisitor(&mut head).deserialize(&mut source).and_then(|()| source.end()).ok()?;
    head.id()
}

/// Returns the id of a request of which only a prefix is known.
pub(crate) fn in_head(bytes: &[u8]) -> Option<RequestId> {
    let mut head = Head::default();
    // The parser fails at the end of the prefix; the members before it count.
    let _ = HeadVisitor(&mut head).deserialize(&mut serde_json::Deserializer::from_slice(bytes));
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
    /// Whether a member has been seen that only requests have: the method or its parameters.
    is_request: bool,
}

impl Head {
    /// Returns the id of a request. The id of a response is one of the server's own.
    fn id(self) -> Option<RequestId> {
        self.known.filter(|id| self.ids == 1 && self.is_request && !is_long(id))
    }
}

/// Parses the head of a message without recursion, by skipping the values of all other members.
struct HeadVisitor<'h>(&'h mut Head);

impl<'de> DeserializeSeed<'de> for HeadVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadVisitor<'_> {
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
                    // The parameters may be cut off, and the method may come after them.
                    head.is_request |= key == Key::Params;
                    members.next_value::<IgnoredAny>()?;
                    head.is_request |= key == Key::Method;
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
    Params,
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        // As bytes, so that a name that is not valid UTF-8 counts as another member.
        source.deserialize_bytes(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Key, E> {
        Ok(match name {
            b"id" => Key::Id,
            b"method" => Key::Method,
            b"params" => Key::Params,
            _ => Key::Other,
        })
    }
}
