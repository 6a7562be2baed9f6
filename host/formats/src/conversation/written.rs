//! The model's message for calls that came without one, in nobody's own form: written from what was
//! read, so that each call has the id by which its answer names it.

use super::fields::forms_of_call;
use super::{Provider, REPLY_BOUNDS, ReplyError, ToolUse};
use palisade_schema::budget::Purse;
use palisade_schema::json::{JsonError, parse_within};
use serde_json::{Map, Value};

/// The memory of a call in its message beside its texts, in bytes: two objects of few members.
const CALL: u64 = 2 << 10;

/// Returns the message of the calls of a reply that consists of nothing but a name and an input for
/// each. `None` for any other reply, which is repeated as it is.
pub(super) fn message_of_bare_calls(
    provider: Provider,
    reply: &Value,
    calls: &[ToolUse],
    purse: &mut Purse<'_>,
) -> Result<Option<Vec<Value>>, ReplyError> {
    let elements = match reply {
        Value::Array(list) => list.as_slice(),
        alone => std::slice::from_ref(alone),
    };
    let are_bare = elements.iter().all(|call| call.as_object().is_some_and(is_bare));
    let is_bare = are_bare && !calls.is_empty() && elements.len() == calls.len();
    is_bare.then(|| messages(provider, calls, purse)).transpose()
}

/// Returns true if an object has a name and no form of a provider.
fn is_bare(object: &Map<String, Value>) -> bool {
    object.get("name").is_some_and(Value::is_string)
        && !object.contains_key("type")
        && !object.contains_key("role")
        && forms_of_call(object).is_empty()
}

fn messages(
    provider: Provider,
    calls: &[ToolUse],
    purse: &mut Purse<'_>,
) -> Result<Vec<Value>, ReplyError> {
    let written = calls.iter().map(|call| written(provider, call, purse));
    let written: Vec<Value> = written.collect::<Result<_, _>>()?;
    Ok(match provider {
        Provider::OpenAi => vec![message(
            "tool_calls",
            written,
            [("role", "assistant".into()), ("content", Value::Null)],
        )],
        Provider::OpenAiResponses => written,
        Provider::Anthropic => {
            vec![message("content", written, [("role", "assistant".into())])]
        }
        Provider::Gemini => vec![message("parts", written, [("role", "model".into())])],
    })
}

/// Returns a message of these members, without a copy of its list. The macro `json!` copies what
/// it is given.
pub(super) fn message<const N: usize>(
    key: &str,
    list: Vec<Value>,
    others: [(&str, Value); N],
) -> Value {
    object(others.into_iter().chain([(key, Value::Array(list))]))
}

/// Returns an object of these members, without a copy of their values.
pub(super) fn object<'k>(members: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Object(members.collect())
}

fn written(provider: Provider, call: &ToolUse, purse: &mut Purse<'_>) -> Result<Value, ReplyError> {
    let (id, name) = (call.required_id(), call.name());
    purse.take(CALL + (id.len() + name.len()) as u64)?;
    let id = || Value::from(id);
    let name = ("name", Value::from(name));
    Ok(match provider {
        Provider::OpenAi => {
            let function = object([name, ("arguments", text(call, purse)?)]);
            object([("id", id()), ("type", "function".into()), ("function", function)])
        }
        Provider::OpenAiResponses => object([
            ("type", "function_call".into()),
            ("call_id", id()),
            name,
            ("arguments", text(call, purse)?),
        ]),
        Provider::Anthropic => object([
            ("type", "tool_use".into()),
            ("id", id()),
            name,
            ("input", value(call, purse)?),
        ]),
        Provider::Gemini => {
            let id = call.id().map(|id| ("id", Value::from(id)));
            let function = [name, ("args", value(call, purse)?)].into_iter().chain(id);
            object([("functionCall", object(function))])
        }
    })
}

/// Returns an input as a text.
fn text(call: &ToolUse, purse: &mut Purse<'_>) -> Result<Value, ReplyError> {
    purse.take(call.input().len() as u64)?;
    Ok(Value::from(call.input()))
}

/// Returns an input as a value, or as its text if it is not JSON of this program's numbers.
fn value(call: &ToolUse, purse: &mut Purse<'_>) -> Result<Value, ReplyError> {
    match parse_within(call.input(), REPLY_BOUNDS, purse.budget()) {
        Ok((value, memory)) => {
            purse.adopt(memory);
            Ok(value)
        }
        Err(JsonError::Exhausted(why)) => Err(why.into()),
        Err(_) => text(call, purse),
    }
}
