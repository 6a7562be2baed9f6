//! A result, split into the parts of a provider's tool message.

use super::{LeftOut, ToolUse};
use crate::tool::text::elided;
use crate::tool::{Body, Content, ToolResult};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::borrow::Cow;

/// The largest output that is repeated as a JSON value, in bytes of memory. No provider accepts
/// more.
const LARGEST_VALUE: u64 = 32 << 20;

/// One part of an answer.
#[derive(Debug)]
pub(super) enum Part<'a> {
    /// Text, including the note that replaces an omitted part.
    Text(Cow<'a, str>),
    /// Data of a media type that the provider accepts.
    Media {
        /// The media type as the provider writes it.
        mime: &'static str,
        /// The bytes.
        data: &'a [u8],
    },
}

/// The answer to one call.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    /// The call.
    pub(super) tool_use: &'a ToolUse,
    /// True if the call failed.
    pub(super) failed: bool,
    /// The parts that the model reads.
    pub(super) parts: Vec<Part<'a>>,
    result: &'a ToolResult,
}

impl<'a> Answer<'a> {
    /// Splits a result into parts. A note replaces each part of a media type not in `accepted`.
    pub(super) fn new(
        tool_use: &'a ToolUse,
        result: &'a ToolResult,
        accepted: &'static [&'static str],
    ) -> Self {
        let error = result
            .error()
            .map(|error| Part::Text(format!("{}: {}", error.class(), error.reason()).into()));
        let note = |what: String| Part::Text(format!("[{what}, left out]").into());
        let blocks =
            result.output_blocks().iter().map(|block| part(block, accepted).unwrap_or_else(note));
        let parts = error.into_iter().chain(blocks).collect();
        Self { tool_use, failed: result.is_failure(), parts, result }
    }

    /// Returns the output as a value, if it is a single JSON value of at most [`LARGEST_VALUE`].
    pub(super) fn value(&self) -> Option<Value> {
        match self.result.content() {
            [Content::Json(json)] if !self.failed && json.footprint() <= LARGEST_VALUE => {
                Some(json.to_value())
            }
            _ => None,
        }
    }

    /// Returns the text of all parts, separated by line breaks.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            Part::Media { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns true if a part is not text.
    pub(super) fn has_media(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Media { .. }))
    }
}

/// Returns the parts of a result that are of a media type not in `accepted`.
pub(super) fn left_out<'a>(
    tool_use: &'a ToolUse,
    result: &'a ToolResult,
    accepted: &'static [&'static str],
) -> impl Iterator<Item = LeftOut> {
    let unfit = result.output_blocks().iter().filter_map(move |block| part(block, accepted).err());
    unfit.map(|what| LeftOut {
        call_id: tool_use.call_id.clone(),
        tool: tool_use.name.clone(),
        what,
    })
}

/// Encodes bytes for a message.
pub(super) fn base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}

/// Converts a block to a part, or returns a description of the block if the provider does not
/// accept it.
fn part<'a>(block: &'a Content, accepted: &'static [&'static str]) -> Result<Part<'a>, String> {
    let (what, mime, data) = match block {
        Content::Image { mime, data } => ("image".to_owned(), Some(mime), data),
        Content::Audio { mime, data } => ("audio".to_owned(), Some(mime), data),
        Content::Resource { uri, mime, body: Body::Bytes(data) } => {
            (format!("resource {}", elided(uri, 200)), mime.as_ref(), data)
        }
        Content::Text(_) | Content::Json(_) | Content::Resource { .. } | Content::Link { .. } => {
            return Ok(Part::Text(block.as_text()));
        }
    };
    let is_same = |known: &&'static str| mime.is_some_and(|mime| mime.eq_ignore_ascii_case(known));
    match accepted.iter().copied().find(is_same) {
        Some(mime) => Ok(Part::Media { mime, data }),
        None => Err(format!("{what} of {}, {} bytes", of_type(mime), data.len())),
    }
}

fn of_type(mime: Option<&String>) -> String {
    mime.map_or_else(|| "unknown type".to_owned(), |mime| format!("type {}", elided(mime, 64)))
}
