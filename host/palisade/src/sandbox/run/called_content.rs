//! The output of a called tool, as the plugin that has called it gets it.

use crate::sandbox::bindings::palisade::tool::types as wit;
use crate::tool::{Body, Content};

/// Returns a block of the output.
pub(super) fn to_wit(block: Content) -> wit::Content {
    match block {
        Content::Text(text) => wit::Content::Text(text),
        Content::Json(json) => wit::Content::Json(json.as_str().to_owned()),
        Content::Image { mime, data } => wit::Content::Image(wit::Media { mime, data }),
        Content::Audio { mime, data } => wit::Content::Audio(wit::Media { mime, data }),
        Content::Resource { uri, mime, body } => {
            let body = match body {
                Body::Text(text) => wit::ResourceBody::Text(text),
                Body::Bytes(bytes) => wit::ResourceBody::Bytes(bytes),
            };
            wit::Content::Resource(wit::EmbeddedResource { uri, mime, body })
        }
        Content::Link { uri, name, mime } => {
            wit::Content::Link(wit::ResourceLink { uri, name, mime })
        }
    }
}
