//! Conversions between the host's types and those of `palisade-formats`.

use super::text::cut;
use super::{Body, Call, Content, Definition, Schema, ToolResult};
use palisade_formats::{Block, DefinitionView, Outcome, ToolUse};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// The length in bytes at which a name is cut. Tool names are shorter, so a cut name matches no
/// tool.
const MAX_NAME: usize = 256;

/// The call to dispatch. A `null` stands for an absent member, as models write it under a strict
/// schema.
impl From<&ToolUse> for Call {
    fn from(tool_use: &ToolUse) -> Self {
        Self::new(cut(tool_use.name(), MAX_NAME), tool_use.input())
            .with_id(tool_use.call_id())
            .with_nulls_for_absent()
    }
}

/// The class is the one that the sandbox enforces; `idempotent` is the plugin's claim.
impl<'a> From<&'a Definition> for DefinitionView<'a> {
    fn from(definition: &'a Definition) -> Self {
        let name = definition.name().as_str();
        let mut view = Self::new(name, definition.description(), definition.parameters());
        view.title = definition.title();
        view.output_schema = definition.output_schema().map(Schema::as_value);
        view.side_effects = definition.side_effects().as_str();
        view.idempotent = definition.is_idempotent();
        view.sends_requests = definition.sends_requests();
        view.calls_tools = definition.calls_tools();
        view
    }
}

impl Outcome for ToolResult {
    fn error_message(&self) -> Option<Cow<'_, str>> {
        self.error().map(|error| Cow::Owned(format!("{}: {}", error.class(), error.reason())))
    }

    fn content_blocks(&self) -> impl Iterator<Item = Block<'_>> {
        self.output_blocks().iter().map(Block::from)
    }
}

impl<'a> From<&'a Content> for Block<'a> {
    fn from(content: &'a Content) -> Self {
        match content {
            Content::Json(json) => Self::Json(json),
            Content::Image { mime, data } => Self::Image { mime, data },
            Content::Audio { mime, data } => Self::Audio { mime, data },
            Content::Resource { uri, mime, body: Body::Bytes(data) } => {
                Self::Resource { uri, mime: mime.as_deref(), data }
            }
            Content::Text(_) | Content::Resource { .. } | Content::Link { .. } => {
                Self::Text(content.as_text())
            }
        }
    }
}
