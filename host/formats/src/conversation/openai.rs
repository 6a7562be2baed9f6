//! OpenAI's Chat Completions: `tool_calls` of a message, answered by messages of the role `tool`.

use super::ReplyError;
use super::answer::{Answer, JoinedText};
use super::collector::{CallCollector, Form, first_choice, is_from_model, take_first, type_of};
use super::written::message;
use serde::Serialize;
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// Reads a body, a message, a call, or a list of them.
pub(super) fn read(value: &Value, calls: &mut CallCollector<'_>) -> Result<(), ReplyError> {
    calls.read_each_object(value, read_body)
}

fn read_body(object: &Map<String, Value>, calls: &mut CallCollector<'_>) -> Result<(), ReplyError> {
    match first_choice(object, "choices")
        .or_else(|| object.get("message").filter(|message| message.is_object()))
    {
        Some(within) => {
            calls.mark_recognized();
            read(within, calls)
        }
        None => read_message(object, calls),
    }
}

fn read_message(
    object: &Map<String, Value>,
    calls: &mut CallCollector<'_>,
) -> Result<(), ReplyError> {
    match object.get("role").and_then(Value::as_str) {
        Some("tool" | "function") => calls.drop_answered(object),
        Some(_) if !is_from_model(object) => calls.mark_recognized(),
        _ => return read_message_calls(object, calls),
    }
    Ok(())
}

/// Reads a message's calls. Some servers repeat a call in both forms, so the older form is read
/// only if the newer is absent.
fn read_message_calls(
    message: &Map<String, Value>,
    calls: &mut CallCollector<'_>,
) -> Result<(), ReplyError> {
    let listed = match message.get("tool_calls") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(call @ Value::Object(_)) => std::slice::from_ref(call),
        _ => &[],
    };
    if !listed.is_empty() {
        return listed
            .iter()
            .filter_map(Value::as_object)
            .try_for_each(|call| calls.add_call(call));
    }
    // An object typed as a call is not a message, so its `function_call` is not read.
    let is_call = matches!(type_of(message), Some("function" | "custom"));
    match message.get("function_call").filter(|_| !is_call).and_then(Value::as_object) {
        Some(call) => {
            if !message.contains_key("role") {
                calls.check_form(message)?;
            }
            calls.add_legacy_call(call)
        }
        None if message.contains_key("tool_calls") => {
            calls.mark_recognized();
            Ok(())
        }
        None => calls.read_item(message),
    }
}

/// The message that answers one call.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResultMessage<'a> {
    Function { content: JoinedText<'a>, name: &'a str, role: &'static str },
    Tool { content: JoinedText<'a>, role: &'static str, tool_call_id: &'a str },
}

/// Returns the message that answers one call.
pub(super) fn result_message<'a>(answer: &'a Answer<'_>) -> ResultMessage<'a> {
    let content = answer.text();
    match answer.tool_use.form {
        Form::Legacy => {
            ResultMessage::Function { content, name: &answer.tool_use.name, role: "function" }
        }
        Form::Function | Form::Custom => {
            let tool_call_id = answer.tool_use.required_id();
            ResultMessage::Tool { content, role: "tool", tool_call_id }
        }
    }
}

/// Returns the model's messages of a reply, as a request repeats them. A list of messages is
/// repeated as it is; calls without a message get one.
pub(super) fn model_messages(reply: Value) -> Vec<Value> {
    match reply {
        Value::Array(list) if list.iter().any(is_call) => vec![message_of_calls(list)],
        Value::Array(list) => list.into_iter().flat_map(model_messages).collect(),
        Value::Object(mut body) => {
            if let Some(choice) = take_first(&mut body, "choices") {
                return model_messages(choice);
            }
            match body.remove("message") {
                Some(within @ Value::Object(_)) => model_messages(within),
                _ if is_call_object(&body) => vec![message_of_calls(vec![Value::Object(body)])],
                _ => {
                    body.entry("role").or_insert_with(|| "assistant".into());
                    vec![Value::Object(body)]
                }
            }
        }
        _ => Vec::new(),
    }
}

fn is_call(value: &Value) -> bool {
    value.as_object().is_some_and(is_call_object)
}

/// Returns true if an object is a call, and neither a body nor a message.
fn is_call_object(object: &Map<String, Value>) -> bool {
    !object.is_empty()
        && !["role", "content", "tool_calls", "function_call", "choices", "message"]
            .iter()
            .any(|key| object.contains_key(*key))
}

fn message_of_calls(mut calls: Vec<Value>) -> Value {
    for call in calls.iter_mut().filter_map(Value::as_object_mut) {
        call.entry("type").or_insert_with(|| "function".into());
    }
    message("tool_calls", calls, [("role", "assistant".into()), ("content", Value::Null)])
}
