//! Google's Gemini: `functionCall` parts, answered by one content of `functionResponse` parts.

use super::ReplyError;
use super::answer::{Answer, Part, encode_base64};
use super::collector::{CallCollector, first_choice, is_from_model};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// The keys of objects without a call.
const KEYS_WITHOUT_CALL: [&str; 6] =
    ["text", "thought", "inlineData", "promptFeedback", "usageMetadata", "finishReason"];

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
        Some(call) => calls.add_call(call),
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
