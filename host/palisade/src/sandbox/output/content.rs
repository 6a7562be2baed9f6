//! Conversion of the content blocks of a guest's output. A block that refers to a local file is
//! replaced by a note.

use super::breach::Promiser;
use crate::sandbox::bindings::palisade::tool::types as wit;
use crate::sandbox::limits;
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::json::{Json, JsonBounds, JsonError};
use crate::tool::text::elided;
use crate::tool::uri::leads_to_a_file;
use crate::tool::{Body, Content, ErrorKind};

/// The bounds of a JSON block.
const JSON: JsonBounds =
    JsonBounds { bytes: limits::RESULT as usize, depth: 64, members: 1_000_000 };
/// The size that a block with a URI is charged for in addition to its content, in bytes. The note
/// that may replace the block quotes the beginning and the end of the URI, and must not be longer
/// than the charge.
const LEFT_OUT: usize = 256;
/// The reason why a block is left out.
const NO_FILE: &str = "for a plugin points at no file of this machine";

/// Returns the size that the blocks of an output are charged for, in bytes.
pub(crate) fn size(blocks: &[wit::Content]) -> usize {
    blocks.iter().map(size_of).sum()
}

/// The converter of one output's blocks, whose total size has been checked.
#[derive(Default)]
pub(crate) struct ContentConverter {
    left_out: Option<LeftOut>,
}

/// The blocks that were left out because they refer to local files.
struct LeftOut {
    first: String,
    more: usize,
}

impl ContentConverter {
    /// Converts one block.
    ///
    /// # Errors
    ///
    /// Returns a breach of the contract if a JSON block is not valid JSON, or the exhaustion of the
    /// budget.
    pub(crate) fn convert(
        &mut self,
        block: wit::Content,
        budget: &dyn Budget,
    ) -> Result<Content, Unfit> {
        match file(&block).map(|uri| elided(uri, 128)) {
            Some(uri) => Ok(self.leave_out(uri)),
            None => content(block, budget),
        }
    }

    fn leave_out(&mut self, uri: String) -> Content {
        let note = format!("[left out: `{uri}`, {NO_FILE}]");
        match &mut self.left_out {
            Some(before) => before.more += 1,
            None => self.left_out = Some(LeftOut { first: uri, more: 0 }),
        }
        Content::Text(note)
    }

    /// Returns the host's warning about the blocks that were left out: one for all of them.
    pub(crate) fn left_out(&self) -> Option<String> {
        let LeftOut { first, more } = self.left_out.as_ref()?;
        let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
        Some(format!("left out of the output: `{first}`{more}, {NO_FILE}"))
    }
}

/// The reason why an output is rejected.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// The output breaks the contract.
    Contract(ErrorKind),
    /// The budget is exhausted.
    Exhausted(Exhausted),
}

impl From<Exhausted> for Unfit {
    fn from(exhausted: Exhausted) -> Self {
        Self::Exhausted(exhausted)
    }
}

/// Parses a JSON block. The reservation of its raw text is released, because the parsed value has
/// its own.
fn json(text: String, budget: &dyn Budget) -> Result<Content, Unfit> {
    let (json, _kept) = Json::parse_within(&text, JSON, budget).map_err(|error| match error {
        JsonError::Exhausted(exhausted) => Unfit::Exhausted(exhausted),
        wrong => Unfit::Contract(
            Promiser::Plugin
                .breach(&format!("a json block of its output is not valid JSON: {wrong}")),
        ),
    })?;
    let read = text.len() as u64;
    drop(text);
    budget.release(read);
    Ok(Content::Json(json))
}

fn content(block: wit::Content, budget: &dyn Budget) -> Result<Content, Unfit> {
    Ok(match block {
        wit::Content::Text(text) => Content::Text(text),
        wit::Content::Json(text) => json(text, budget)?,
        wit::Content::Image(media) => Content::Image { mime: media.mime, data: media.data },
        wit::Content::Audio(media) => Content::Audio { mime: media.mime, data: media.data },
        wit::Content::Resource(resource) => Content::Resource {
            uri: resource.uri,
            mime: resource.mime,
            body: match resource.body {
                wit::ResourceBody::Text(text) => Body::Text(text),
                wit::ResourceBody::Bytes(bytes) => Body::Bytes(bytes),
            },
        },
        wit::Content::Link(link) => {
            Content::Link { uri: link.uri, name: link.name, mime: link.mime }
        }
    })
}

