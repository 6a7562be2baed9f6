//! Blocks of output as the protocol has them.

use crate::tool::Content;
use crate::tool::content::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{Annotations, ContentBlock, EmbeddedResource, Resource, ResourceContents, Role, TextContent};

/// One block. A JSON value is a text to clients; where it is structured content, it stands there, too.
pub(super) fn block(content: &Content) -> ContentBlock {
    match content {
        Content::Text(_) | Content::Json(_) => ContentBlock::text(content.as_text()),
        Content::Image { mime, data } => ContentBlock::image(STANDARD.encode(data), mime.clone()),
        Content::Audio { mime, data } => ContentBlock::audio(STANDARD.encode(data), mime.clone()),
        Content::Resource { uri, mime, body } => {
            ContentBlock::Resource(EmbeddedResource::new(resource(uri, mime.as_deref(), body)))
        }
        Content::Link { uri, name, mime } => {
            let link = Resource::new(uri, name);
            ContentBlock::resource_link(match mime {
                Some(mime) => link.with_mime_type(mime),
                None => link,
            })
        }
    }
}

/// The memory that the block of a content takes, in bytes.
pub(super) fn footprint(content: &Content) -> u64 {
    let bytes = match content {
        Content::Image { data, .. } | Content::Audio { data, .. } => encoded(data),
        Content::Resource { body: Body::Bytes(data), .. } => encoded(data),
        Content::Resource { body: Body::Text(text), .. } | Content::Text(text) => text.len(),
        Content::Json(json) => json.as_str().len(),
        Content::Link { .. } => 0,
    };
    bytes as u64
}

/// The length of bytes in Base64.
fn encoded(data: &[u8]) -> usize {
    data.len().div_ceil(3) * 4
}

/// A document, whole.
pub(super) fn resource(uri: &str, mime: Option<&str>, body: &Body) -> ResourceContents {
    let contents = match body {
        Body::Text(text) => ResourceContents::text(text.clone(), uri),
        Body::Bytes(data) => ResourceContents::blob(STANDARD.encode(data), uri),
    };
    match mime {
        Some(mime) => contents.with_mime_type(mime),
        None => contents,
    }
}

/// A text for the person in front of the client, not for its model.
pub(super) fn for_the_user(text: &str) -> ContentBlock {
    let annotations = Annotations::default().with_audience(vec![Role::User]);
    ContentBlock::Text(TextContent::new(text).with_annotations(annotations))
}
