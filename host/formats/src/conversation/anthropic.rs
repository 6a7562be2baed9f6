//! Anthropic's Messages: `tool_use` blocks, answered by one user message of `tool_result` blocks.

use super::ReplyError;
use super::answer::{Answer, Part, base64};
use super::collector::{Found, is_models, kind};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Reads a message, a block, or a list of them.
pub(super) fn read(value: &Value, found: &mut Found) -> Result<(), ReplyError> {
    found.each_object(value, message_or_block)
}

/// Reads a message's content, or a single block. A `tool_result` block has `content` too, so the
/// type tells them apart.
fn message_or_block(object: &Map<String, Value>, found: &mut Found) -> Result<(), ReplyError> {
    let is_message = matches!(kind(object), None | Some("message"));
    match object.get("content").filter(|content| is_message && !content.is_object()) {
        Some(content) if is_models(object) => {
            found.understand();
            read(content, found)
        }
        Some(Value::Array(blocks)) => {
            found.understand();
            let results = blocks
                .iter()
                .filter_map(Value::as_object)
                .filter(|block| kind(block) == Some("tool_result"));
            results.for_each(|block| found.answered(block));
            Ok(())
        }
        Some(_) => {
            found.understand();
            Ok(())
        }
        None => found.item(object),
    }
}

/// Builds the block that answers a call. The API requires the blocks of all calls in one message.
pub(super) fn result(answer: &Answer<'_>) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": answer.tool_use.required_id(),
        "content": answer.parts.iter().filter_map(block).collect::<Value>(),
        "is_error": answer.failed,
    })
}

/// Converts a part to a content block. The API rejects empty and blank text blocks.
fn block(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) if text.trim().is_empty() => {
            Some(json!({"type": "text", "text": format!("[{} bytes of white space]", text.len())}))
        }
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Media { mime, data } => Some(
            json!({"type": "image", "source": {"type": "base64", "media_type": mime, "data": base64(data)}}),
        ),
    }
}
