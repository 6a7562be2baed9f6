//! The blocks of a guest's output: bounded as a whole, taken one by one, and none of them a way to a file of this machine.

use super::bindings::palisade::tool::types as wit;
use super::convert::contract;
use super::limits;
use crate::tool::json::{JsonBounds, parse_bounded};
use crate::tool::text::{elided, is_ignorable};
use crate::tool::{Body, Content, ErrorKind, Limit};

/// The bounds of a json block.
const JSON: JsonBounds = JsonBounds { bytes: limits::RESULT as usize, depth: 64, members: 1_000_000 };
/// What a block that is left out counts for besides what is in it, in bytes: the words that stand for it.
const LEFT_OUT: usize = 64;
/// How much of a name is looked at for where it points, in characters.
const LOOKED_AT: usize = 256;
/// Why a block is left out.
const NO_FILE: &str = "for a plugin points at no file of this machine";

/// Who gave the documents in an output their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// The guest: whoever follows one must not open a file with it.
    Guest,
    /// Whoever asked for the document: one of those that the plugin offers, which are no files.
    Caller,
}

/// Takes over the blocks of one output.
pub(super) struct Blocks {
    names: Names,
    bytes: usize,
    left_out: Option<LeftOut>,
}

/// The blocks that point at files.
struct LeftOut {
    first: String,
    more: usize,
}

impl Blocks {
    /// For an output that has so many bytes besides its blocks.
    pub(super) fn beside(bytes: usize, names: Names) -> Self {
        Self { names, bytes, left_out: None }
    }

    /// Takes the next one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ResourceExhausted`] where the output is longer than a result may be, and a breach of the contract where the block says that it is JSON, and is
    /// not.
    pub(super) fn take(&mut self, block: wit::Content) -> Result<Content, ErrorKind> {
        self.bytes = self.bytes.saturating_add(size(&block));
        let file = file(&block).filter(|_| self.names == Names::Guest).map(|uri| elided(uri, 128));
        if file.is_some() {
            self.bytes = self.bytes.saturating_add(LEFT_OUT);
        }
        if self.bytes as u64 > limits::RESULT {
            return Err(ErrorKind::ResourceExhausted { limit: Limit::Result, value: limits::RESULT });
        }
        match file {
            Some(uri) => Ok(self.leave_out(uri)),
            None => content(block),
        }
    }

    fn leave_out(&mut self, uri: String) -> Content {
        let words = format!("[left out: `{uri}`, {NO_FILE}]");
        match &mut self.left_out {
            Some(before) => before.more += 1,
            None => self.left_out = Some(LeftOut { first: uri, more: 0 }),
        }
        Content::Text(words)
    }

    /// What the host says of the blocks that it leaves out: once for all of them.
    pub(super) fn left_out(&self) -> Option<String> {
        let LeftOut { first, more } = self.left_out.as_ref()?;
        let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
        Some(format!("left out of the output: `{first}`{more}, {NO_FILE}"))
    }
}

fn content(block: wit::Content) -> Result<Content, ErrorKind> {
    Ok(match block {
        wit::Content::Text(text) => Content::Text(text),
        wit::Content::Json(text) => Content::Json(
            parse_bounded(&text, JSON)
                .map_err(|error| contract(&format!("a json block of its output is not valid JSON: {error}")))?,
        ),
        wit::Content::Image(media) => Content::Image { mime: media.mime, data: media.data },
        wit::Content::Audio(media) => Content::Audio { mime: media.mime, data: media.data },
        wit::Content::Resource(resource) => Content::Resource {
            uri: resource.uri,
            mime: resource.mime,
            body: match resource.body {
                wit::ResourceBody::Text(text) => Body::Text(text),
                wit::ResourceBody::Bytes(bytes) => Body::Bytes(bytes),
            },
        },
        wit::Content::Link(link) => Content::Link { uri: link.uri, name: link.name, mime: link.mime },
    })
}

fn size(block: &wit::Content) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match block {
        wit::Content::Text(text) | wit::Content::Json(text) => text.len(),
        wit::Content::Image(media) | wit::Content::Audio(media) => media.mime.len() + media.data.len(),
        wit::Content::Resource(resource) => {
            let body = match &resource.body {
                wit::ResourceBody::Text(text) => text.len(),
                wit::ResourceBody::Bytes(bytes) => bytes.len(),
            };
            resource.uri.len() + optional(&resource.mime) + body
        }
        wit::Content::Link(link) => link.uri.len() + link.name.len() + optional(&link.mime),
    }
}

