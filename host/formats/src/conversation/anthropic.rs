//! Anthropic's Messages: `tool_use` blocks, answered by one user message of `tool_result` blocks.

use super::ReplyError;
use super::answer::{Answer, Encoded, Part};
use super::collector::{CallCollector, is_from_model, type_of};
use super::written::object;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// Reads a message, a block, or a list of them.
pub(super) fn read(value: &Value, calls: &mut CallCollector<'_>) -> Result<(), ReplyError> {
    calls.read_each_object(value, read_message_or_block)
}

/// Reads a message's content, or a single block. A `tool_result` block has `content` too, so the
/// type tells them apart.
fn read_message_or_block(
    object: &Map<String, Value>,
    calls: &mut CallCollector<'_>,
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

/// The block that answers a call. The API requires the blocks of all calls in one message.
#[derive(serde::Serialize)]
pub(super) struct ResultBlock<'a> {
    content: ContentBlocks<'a>,
    is_error: bool,
    tool_use_id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Returns the block that answers a call.
pub(super) fn result_block<'a>(answer: &'a Answer<'_>) -> ResultBlock<'a> {
    ResultBlock {
        content: ContentBlocks(&answer.parts),
        is_error: answer.failed,
        tool_use_id: answer.tool_use.required_id(),
        kind: "tool_result",
    }
}

/// The blocks of an output.
struct ContentBlocks<'a>(&'a [Part<'a>]);

impl Serialize for ContentBlocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter_map(content_block))
    }
}

#[derive(serde::Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ContentBlock<'a> {
    Text { text: Cow<'a, str> },
    Image { source: Source<'a> },
}

#[derive(serde::Serialize)]
struct Source<'a> {
    data: Encoded<'a>,
    media_type: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Converts a part to a content block. The API rejects empty and blank text blocks.
fn content_block<'a>(part: &'a Part<'_>) -> Option<ContentBlock<'a>> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) if text.trim().is_empty() => Some(ContentBlock::Text {
            text: format!("[{} bytes of white space]", text.len()).into(),
        }),
        Part::Text(text) => Some(ContentBlock::Text { text: Cow::Borrowed(&**text) }),
        Part::Media { mime, data } => {
            let source = Source { data: Encoded(data), media_type: mime, kind: "base64" };
            Some(ContentBlock::Image { source })
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
            message_of(role, message.remove("content").unwrap_or_default())
        }
        Value::Array(blocks) => message_of("assistant".into(), blocks.into()),
        block @ Value::Object(_) => message_of("assistant".into(), vec![block].into()),
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
fn message_of(role: Value, content: Value) -> Vec<Value> {
    let is_empty = match &content {
        Value::String(text) => text.is_empty(),
        Value::Array(blocks) => blocks.is_empty(),
        _ => true,
    };
    if is_empty { Vec::new() } else { vec![object([("role", role), ("content", content)])] }
}
