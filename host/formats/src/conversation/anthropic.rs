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
