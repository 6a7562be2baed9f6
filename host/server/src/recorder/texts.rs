//! The texts of a call as far as the journal keeps them.

use super::InputRecording;
use crate::journal::Body;
use palisade::internal::named_file;
use palisade::tool::{Body as ContentBody, Digest};
use palisade::{Content, ToolResult};
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest input, output, command or list of files, in bytes.
const TEXT: usize = 64 << 10;
/// The longest message, in bytes.
const MESSAGE: usize = 16 << 10;
/// The most blocks of an output that are described.
const BLOCKS: usize = 64;
/// The longest media type, in bytes.
const MEDIA_TYPE: usize = 256;
/// The media type of a document of unknown type.
const UNKNOWN: &str = "application/octet-stream";
/// The metadata key for the number of changed files beyond the list of a result.
const UNLISTED: &str = "files_modified_unlisted";

/// Returns an input as the settings want it.
pub(super) fn input(text: &str, recording: InputRecording) -> Body {
    let digest = || Some(digest(text).into());
    let length = text.len() as u64;
    match recording {
        InputRecording::Digest => Body { text: None, length, digest: digest() },
        InputRecording::Whole if text.len() <= TEXT => {
            Body { text: Some(text.into()), length, digest: None }
        }
        InputRecording::Whole => {
            Body { text: Some(cut(text, TEXT).into()), length, digest: digest() }
        }
    }
}

/// Returns an output. It gets no digest, because the end of a call must not take long.
pub(super) fn output(text: &str) -> Body {
    Body { text: Some(cut(text, TEXT).into()), length: text.len() as u64, digest: None }
}

/// Returns the message of an error.
pub(super) fn message(text: &str) -> Arc<str> {
    cut(text, MESSAGE).into()
}

/// Returns an executed command, which repeats words of the input, as the settings want inputs.
pub(super) fn command(text: &str, recording: InputRecording) -> Arc<str> {
    match recording {
        InputRecording::Whole => cut(text, TEXT).into(),
        InputRecording::Digest => digest(text).into(),
    }
}

/// Returns the digest of a text, such as `sha256:…`.
pub(super) fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

/// Returns the blocks of an output that are no text as a JSON array of `{"kind", "media_type",
/// "bytes"}`. `None` if there are none.
pub(super) fn other_blocks(blocks: &[Content]) -> Option<Arc<str>> {
    let described = blocks.iter().filter_map(|block| {
        let (kind, media_type, bytes) = match block {
            Content::Image { mime, data } => ("image", mime.as_str(), data.len()),
            Content::Audio { mime, data } => ("audio", mime.as_str(), data.len()),
            Content::Resource { mime, body: ContentBody::Bytes(data), .. } => {
                ("resource", mime.as_deref().unwrap_or(UNKNOWN), data.len())
            }
            _ => return None,
        };
        Some(json!({"kind": kind, "media_type": cut(media_type, MEDIA_TYPE), "bytes": bytes}))
    });
    let described: Vec<Value> = described.take(BLOCKS).collect();
    (!described.is_empty()).then(|| Value::from(described).to_string().into())
}

/// Returns texts as a JSON array.
pub(super) fn list(texts: &[String]) -> Arc<str> {
    Value::from(texts).to_string().into()
}

/// Returns the changed files as a JSON array, and the number of those that are not in it.
pub(super) fn files(result: &ToolResult) -> (Option<Arc<str>>, u64) {
    let mut room = TEXT;
    let fits = |file: &&std::path::PathBuf| {
        let left = room.checked_sub(file.as_os_str().len());
        room = left.unwrap_or_default();
        left.is_some()
    };
    let all = result.files_modified();
    let listed: Vec<Value> = all.iter().take_while(fits).map(|file| named_file(file)).collect();
    let unlisted = result.metadata().get(UNLISTED).and_then(Value::as_u64).unwrap_or_default();
    let unlisted = unlisted + (all.len() - listed.len()) as u64;
    ((!listed.is_empty()).then(|| Value::from(listed).to_string().into()), unlisted)
}

/// Returns the beginning of a text, at most this long, and of whole characters.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_input_is_cut_between_characters_and_has_a_digest() {
        let text = "é".repeat(TEXT);
        let whole = Digest::of(text.as_bytes()).to_string();
        let body = input(&format!("x{text}"), InputRecording::Whole);
        assert_eq!(body.text.as_ref().map(|text| text.len()), Some(TEXT - 1));
        assert_eq!(body.length, 2 * TEXT as u64 + 1);
        let private = input(&text, InputRecording::Digest);
        assert_eq!((private.text, private.digest.as_deref()), (None, Some(whole.as_str())));
        let short = input("{}", InputRecording::Whole);
        assert_eq!((short.text.as_deref(), short.length, short.digest), (Some("{}"), 2, None));
    }

    #[test]
    fn blocks_that_are_no_text_are_described() {
        let image = Content::Image { mime: "image/png".to_owned(), data: vec![0; 3] };
        let document = |body| Content::Resource { uri: "x:y".to_owned(), mime: None, body };
        let blocks = [
            Content::Text("a".to_owned()),
            image,
            document(ContentBody::Bytes(vec![0; 2])),
            document(ContentBody::Text("b".to_owned())),
        ];
        let described: Value =
            serde_json::from_str(&other_blocks(&blocks).unwrap_or_default()).unwrap_or_default();
        assert_eq!(
            described,
            json!([
                {"kind": "image", "media_type": "image/png", "bytes": 3},
                {"kind": "resource", "media_type": UNKNOWN, "bytes": 2},
            ])
        );
        assert_eq!(other_blocks(&blocks[..1]), None);
        let many = vec![blocks[1].clone(); 2 * BLOCKS];
        let described: Value =
            serde_json::from_str(&other_blocks(&many).unwrap_or_default()).unwrap_or_default();
        assert_eq!(described.as_array().map(Vec::len), Some(BLOCKS));
    }
}