/// The file that a block points at.
fn file(block: &wit::Content) -> Option<&str> {
    match block {
        wit::Content::Resource(wit::EmbeddedResource { uri, .. })
        | wit::Content::Link(wit::ResourceLink { uri, .. })
            if points_at_a_file(uri) =>
        {
            Some(uri)
        }
        _ => None,
    }
}

/// Whether whoever follows this would open a file with the rights of the user: a `file:` as browsers read it, in any spelling, without what they leave out and
/// behind a `view-source:`; or a path that needs no scheme, of this machine or of another in its network.
fn points_at_a_file(uri: &str) -> bool {
    let is_read = |character: &char| !character.is_whitespace() && !character.is_control() && !is_ignorable(*character);
    let read: String = uri.chars().filter(is_read).flat_map(char::to_lowercase).take(LOOKED_AT).collect();
    let mut read = read.as_str();
    while let Some(inner) = read.strip_prefix("view-source:") {
        read = inner;
    }
    read.starts_with("file:") || read.starts_with(['/', '\\', '~']) || is_on_a_drive(read)
}

/// `c:\x` and `c:/x`, as Windows writes paths. Behind a scheme of one letter there would be two slashes.
fn is_on_a_drive(read: &str) -> bool {
    let mut characters = read.chars();
    let letter = characters.next().is_some_and(|it| it.is_ascii_alphabetic());
    let rest = characters.as_str();
    letter && (rest.starts_with(":\\") || rest.starts_with(":/") && !rest.starts_with("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(uri: &str) -> wit::Content {
        wit::Content::Link(wit::ResourceLink { uri: uri.to_owned(), name: String::new(), mime: None })
    }

    #[test]
    fn a_name_that_opens_a_file_is_told_from_one_that_does_not() {
        for file in [
            "file:///etc/passwd",
            "FILE:/x",
            " f\ti\nle:x",
            "\u{feff}file:x",
            "\u{a0}fi\u{200b}le:x",
            "view-source:file:///x",
            "view-source:view-source:FILE:x",
            "/etc/passwd",
            "//host/share",
            "\\\\host\\share",
            "~/.ssh/id_rsa",
            "C:\\x",
            "c:/x",
        ] {
            assert!(points_at_a_file(file), "{file:?}");
        }
        for other in
            ["note:1", "https://example.org/file:", "a://x", "a:1", "profile:x", "", "view-source:https://x", "notes/1"]
        {
            assert!(!points_at_a_file(other), "{other:?}");
        }
    }

    #[test]
    fn a_name_that_the_caller_gave_is_no_way_to_a_file() {
        let taken = Blocks::beside(0, Names::Caller).take(link("a:/x")).unwrap();
        assert!(matches!(&taken, Content::Link { uri, .. } if uri == "a:/x"), "{taken:?}");
        let taken = Blocks::beside(0, Names::Guest).take(link("a:/x")).unwrap();
        assert!(matches!(taken, Content::Text(_)), "{taken:?}");
    }

    #[test]
    fn what_stands_for_a_block_that_is_left_out_is_no_longer_than_it_counted_for() {
        let mut blocks = Blocks::beside(0, Names::Guest);
        let Ok(Content::Text(text)) = blocks.take(link("file:")) else { panic!("it is left out") };
        assert!(text.len() <= blocks.bytes, "{text:?} has {} bytes, and counts for {}", text.len(), blocks.bytes);
    }

    #[test]
    fn an_output_is_as_long_as_a_result_may_be_and_no_longer() {
        let most = usize::try_from(limits::RESULT).unwrap();
        let text = |bytes| wit::Content::Text("x".repeat(bytes));
        let mut blocks = Blocks::beside(10, Names::Guest);
        assert!(blocks.take(text(most - 11)).is_ok() && blocks.take(text(1)).is_ok());
        let refused = blocks.take(text(1)).unwrap_err();
        assert!(matches!(refused, ErrorKind::ResourceExhausted { limit: Limit::Result, .. }), "{refused:?}");
    }
}
