//! The blocks that a tool's output is made of.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The body of an embedded resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

/// One block of output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text for the model.
    Text(String),
    /// One JSON value.
    Json(Value),
    /// A picture.
    Image {
        /// The media type, such as `image/png`.
        mime: String,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A sound.
    Audio {
        /// The media type, such as `audio/wav`.
        mime: String,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A document, whole.
    Resource {
        /// Names the document; never followed.
        uri: String,
        /// The media type, if known.
        mime: Option<String>,
        /// The contents.
        body: Body,
    },
    /// A document, by reference.
    Link {
        /// Where the document is; never followed.
        uri: String,
        /// A name for people.
        name: String,
        /// The media type, if known.
        mime: Option<String>,
    },
}

impl Content {
    /// What a model that reads only text gets of this block.
    #[must_use]
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Resource { body: Body::Text(text), .. } => Cow::Borrowed(text),
            Self::Json(value) => Cow::Owned(value.to_string()),
            Self::Image { mime, data } => Cow::Owned(format!("[image {mime}, {} bytes]", data.len())),
            Self::Audio { mime, data } => Cow::Owned(format!("[audio {mime}, {} bytes]", data.len())),
            Self::Resource { uri, body: Body::Bytes(data), .. } => {
                Cow::Owned(format!("[resource {uri}, {} bytes]", data.len()))
            }
            Self::Link { uri, name, .. } => Cow::Owned(format!("[{name}]({uri})")),
        }
    }

    /// The block as JSON, its `type` first; bytes in Base64.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Json(value) => json!({"type": "json", "json": value}),
            Self::Image { mime, data } => json!({"type": "image", "mime": mime, "data": STANDARD.encode(data)}),
            Self::Audio { mime, data } => json!({"type": "audio", "mime": mime, "data": STANDARD.encode(data)}),
            Self::Resource { uri, mime, body: Body::Text(text) } => {
                json!({"type": "resource", "uri": uri, "mime": mime, "text": text})
            }
            Self::Resource { uri, mime, body: Body::Bytes(data) } => {
                json!({"type": "resource", "uri": uri, "mime": mime, "data": STANDARD.encode(data)})
            }
            Self::Link { uri, name, mime } => json!({"type": "link", "uri": uri, "name": name, "mime": mime}),
        }
    }
}
