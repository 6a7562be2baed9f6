//! Anthropic's Messages: `tool_use` blocks, answered by one user message of `tool_result` blocks.

use super::ReplyError;
use super::answer::{Answer, Part, encode_base64};
use super::collector::{CallCollector, is_from_model, type_of};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Reads a message, a block, or a list of them.
pub(super) fn read(value: &Value, calls: &mut CallCollector) -> Result<(), ReplyError> {
    calls.read_each_object(value, read_message_or_block)
}

/// Reads a message's content, or a single block. A `tool_result` block has `content` too, so the
/// type tells them apart.
fn read_message_or_block(
    object: &Map<String, Value>,
    calls: &mut CallCollector,
) -> Result<(), ReplyError> {
    let is_message = matches!(type_of(object), None | Some("message"));
    match object.get("content").filter(|content| is_message && !content.is_object()) {
        Some(content) if is_from_model(object) => {
            calls.mark_recognized();
            read(content, calls)
        }
        Some(Value::Array(blocks)) => {
            calls.mark_recognized();
            let results = blocks
                .iter()
                .filter_map(Value::as_object)
                .filter(|block| type_of(block) == Some("tool_result"));
            results.for_each(|block| calls.drop_answered(block));
            Ok(())
        }
        Some(_) => {
            calls.mark_recognized();
            Ok(())
        }
        None => calls.read_item(object),
    }
}

/// Builds the block that answers a call. The API requires the blocks of all calls in one message.
pub(super) fn result_block(answer: &Answer<'_>) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": answer.tool_use.required_id(),
        "content": answer.parts.iter().filter_map(content_block).collect::<Value>(),
        "is_error": answer.failed,
    })
}

/// Converts a part to a content block. The API rejects empty and blank text blocks.
fn content_block(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) if text.trim().is_empty() => {
            Some(json!({"type": "text", "text": format!("[{} bytes of white space]", text.len())}))
        }
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Media { mime, data } => {
            let data = encode_base64(data);
            let source = json!({"type": "base64", "media_type": mime, "data": data});
            Some(json!({"type": "image", "source": source}))
        }
    }
}

/// Returns the model's messages of a reply, as a request repeats them: with their role and content
/// only. Blocks without a message get one.
pub(super) fn model_messages(reply: Value) -> Vec<Value> {
    match reply {
        Value::Array(list) if list.iter().any(is_message) => {
            list.into_iter().flat_map(model_messages).collect()
        }
        Value::Object(mut message) if is_message_object(&message) => {
            let role = message.remove("role").unwrap_or_else(|| "assistant".into());
            message_of(&role, &message.remove("content").unwrap_or_default())
        }
        Value::Array(blocks) => message_of(&"assistant".into(), &blocks.into()),
        block @ Value::Object(_) => message_of(&"assistant".into(), &json!([block])),
        _ => Vec::new(),
    }
}

fn is_message(value: &Value) -> bool {
    value.as_object().is_some_and(is_message_object)
}

fn is_message_object(object: &Map<String, Value>) -> bool {
    matches!(type_of(object), None | Some("message")) && object.contains_key("content")
}

/// The API rejects messages without content.
fn message_of(role: &Value, content: &Value) -> Vec<Value> {
    let is_empty = match content {
        Value::String(text) => text.is_empty(),
        Value::Array(blocks) => blocks.is_empty(),
        _ => true,
    };
    if is_empty { Vec::new() } else { vec![json!({"role": role, "content": content})] }
}
