//! The result of a server as the output of a tool.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade::execution::Outcome;
use palisade::tool::Body;
use palisade::tool::json::Json;
use palisade::{Content, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The most blocks of one result.
const MAX_BLOCKS: usize = 1_024;

/// The form of a tool's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The blocks, and the structured content only if there are none: servers repeat it as text.
    Blocks,
    /// The structured content in place of the blocks, since the tool has a schema for it.
    Structured,
}

/// Converts a result.
///
/// # Errors
///
/// The reason why it is no valid result.
pub(crate) fn to_output(result: CallToolResult, form: Form) -> Result<ToolOutput, &'static str> {
    if result.content.len() > MAX_BLOCKS {
        return Err("its result has more than 1,024 blocks");
    }
    let structured = result.structured_content.filter(|value| !value.is_null());
    let outcome = if result.is_error == Some(true) { Outcome::Failure } else { Outcome::Success };
    let mut content: Vec<Content> =
        result.content.into_iter().map(to_block).collect::<Result<_, _>>()?;
    let is_typed = form == Form::Structured && outcome == Outcome::Success;
    if let Some(value) = structured.filter(|_| content.is_empty() || is_typed) {
        content = vec![Content::Json(Json::from(value))];
    }
    Ok(ToolOutput { content, outcome, ..ToolOutput::default() })
}

fn to_block(block: ContentBlock) -> Result<Content, &'static str> {
    let bytes = |text: &str| STANDARD.decode(text).map_err(|_| "its result has invalid Base64");
    Ok(match block {
        ContentBlock::Text(text) => Content::Text(text.text),
        ContentBlock::Image(image) => {
            Content::Image { data: bytes(&image.data)?, mime: image.mime_type }
        }
        ContentBlock::Audio(audio) => {
            Content::Audio { data: bytes(&audio.data)?, mime: audio.mime_type }
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                Content::Resource { uri, mime: mime_type, body: Body::Text(text) }
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                Content::Resource { uri, mime: mime_type, body: Body::Bytes(bytes(&blob)?) }
            }
            _ => return Err("its result has a resource of an unknown kind"),
        },
        ContentBlock::ResourceLink(link) => {
            Content::Link { uri: link.uri, name: link.name, mime: link.mime_type }
        }
        _ => return Err("its result has a block of an unknown kind"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use serde_json::{Value, json};

    fn output(result: Value) -> Result<ToolOutput, &'static str> {
        to_output(serde_json::from_value(result).unwrap(), Form::Blocks)
    }

    #[test]
    fn each_kind_of_block_is_kept() {
        let blocks = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "AAE=", "mimeType": "image/png"},
            {"type": "audio", "data": "", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
            {"type": "resource_link", "uri": "a:c", "name": "c"},
        ]});
        let output = output(blocks).unwrap();
        assert_eq!(output.outcome, Outcome::Success);
        let kinds: Vec<Value> =
            output.content.iter().map(|block| block.to_json()["type"].clone()).collect();
        assert_eq!(kinds, ["text", "image", "audio", "resource", "link"]);
    }

    #[test]
    fn structured_content_replaces_the_blocks_of_a_tool_with_a_schema() {
        let only = output(json!({"content": [], "structuredContent": {"n": 1}})).unwrap();
        assert_eq!(only.content[0].as_text(), r#"{"n":1}"#);
        let repeated =
            json!({"content": [{"type": "text", "text": "n"}], "structuredContent": {"n": 1}});
        let typed = serde_json::from_value(repeated.clone()).unwrap();
        let typed = to_output(typed, Form::Structured).unwrap();
        assert_eq!(typed.content.len(), 1);
        assert_eq!(typed.content[0].as_text(), r#"{"n":1}"#);
        assert_eq!(output(repeated).unwrap().content[0].as_text(), "n");
    }

    #[test]
    fn error_of_the_tool_is_a_failure() {
        let failed = output(json!({"content": [], "isError": true})).unwrap();
        assert_eq!(failed.outcome, Outcome::Failure);
    }

    #[test]
    fn invalid_result_is_refused() {
        let image = json!({"content": [{"type": "image", "data": "??", "mimeType": "image/png"}]});
        assert!(output(image).is_err());
        let many = vec![json!({"type": "text", "text": ""}); MAX_BLOCKS + 1];
        assert!(output(json!({"content": many})).is_err());
    }
}
