//! The outcome of a call, as the messages that answer it read it.

use palisade_schema::json::Json;
use std::borrow::Cow;
use std::fmt;

/// The outcome of a call: what a model reads of its result.
///
/// The messages borrow from one outcome at a time, so that large outputs are not copied together. A
/// [`Result`] is an outcome: its value is the text of a success, and its error the message of a
/// failure.
pub trait Outcome {
    /// Returns the message of a failed call, or `None` on success.
    fn error_message(&self) -> Option<Cow<'_, str>>;

    /// Returns the blocks of the output in order. A failed call may have output, too.
    fn content_blocks(&self) -> impl Iterator<Item = Block<'_>>;
}

/// One block of an output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// One JSON value.
    Json(&'a Json),
    /// An image.
    Image {
        /// The media type, such as `image/png`.
        mime: &'a str,
        /// The bytes.
        data: &'a [u8],
    },
    /// A sound clip.
    Audio {
        /// The media type, such as `audio/wav`.
        mime: &'a str,
        /// The bytes.
        data: &'a [u8],
    },
    /// An embedded binary document.
    Resource {
        /// The document's URI.
        uri: &'a str,
        /// The media type, if known.
        mime: Option<&'a str>,
        /// The bytes.
        data: &'a [u8],
    },
}

impl<T: AsRef<str>, E: fmt::Display> Outcome for Result<T, E> {
    fn error_message(&self) -> Option<Cow<'_, str>> {
        self.as_ref().err().map(|error| Cow::Owned(error.to_string()))
    }

    fn content_blocks(&self) -> impl Iterator<Item = Block<'_>> {
        self.iter().map(|text| Block::Text(Cow::Borrowed(text.as_ref())))
    }
}
