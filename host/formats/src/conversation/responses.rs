//! OpenAI's Responses: `function_call` items, answered by `function_call_output` items.

use super::ReplyError;
use super::answer::{Answer, Part, encode_base64};
use super::collector::{CallCollector, Form, type_of};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Reads a body, an item, or a list of them.
pub(super) fn read(value: &Value, calls: &mut CallCollector) -> Result<(), ReplyError> {
    calls.read_each_object(value, read_body)
}

/// Reads a body or an item. `output` is the list of items in a body, but the answer in an item,
/// which has a type.
fn read_body(object: &Map<String, Value>, calls: &mut CallCollector) -> Result<(), ReplyError> {
    let output = object.get("output").filter(|_| type_of(object).is_none());
    match object.get("response").filter(|response| response.is_object()).or(output) {
        Some(within) => {
            calls.mark_recognized();
            read(within, calls)
        }
        None => calls.read_item(object),
    }
}

/// Builds the item that answers one call.
pub(super) fn result_item(answer: &Answer<'_>) -> Value {
    let output = if answer.has_media() {
        answer.parts.iter().filter_map(content_part).collect()
    } else {
        Value::String(answer.text())
    };
    let kind = match answer.tool_use.form {
        Form::Custom => "custom_tool_call_output",
        Form::Function | Form::Legacy => "function_call_output",
    };
    json!({"type": kind, "call_id": answer.tool_use.required_id(), "output": output})
}

fn content_part(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(json!({"type": "input_text", "text": text})),
        Part::Media { mime, data } => {
            let url = format!("data:{mime};base64,{}", encode_base64(data));
            Some(json!({"type": "input_image", "image_url": url}))
        }
    }
}

/// Returns the items of a reply, as a request repeats them.
pub(super) fn model_items(reply: Value) -> Vec<Value> {
    match reply {
        Value::Array(list) => list.into_iter().flat_map(model_items).collect(),
        Value::Object(mut body) => match body.remove("response") {
            Some(response @ Value::Object(_)) => model_items(response),
            _ if type_of(&body).is_none() && body.get("output").is_some_and(Value::is_array) => {
                body.remove("output").map(model_items).unwrap_or_default()
            }
            _ => vec![Value::Object(body)],
        },
        _ => Vec::new(),
    }
}
