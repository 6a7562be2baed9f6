//! Converts output content into content blocks of the protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade::Content;
use palisade::tool::Body;
use rmcp::model::{ContentBlock, EmbeddedResource, Resource, ResourceContents};

/// Converts one block of content. JSON becomes text here; structured content is added elsewhere.
pub(crate) fn content_block(content: &Content) -> ContentBlock {
    match content {
        Content::Image { mime, data } => ContentBlock::image(STANDARD.encode(data), mime.clone()),
        Content::Audio { mime, data } => ContentBlock::audio(STANDARD.encode(data), mime.clone()),
        Content::Resource { uri, mime, body } => ContentBlock::Resource(EmbeddedResource::new(
            resource_contents(uri, mime.as_deref(), body),
        )),
        Content::Link { uri, name, mime } => {
            let link = Resource::new(uri, name);
            ContentBlock::resource_link(match mime {
                Some(mime) => link.with_mime_type(mime),
                None => link,
            })
        }
        // Text, JSON, and each kind that `palisade` adds later.
        _ => ContentBlock::text(content.as_text()),
    }
}

/// Returns the memory that a block of content takes, in bytes.
pub(crate) fn footprint(content: &Content) -> u64 {
    let bytes = match content {
        Content::Image { data, .. } | Content::Audio { data, .. } => encoded_length(data),
        Content::Resource { body: Body::Bytes(data), .. } => encoded_length(data),
        Content::Resource { body: Body::Text(text), .. } | Content::Text(text) => text.len(),
        Content::Json(json) => json.as_str().len(),
        Content::Link { .. } => 0,
        _ => content.as_text().len(),
    };
    bytes as u64
}

/// Returns the length of Base64-encoded data.
fn encoded_length(data: &[u8]) -> usize {
    data.len().div_ceil(3) * 4
}

/// Converts a whole resource.
pub(crate) fn resource_contents(uri: &str, mime: Option<&str>, body: &Body) -> ResourceContents {
    let contents = match body {
        Body::Text(text) => ResourceContents::text(text.clone(), uri),
        Body::Bytes(data) => ResourceContents::blob(STANDARD.encode(data), uri),
    };
    match mime {
        Some(mime) => contents.with_mime_type(mime),
        None => contents,
    }
}
