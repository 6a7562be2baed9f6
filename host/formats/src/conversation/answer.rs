//! The outcome of a call, split into the parts of a provider's tool message.

use super::{Block, OmittedPart, Outcome, ToolUse};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use palisade_schema::json::Json;
use palisade_schema::text::elided;
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

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
    /// The whole output, if it is a single JSON value.
    json: Option<&'a Json>,
}

impl<'a> Answer<'a> {
    /// Splits an outcome into parts. A note replaces each part of a media type not in `accepted`.
    pub(super) fn new(
        tool_use: &'a ToolUse,
        outcome: &'a impl Outcome,
        accepted: &'static [&'static str],
    ) -> Self {
        let error = outcome.error_message();
        let failed = error.is_some();
        let blocks: Vec<Block<'a>> = outcome.content_blocks().collect();
        let json = match *blocks {
            [Block::Json(json)] if !failed => Some(json),
            _ => None,
        };
        let note = |part: String| Part::Text(format!("[{part}, left out]").into());
        let output =
            blocks.into_iter().map(|block| convert_block(block, accepted).unwrap_or_else(note));
        let parts = error.map(Part::Text).into_iter().chain(output).collect();
        Self { tool_use, failed, parts, json }
    }

    /// Returns the output, if it is a single JSON value of at most [`LARGEST_VALUE`].
    pub(super) fn value(&self) -> Option<&'a Json> {
        self.json.filter(|json| json.footprint() <= LARGEST_VALUE)
    }

    /// Returns the text of all parts, separated by line breaks.
    pub(super) fn text(&self) -> JoinedText<'_> {
        JoinedText(&self.parts)
    }

    /// Returns true if a part is not text.
    pub(super) fn has_media(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Media { .. }))
    }
}

/// Returns the parts of an outcome that are of a media type not in `accepted`.
pub(super) fn omitted_parts<'a>(
    tool_use: &'a ToolUse,
    outcome: &'a impl Outcome,
    accepted: &'static [&'static str],
) -> impl Iterator<Item = OmittedPart> {
    let unfit =
        outcome.content_blocks().filter_map(move |block| convert_block(block, accepted).err());
    unfit.map(|part| OmittedPart {
        call_id: tool_use.call_id.clone(),
        tool: tool_use.name.clone(),
        part,
    })
}

/// The text of all parts, separated by line breaks. It is written without a copy.
#[derive(Debug)]
pub(super) struct JoinedText<'a>(&'a [Part<'a>]);

impl fmt::Display for JoinedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.iter().filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            Part::Media { .. } => None,
        });
        for (index, text) in texts.enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(text)?;
        }
        Ok(())
    }
}

impl Serialize for JoinedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Bytes in Base64. They are written without a copy.
pub(super) struct Encoded<'a>(pub(super) &'a [u8]);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Base64Display::new(self.0, &STANDARD).fmt(f)
    }
}

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Converts a block to a part, or returns a description of the block if the provider does not
/// accept it.
fn convert_block<'a>(
    block: Block<'a>,
    accepted: &'static [&'static str],
) -> Result<Part<'a>, String> {
    let (kind, mime, data) = match block {
        Block::Text(text) => return Ok(Part::Text(text)),
        Block::Json(json) => return Ok(Part::Text(json.as_str().into())),
        Block::Image { mime, data } => ("image".to_owned(), Some(mime), data),
        Block::Audio { mime, data } => ("audio".to_owned(), Some(mime), data),
        Block::Resource { uri, mime, data } => {
            (format!("resource {}", elided(uri, 200)), mime, data)
        }
    };
    let is_same = |known: &&'static str| mime.is_some_and(|mime| mime.eq_ignore_ascii_case(known));
    match accepted.iter().copied().find(is_same) {
        Some(mime) => Ok(Part::Media { mime, data }),
        None => Err(format!("{kind} of {}, {} bytes", describe_type(mime), data.len())),
    }
}

fn describe_type(mime: Option<&str>) -> String {
    mime.map_or_else(|| "unknown type".to_owned(), |mime| format!("type {}", elided(mime, 64)))
}
