//! Google's Gemini: `functionCall` parts, answered by one content of `functionResponse` parts.

use super::ReplyError;
use super::answer::{Answer, Part, base64};
use super::collector::{Found, first_of, is_models};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// The keys of Gemini's objects that hold no call.
const OTHERS: [&str; 6] =
    ["text", "thought", "inlineData", "promptFeedback", "usageMetadata", "finishReason"];

/// Reads a body, a content, a part, a call, or a list of them. A streamed reply without server-sent
/// events is a list of bodies.
pub(super) fn read(value: &Value, found: &mut Found) -> Result<(), ReplyError> {
    found.each_object(value, body)
}

fn body(object: &Map<String, Value>, found: &mut Found) -> Result<(), ReplyError> {
    match first_of(object, "candidates")
        .or_else(|| object.get("content").filter(|content| content.is_object()))
    {
        Some(within) => {
            found.understand();
            read(within, found)
        }
        None => content(object, found),
    }
}

fn content(object: &Map<String, Value>, found: &mut Found) -> Result<(), ReplyError> {
    let Some(parts) = object.get("parts").and_then(Value::as_array) else {
        return part(object, found);
    };
    found.understand();
    let asks = is_models(object);
    let parts = parts.iter().filter_map(Value::as_object);
    parts.filter(|part| asks || response(part).is_some()).try_for_each(|object| part(object, found))
}

fn part(object: &Map<String, Value>, found: &mut Found) -> Result<(), ReplyError> {
    if let Some(answer) = response(object) {
        found.answered(answer);
        return Ok(());
    }
    match either(object, "functionCall", "function_call") {
        Some(call) => found.call(call),
        None if OTHERS.iter().any(|key| object.contains_key(*key)) => {
            found.understand();
            Ok(())
        }
        None => found.item(object),
    }
}

fn response(part: &Map<String, Value>) -> Option<&Map<String, Value>> {
    either(part, "functionResponse", "function_response")
}

/// Returns the object under either spelling of a key: the API accepts both and some libraries print
/// the second.
fn either<'v>(
    object: &'v Map<String, Value>,
    one: &str,
    other: &str,
) -> Option<&'v Map<String, Value>> {
    object.get(one).or_else(|| object.get(other))?.as_object()
}

/// Builds the part that answers a call. The API requires the parts of all calls in a single
/// content.
pub(super) fn answer_part(answer: &Answer<'_>) -> Value {
    let key = if answer.failed { "error" } else { "output" };
    let said = answer.value().unwrap_or_else(|| Value::String(answer.text()));
    let mut response = json!({"name": answer.tool_use.name, "response": {key: said}});
    if let Some(id) = answer.tool_use.id() {
        response["id"] = json!(id);
    }
    if answer.has_media() {
        response["parts"] = answer.parts.iter().filter_map(media).collect();
    }
    json!({"functionResponse": response})
}

fn media(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Media { mime, data } => {
            Some(json!({"inlineData": {"mimeType": mime, "data": base64(data)}}))
        }
        Part::Text(_) => None,
    }
}
