//! Constructors for the content blocks of an output.

use serde::Serialize;

use crate::{Content, EmbeddedResource, Media, ResourceBody, ResourceLink, Result};

impl Content {
    /// Returns a block of text for the model.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a block with one JSON value.
    ///
    /// # Errors
    /// If `value` cannot be serialised as JSON: a map whose keys are not strings, or an error of
    /// its own `Serialize`.
    pub fn json(value: &impl Serialize) -> Result<Self> {
        Ok(Self::Json(serde_json::to_string(value)?))
    }

    /// Returns an image of a media type such as `image/png`. The bytes are not encoded.
    #[must_use]
    pub fn image(mime: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::Image(Media { mime: mime.into(), data: data.into() })
    }

    /// Returns audio of a media type such as `audio/wav`. The bytes are not encoded.
    #[must_use]
    pub fn audio(mime: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::Audio(Media { mime: mime.into(), data: data.into() })
    }

    /// Returns an embedded document, with its media type if known.
    #[must_use]
    pub fn resource(
        uri: impl Into<String>,
        mime: Option<&str>,
        body: impl Into<ResourceBody>,
    ) -> Self {
        Self::Resource(EmbeddedResource {
            uri: uri.into(),
            mime: mime.map(str::to_owned),
            body: body.into(),
        })
    }

    /// Returns a link to a document, with a display name and its media type if known.
    #[must_use]
    pub fn link(uri: impl Into<String>, name: impl Into<String>, mime: Option<&str>) -> Self {
        Self::Link(ResourceLink {
            uri: uri.into(),
            name: name.into(),
            mime: mime.map(str::to_owned),
        })
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ResourceBody {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ResourceBody {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for ResourceBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_content_block_can_be_created() {
        assert_eq!(Content::text("a"), Content::Text("a".to_owned()));
        assert_eq!(Content::json(&[1, 2]).unwrap(), Content::Json("[1,2]".to_owned()));
        let media = || Media { mime: "x/y".to_owned(), data: vec![1] };
        assert_eq!(Content::image("x/y", [1]), Content::Image(media()));
        assert_eq!(Content::audio("x/y", [1]), Content::Audio(media()));
        let body = |body| EmbeddedResource { uri: "u:1".to_owned(), mime: None, body };
        assert_eq!(
            Content::resource("u:1", None, "a"),
            Content::Resource(body(ResourceBody::Text("a".to_owned())))
        );
        assert_eq!(
            Content::resource("u:1", None, vec![1]),
            Content::Resource(body(ResourceBody::Bytes(vec![1])))
        );
        let link = ResourceLink {
            uri: "u:1".to_owned(),
            name: "n".to_owned(),
            mime: Some("x/y".to_owned()),
        };
        assert_eq!(Content::link("u:1", "n", Some("x/y")), Content::Link(link));
    }

    #[test]
    fn invalid_json_is_an_error() {
        let map = BTreeMap::from([((1, 2), 3)]);
        assert!(Content::json(&map).is_err());
    }
}
