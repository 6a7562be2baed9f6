//! Converts output content into content blocks of the protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade::Content;
use palisade::internal::is_short;
use palisade::tool::Body;
use palisade::tool::text::visible;
use rmcp::model::{ContentBlock, EmbeddedResource, PromptMessage, Resource, ResourceContents};
use std::borrow::Cow;

/// Converts one block of content. JSON becomes text here; structured content is added elsewhere.
pub(crate) fn content_block(content: &Content) -> ContentBlock {
    match content {
        Content::Image { mime, data } => ContentBlock::image(STANDARD.encode(data), visible(mime)),
        Content::Audio { mime, data } => ContentBlock::audio(STANDARD.encode(data), visible(mime)),
        Content::Resource { uri, mime, body } => ContentBlock::Resource(EmbeddedResource::new(
            resource_contents(uri, mime.as_deref(), body),
        )),
        Content::Link { uri, name, mime } => {
            // A client shows the name and the type to a person.
            let link = Resource::new(visible(uri), visible(name));
            ContentBlock::resource_link(match mime {
                Some(mime) => link.with_mime_type(visible(mime)),
                None => link,
            })
        }
        // Text, JSON, and each kind that `palisade` adds later.
        _ => ContentBlock::text(content.as_text()),
    }
}

/// The memory of a block in a response besides its texts, in bytes: its place among the blocks of
/// the result and among those of the message. A text has no allocation below 32 bytes.
const BLOCK: usize = size_of::<PromptMessage>() + size_of::<Cow<'_, Content>>() + 32;

/// The size of content in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentSize {
    /// The length of all texts and encoded data, in bytes.
    pub(crate) text: u64,
    /// The memory of the converted blocks, in bytes.
    pub(crate) memory: u64,
}

impl ContentSize {
    /// Returns the size of these blocks.
    pub(crate) fn of(blocks: &[Content]) -> Self {
        let text = blocks.iter().map(text_length).sum::<usize>() as u64;
        Self { text, memory: text + blocks.len() as u64 * BLOCK as u64 }
    }

    /// Returns true if the blocks are converted in place.
    pub(crate) fn is_short(self) -> bool {
        usize::try_from(self.text).is_ok_and(|text| is_short(text, self.memory))
    }
}

/// Returns the length of the texts and the encoded data of a block, in bytes.
fn text_length(content: &Content) -> usize {
    let optional = |text: &Option<String>| text.as_deref().map_or(0, |text| visible(text).len());
    match content {
        Content::Image { mime, data } | Content::Audio { mime, data } => {
            visible(mime).len() + encoded_length(data)
        }
        Content::Resource { uri, mime, body } => {
            let body = match body {
                Body::Text(text) => text.len(),
                Body::Bytes(data) => encoded_length(data),
            };
            visible(uri).len() + optional(mime) + body
        }
        Content::Text(text) => text.len(),
        Content::Json(json) => json.as_str().len(),
        Content::Link { uri, name, mime } => {
            visible(uri).len() + visible(name).len() + optional(mime)
        }
        _ => content.as_text().len(),
    }
}

/// Returns the length of Base64-encoded data.
fn encoded_length(data: &[u8]) -> usize {
    data.len().div_ceil(3) * 4
}

/// Converts a whole resource.
pub(crate) fn resource_contents(uri: &str, mime: Option<&str>, body: &Body) -> ResourceContents {
    let contents = match body {
        Body::Text(text) => ResourceContents::text(text.clone(), visible(uri)),
        Body::Bytes(data) => ResourceContents::blob(STANDARD.encode(data), visible(uri)),
    };
    match mime {
        Some(mime) => contents.with_mime_type(visible(mime)),
        None => contents,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_of_content_shows_its_hidden_characters() {
        let mime = Some("text/\u{1b}[2J".to_owned());
        let resource = Content::Resource {
            uri: "a:1".to_owned(),
            mime: mime.clone(),
            body: Body::Text(String::new()),
        };
        let link = Content::Link { uri: "a:1".to_owned(), name: "n".to_owned(), mime };
        for content in [resource, link] {
            let text = serde_json::to_string(&content_block(&content)).unwrap_or_default();
            assert!(text.contains(r"text/\\u{1b}[2J"), "{text}");
        }
    }

    #[test]
    fn small_blocks_count_with_the_memory_of_their_conversion() {
        let blocks = vec![Content::Text("a".to_owned()); 1_000];
        let size = ContentSize::of(&blocks);
        let converted = size_of::<ContentBlock>() as u64;
        assert_eq!(size.text, 1_000);
        assert!(size.memory > 1_000 * converted && !size.is_short(), "{size:?}");
        assert!(ContentSize::of(&blocks[..10]).is_short());
        assert!(!ContentSize::of(&[Content::Text("a".repeat(1 << 20))]).is_short());
    }

    #[test]
    fn name_of_a_link_is_escaped() {
        let name = "\u{1b}[2Jevil".to_owned();
        let link = Content::Link { uri: "a:1".into(), name, mime: None };
        let text = serde_json::to_value(content_block(&link))
            .map_or_else(|error| error.to_string(), |block| block.to_string());
        assert!(text.contains(r"\\u{1b}[2Jevil"), "{text}");
    }

    #[test]
    fn every_text_of_a_block_counts() {
        let link =
            Content::Link { uri: "a:1".into(), name: "one".into(), mime: Some("t/p".into()) };
        let body = Body::Bytes(vec![0; 4]);
        let resource = Content::Resource { uri: "a:1".into(), mime: None, body };
        let image = Content::Image { mime: "i/p".into(), data: vec![0; 3] };
        assert_eq!(ContentSize::of(&[link, resource, image]).text, 9 + 3 + 8 + 3 + 4);
    }
}
