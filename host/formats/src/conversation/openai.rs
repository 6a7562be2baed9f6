//! OpenAI's Chat Completions: `tool_calls` of a message, answered by messages of the role `tool`.

use super::ReplyError;
use super::answer::Answer;
use super::collector::{Form, Found, first_of, is_models, kind};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Reads a body, a message, a call, or a list of them.
pub(super) fn read(value: &Value, found: &mut Found) -> Result<(), ReplyError> {
    found.each_object(value, body)
}

fn body(object: &Map<String, Value>, found: &mut Found) -> Result<(), ReplyError> {
    match first_of(object, "choices")
        .or_else(|| object.get("message").filter(|message| message.is_object()))
    {
        Some(within) => {
            found.understand();
            read(within, found)
        }
        None => message(object, found),
    }
}

fn message(object: &Map<String, Value>, found: &mut Found) -> Result<(), ReplyError> {
    match object.get("role").and_then(Value::as_str) {
        Some("tool" | "function") => found.answered(object),
        Some(_) if !is_models(object) => found.understand(),
        _ => return calls(object, found),
    }
    Ok(())
}

/// Reads a message's calls. Some servers repeat a call in both forms, so the older form is read
/// only if the newer is absent.
fn calls(message: &Map<String, Value>, found: &mut Found) -> Result<(), ReplyError> {
    let listed = match message.get("tool_calls") {
        Some(Value::Array(calls)) => calls.as_slice(),
        Some(call @ Value::Object(_)) => std::slice::from_ref(call),
        _ => &[],
    };
    if !listed.is_empty() {
        return listed.iter().filter_map(Value::as_object).try_for_each(|call| found.call(call));
    }
    // An object typed as a call is not a message, so its `function_call` is not read.
    let is_call = matches!(kind(message), Some("function" | "custom"));
    match message.get("function_call").filter(|_| !is_call).and_then(Value::as_object) {
        Some(call) => found.legacy_call(call),
        None if message.contains_key("tool_calls") => {
            found.understand();
            Ok(())
        }
        None => found.item(message),
    }
}

/// Builds the message that answers one call.
pub(super) fn message_of(answer: &Answer<'_>) -> Value {
    if answer.tool_use.form == Form::Legacy {
        return json!({"role": "function", "name": answer.tool_use.name, "content": answer.text()});
    }
    json!({"role": "tool", "tool_call_id": answer.tool_use.required_id(), "content": answer.text()})
}
