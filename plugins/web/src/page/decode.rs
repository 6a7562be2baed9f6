//! The decoding of a body to text, by the encoding that it declares.

use encoding_rs::{Encoding, UTF_8};

/// The bytes at the start of a page in which a declaration is looked for, as browsers do.
const DECLARED_WITHIN: usize = 1024;

/// The bytes at the start of a body that show whether it is text.
const SHOWS_BINARY: usize = 8192;

/// The media type of a body, with the encoding that its header names.
pub(super) struct Media {
    /// The type in lower case, without parameters. Empty if there is no header.
    essence: String,
    encoding: Option<&'static Encoding>,
}

impl Media {
    /// Reads the header `content-type`.
    pub(super) fn of(header: Option<&str>) -> Self {
        let mut parts = header.unwrap_or_default().split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
        });
        let encoding = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
        Self { essence, encoding }
    }

    /// Returns the type, if it has the form of one.
    pub(super) fn shown(&self) -> Option<&str> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-.".contains(&byte);
        let essence = Some(self.essence.as_str()).filter(|it| !it.is_empty() && it.len() <= 80);
        essence.filter(|essence| essence.bytes().all(is_part))
    }

    pub(super) fn is_html(&self) -> bool {
        self.essence == "text/html" || self.essence == "application/xhtml+xml"
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.essence.is_empty()
    }

    fn is_binary(&self) -> bool {
        let kind = self.essence.split('/').next().unwrap_or_default();
        let is_media = ["image", "audio", "video", "font"].contains(&kind);
        is_media && self.essence != "image/svg+xml"
            || ["application/pdf", "application/zip", "application/wasm"]
                .contains(&self.essence.as_str())
    }
}

/// Returns the text of a body. The error names the kind of a body that is no text.
pub(super) fn decoded(body: &[u8], media: &Media) -> Result<String, String> {
    if media.is_binary() {
        return Err(media.essence.clone());
    }
    let encoding = media.encoding.or_else(|| declared(body)).unwrap_or(UTF_8);
    let (text, _, _) = encoding.decode(body);
    // Each encoding of a page maps a zero byte of text to U+0000, which no text has.
    let mut start = text.chars().take(SHOWS_BINARY);
    match start.any(|letter| letter == '\0') {
        true => Err(match media.essence.as_str() {
            "" => "binary content".to_owned(),
            essence => format!("binary content, declared as {essence}"),
        }),
        false => Ok(text.into_owned()),
    }
}

/// Returns the encoding that the beginning of a page declares, in the forms `charset=…` and
/// `encoding="…"`.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let start = body.get(..DECLARED_WITHIN).unwrap_or(body);
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    ["charset=", "encoding="].into_iter().find_map(|key| {
        let (_, value) = start.split_once(key)?;
        let value = value.trim_start_matches(['"', '\'', ' ']);
        let end = value.find(['"', '\'', ' ', '>', ';', '?', '/'])?;
        Encoding::for_label(value.get(..end)?.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn text(header: &str, body: &[u8]) -> Result<String, String> {
        decoded(body, &Media::of(Some(header)))
    }

    #[test]
    fn text_is_decoded_by_its_declaration() {
        let page = b"<meta charset='windows-1251'>\xcf\xf0\xe8\xe2\xe5\xf2";
        for (header, body, expected) in [
            ("text/plain; charset=ISO-8859-1", &b"gr\xf6\xdfe"[..], "gr\u{f6}\u{df}e"),
            ("text/plain; a=b; Charset=\"utf-8\"", "gr\u{f6}\u{df}e".as_bytes(), "gr\u{f6}\u{df}e"),
            ("text/html", page, "\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}"),
            ("text/plain; charset=nonsense", b"plain", "plain"),
            ("", b"\xef\xbb\xbfwith a mark", "with a mark"),
            ("text/plain", b"\xff broken", "\u{fffd} broken"),
        ] {
            let decoded = text(header, body).unwrap_or_default();
            assert!(decoded.ends_with(expected), "{header}: {decoded}");
        }
    }

    #[test]
    fn binary_content_is_refused_with_its_type() {
        for (header, body) in
            [("image/png", &b"\x89PNG"[..]), ("application/pdf", b"%PDF"), ("text/html", b"a\0b")]
        {
            let kind = text(header, body).unwrap_err();
            assert!(kind.contains(header), "{kind}");
        }
        assert!(text("image/svg+xml", b"<svg/>").is_ok());
    }
}
