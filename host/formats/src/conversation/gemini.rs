//! Google's Gemini: `functionCall` parts, answered by one content of `functionResponse` parts.

use super::ReplyError;
use super::answer::{Answer, Part, encode_base64};
use super::collector::{CallCollector, first_choice, is_from_model, take_first};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// The keys of objects without a call.
const KEYS_WITHOUT_CALL: [&str; 6] =
    ["text", "thought", "inlineData", "promptFeedback", "usageMetadata", "finishReason"];

/// The keys by which a part is told from a body without content.
const PART_KEYS: [&str; 6] = [
    "text",
    "inlineData",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
];

/// Reads a body, a content, a part, a call, or a list of them. A streamed reply without server-sent
/// events is a list of bodies.
pub(super) fn read(value: &Value, calls: &mut CallCollector) -> Result<(), ReplyError> {
    calls.read_each_object(value, read_body)
}

fn read_body(object: &Map<String, Value>, calls: &mut CallCollector) -> Result<(), ReplyError> {
    match first_choice(object, "candidates")
        .or_else(|| object.get("content").filter(|content| content.is_object()))
    {
        Some(within) => {
            calls.mark_recognized();
            read(within, calls)
        }
        None => read_content(object, calls),
    }
}

fn read_content(object: &Map<String, Value>, calls: &mut CallCollector) -> Result<(), ReplyError> {
    let Some(parts) = object.get("parts").and_then(Value::as_array) else {
        return read_part(object, calls);
    };
    calls.mark_recognized();
    let may_request = is_from_model(object);
    let parts = parts.iter().filter_map(Value::as_object);
    parts
        .filter(|part| may_request || function_response(part).is_some())
        .try_for_each(|object| read_part(object, calls))
}

fn read_part(object: &Map<String, Value>, calls: &mut CallCollector) -> Result<(), ReplyError> {
    if let Some(answer) = function_response(object) {
        calls.drop_answered(answer);
        return Ok(());
    }
    match get_either(object, "functionCall", "function_call") {
        Some(call) => {
            if !object.contains_key("functionCall") {
                calls.check_form(object)?;
            }
            calls.add_call(call)
        }
        None if KEYS_WITHOUT_CALL.iter().any(|key| object.contains_key(*key)) => {
            calls.mark_recognized();
            Ok(())
        }
        None => calls.read_item(object),
    }
}

fn function_response(part: &Map<String, Value>) -> Option<&Map<String, Value>> {
    get_either(part, "functionResponse", "function_response")
}

/// Returns the object under either spelling of a key: the API accepts both and some libraries print
/// the second.
fn get_either<'v>(
    object: &'v Map<String, Value>,
    one: &str,
    other: &str,
) -> Option<&'v Map<String, Value>> {
    object.get(one).or_else(|| object.get(other))?.as_object()
}

/// Builds the part that answers a call. The API requires the parts of all calls in a single
/// content.
pub(super) fn result_part(answer: &Answer<'_>) -> Value {
    let key = if answer.failed { "error" } else { "output" };
    let output = answer.value().unwrap_or_else(|| Value::String(answer.text()));
    let mut response = json!({"name": answer.tool_use.name, "response": {key: output}});
    if let Some(id) = answer.tool_use.id() {
        response["id"] = json!(id);
    }
    if answer.has_media() {
        response["parts"] = answer.parts.iter().filter_map(inline_data).collect();
    }
    json!({"functionResponse": response})
}

fn inline_data(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Media { mime, data } => {
            Some(json!({"inlineData": {"mimeType": mime, "data": encode_base64(data)}}))
        }
        Part::Text(_) => None,
    }
}

/// Returns the model's contents of a reply, as a request repeats them. The bodies of a streamed
/// reply make one content, and so do parts without a content.
pub(super) fn model_contents(reply: Value) -> Vec<Value> {
    let mut contents: Vec<Value> = Vec::new();
    for (role, parts) in contents_of(reply) {
        match contents.last_mut().filter(|last| last["role"] == role) {
            Some(last) => {
                if let Some(earlier) = last["parts"].as_array_mut() {
                    earlier.extend(parts);
                }
            }
            None => contents.push(json!({"role": role, "parts": parts})),
        }
    }
    contents
}

/// Returns the role and the parts of each content, but no content without parts, which the API
/// rejects.
fn contents_of(reply: Value) -> Vec<(Value, Vec<Value>)> {
    match reply {
        Value::Array(list) => list.into_iter().flat_map(contents_of).collect(),
        Value::Object(mut body) => {
            if let Some(candidate) = take_first(&mut body, "candidates") {
                return contents_of(candidate);
            }
            if let Some(content @ Value::Object(_)) = body.remove("content") {
                return contents_of(content);
            }
            let role = body.remove("role").unwrap_or_else(|| "model".into());
            match body.remove("parts") {
                Some(Value::Array(parts)) if parts.is_empty() => Vec::new(),
                Some(Value::Array(parts)) => vec![(role, parts)],
                _ if body.contains_key("name") => {
                    vec![(role, vec![json!({"functionCall": body})])]
                }
                _ if PART_KEYS.iter().any(|key| body.contains_key(*key)) => {
                    vec![(role, vec![Value::Object(body)])]
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}
