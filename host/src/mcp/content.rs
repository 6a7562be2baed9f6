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