fn size_of(block: &wit::Content) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match block {
        wit::Content::Text(text) | wit::Content::Json(text) => text.len(),
        wit::Content::Image(media) | wit::Content::Audio(media) => {
            media.mime.len() + media.data.len()
        }
        wit::Content::Resource(resource) => {
            let body = match &resource.body {
                wit::ResourceBody::Text(text) => text.len(),
                wit::ResourceBody::Bytes(bytes) => bytes.len(),
            };
            LEFT_OUT + resource.uri.len() + optional(&resource.mime) + body
        }
        wit::Content::Link(link) => {
            LEFT_OUT + link.uri.len() + link.name.len() + optional(&link.mime)
        }
    }
}

/// Returns the URI of a block that refers to a local file.
fn file(block: &wit::Content) -> Option<&str> {
    match block {
        wit::Content::Resource(wit::EmbeddedResource { uri, .. })
        | wit::Content::Link(wit::ResourceLink { uri, .. })
            if leads_to_a_file(uri) =>
        {
            Some(uri)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::budget::Unlimited;

    fn link(uri: &str) -> wit::Content {
        wit::Content::Link(wit::ResourceLink {
            uri: uri.to_owned(),
            name: String::new(),
            mime: None,
        })
    }

    #[test]
    fn placeholder_is_not_longer_than_its_block() {
        for uri in [
            "file:",
            "\u{200b}",
            &"\u{e0001}".repeat(16),
            &"\u{e0001}".repeat(1000),
            &"\u{fdfd}".repeat(1000),
        ] {
            let counted = size(&[link(uri)]);
            let Ok(Content::Text(text)) =
                ContentConverter::default().convert(link(uri), &Unlimited)
            else {
                panic!("it is left out")
            };
            assert!(
                text.len() <= counted,
                "{text:?} has {} bytes, and counts for {counted}",
                text.len()
            );
        }
    }

    #[test]
    fn every_part_of_a_block_counts() {
        let media = || wit::Media { mime: "i/p".to_owned(), data: vec![0; 5] };
        let body = wit::ResourceBody::Bytes(vec![0; 7]);
        let resource =
            wit::EmbeddedResource { uri: "a:1".to_owned(), mime: Some("t/p".to_owned()), body };
        let uri = "a:1".to_owned();
        let name = "name".to_owned();
        let mime = Some("te/p".to_owned());
        let named = wit::Content::Link(wit::ResourceLink { uri, name, mime });
        let blocks = [
            (wit::Content::Text("ab".to_owned()), 2),
            (wit::Content::Json("{}".to_owned()), 2),
            (wit::Content::Image(media()), 8),
            (wit::Content::Audio(media()), 8),
            (wit::Content::Resource(resource), LEFT_OUT + 13),
            (named, LEFT_OUT + 11),
        ];
        for (block, bytes) in &blocks {
            assert_eq!(size_of(block), *bytes, "{block:?}");
        }
        assert_eq!(size(&blocks.map(|(block, _)| block)), 44 + 2 * LEFT_OUT);
    }

    #[test]
    fn file_links_are_omitted_with_one_note() {
        let mut converter = ContentConverter::default();
        assert!(matches!(
            converter.convert(link("https://example.org"), &Unlimited),
            Ok(Content::Link { .. })
        ));
        assert_eq!(converter.left_out(), None);
        for (uri, told) in [
            ("file:///one", "`file:///one`, for"),
            ("file:///two", "`file:///one` and 1 more, for"),
            ("file:///three", "`file:///one` and 2 more, for"),
        ] {
            let taken = converter.convert(link(uri), &Unlimited);
            assert!(matches!(taken, Ok(Content::Text(text)) if text.contains(uri)));
            assert!(
                converter.left_out().is_some_and(|words| words.contains(told)),
                "{:?}",
                converter.left_out()
            );
        }
    }
}
