//! OpenAI's Responses: `function_call` items, answered by `function_call_output` items.

use super::ReplyError;
use super::answer::{Answer, Part, base64};
use super::collector::{Form, Found, kind};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Reads a body, an item, or a list of them.
pub(super) fn read(value: &Value, found: &mut Found) -> Result<(), ReplyError> {
    found.each_object(value, body)
}

/// Reads a body or an item. `output` is the list of items in a body, but the answer in an item,
/// which has a type.
fn body(object: &Map<String, Value>, found: &mut Found) -> Result<(), ReplyError> {
    let output = object.get("output").filter(|_| kind(object).is_none());
    match object.get("response").filter(|response| response.is_object()).or(output) {
        Some(within) => {
            found.understand();
            read(within, found)
        }
        None => found.item(object),
    }
}

/// Builds the item that answers one call.
pub(super) fn item(answer: &Answer<'_>) -> Value {
    let output = if answer.has_media() {
        answer.parts.iter().filter_map(part).collect()
    } else {
        Value::String(answer.text())
    };
    let kind = match answer.tool_use.form {
        Form::Custom => "custom_tool_call_output",
        Form::Function | Form::Legacy => "function_call_output",
    };
    json!({"type": kind, "call_id": answer.tool_use.required_id(), "output": output})
}

fn part(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(json!({"type": "input_text", "text": text})),
        Part::Media { mime, data } => Some(
            json!({"type": "input_image", "image_url": format!("data:{mime};base64,{}", base64(data))}),
        ),
    }
}
