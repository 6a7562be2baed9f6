//! The content blocks of a tool's output.

use super::json::Json;
use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The body of an embedded resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Binary data.
    Bytes(Vec<u8>),
}

/// One block of output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text for the model.
    Text(String),
    /// One JSON value, as its canonical text.
    Json(Json),
    /// An image.
    Image {
        /// The media type, such as `image/png`.
        mime: String,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A sound clip.
    Audio {
        /// The media type, such as `audio/wav`.
        mime: String,
        /// The bytes.
        data: Vec<u8>,
    },
    /// An embedded document.
    Resource {
        /// The document's URI; never dereferenced.
        uri: String,
        /// The media type, if known.
        mime: Option<String>,
        /// The contents.
        body: Body,
    },
    /// A reference to a document.
    Link {
        /// The document's URI; never dereferenced.
        uri: String,
        /// A name for display.
        name: String,
        /// The media type, if known.
        mime: Option<String>,
    },
}

impl Content {
    /// Returns the text form of this block, for models that read only text.
    #[must_use]
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Resource { body: Body::Text(text), .. } => Cow::Borrowed(text),
            Self::Json(json) => Cow::Borrowed(json.as_str()),
            Self::Image { mime, data } => {
                Cow::Owned(format!("[image {mime}, {} bytes]", data.len()))
            }
            Self::Audio { mime, data } => {
                Cow::Owned(format!("[audio {mime}, {} bytes]", data.len()))
            }
            Self::Resource { uri, body: Body::Bytes(data), .. } => {
                Cow::Owned(format!("[resource {uri}, {} bytes]", data.len()))
            }
            Self::Link { uri, name, .. } => Cow::Owned(format!("[{name}]({uri})")),
        }
    }

    /// Returns the memory of the block's content, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Json(json) => json.as_str().len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
            Self::Resource { uri, body: Body::Text(text), .. } => uri.len() + text.len(),
            Self::Resource { uri, body: Body::Bytes(data), .. } => uri.len() + data.len(),
            Self::Link { uri, name, .. } => uri.len() + name.len(),
        }
    }

    /// Returns the block as a JSON object with a `type`; bytes are in Base64.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Json(json) => json!({"type": "json", "json": json}),
            Self::Image { mime, data } => {
                json!({"type": "image", "mime": mime, "data": STANDARD.encode(data)})
            }
            Self::Audio { mime, data } => {
                json!({"type": "audio", "mime": mime, "data": STANDARD.encode(data)})
            }
            Self::Resource { uri, mime, body: Body::Text(text) } => {
                json!({"type": "resource", "uri": uri, "mime": mime, "text": text})
            }
            Self::Resource { uri, mime, body: Body::Bytes(data) } => {
                json!({"type": "resource", "uri": uri, "mime": mime, "data": STANDARD.encode(data)})
            }
            Self::Link { uri, name, mime } => {
                json!({"type": "link", "uri": uri, "name": name, "mime": mime})
            }
        }
    }
}

/// Writes the same JSON as [`to_json`](Content::to_json) without building a value, so that large
/// blocks are not copied.
impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Keys in alphabetical order, like those of a `serde_json` map.
        let mut block = serializer.serialize_map(None)?;
        let kind = match self {
            Self::Text(text) => {
                block.serialize_entry("text", text)?;
                "text"
            }
            Self::Json(json) => {
                block.serialize_entry("json", json)?;
                "json"
            }
            Self::Image { mime, data } => {
                block.serialize_entry("data", &Encoded(data))?;
                block.serialize_entry("mime", mime)?;
                "image"
            }
            Self::Audio { mime, data } => {
                block.serialize_entry("data", &Encoded(data))?;
                block.serialize_entry("mime", mime)?;
                "audio"
            }
            Self::Resource { uri, mime, body } => {
                if let Body::Bytes(data) = body {
                    block.serialize_entry("data", &Encoded(data))?;
                }
                block.serialize_entry("mime", mime)?;
                if let Body::Text(text) = body {
                    block.serialize_entry("text", text)?;
                }
                block.serialize_entry("type", "resource")?;
                block.serialize_entry("uri", uri)?;
                return block.end();
            }
            Self::Link { uri, name, mime } => {
                block.serialize_entry("mime", mime)?;
                block.serialize_entry("name", name)?;
                block.serialize_entry("type", "link")?;
                block.serialize_entry("uri", uri)?;
                return block.end();
            }
        };
        block.serialize_entry("type", kind)?;
        block.end()
    }
}

/// Bytes that serialize as Base64.
struct Encoded<'a>(&'a [u8]);

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_written_like_its_value() {
        let mime = "image/png".to_owned();
        let uri = "doc:a".to_owned();
        let data = vec![0, 1, 255, 7];
        let json = Json::from(json!({"b": [1, "\u{1}"], "a": null}));
        let resource = |mime, body| Content::Resource { uri: uri.clone(), mime, body };
        for block in [
            Content::Text("\u{1}a\"".to_owned()),
            Content::Json(json),
            Content::Image { mime: mime.clone(), data: data.clone() },
            Content::Audio { mime: mime.clone(), data: data.clone() },
            resource(Some(mime.clone()), Body::Text("text".to_owned())),
            resource(None, Body::Bytes(data.clone())),
            Content::Link { uri: uri.clone(), name: "a".to_owned(), mime: None },
        ] {
            assert_eq!(
                serde_json::to_string(&block).ok(),
                serde_json::to_string(&block.to_json()).ok()
            );
        }
    }
}
