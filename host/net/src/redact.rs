//! The removal of secrets from text that goes to a guest: their literal, percent-encoded, Base64
//! and JSON-escaped forms. Other transformations are not recognised.

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// The text in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// The forms of a plugin's secrets. Clones share them.
#[derive(Clone)]
pub(crate) struct Redaction {
    forms: Arc<AhoCorasick>,
    /// The length of the longest form, in bytes.
    longest: usize,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

impl Redaction {
    /// Prepares the forms of these secrets.
    ///
    /// # Errors
    ///
    /// If they are too large together.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Self, BuildError> {
        let mut forms = BTreeSet::new();
        for secret in secrets {
            forms.extend(forms_of(secret));
        }
        let longest = forms.iter().map(Vec::len).max().unwrap_or(1);
        let forms = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms)?;
        Ok(Self { forms: Arc::new(forms), longest })
    }

    /// Removes the secrets from a whole text. Returns `None` if it has none.
    pub(crate) fn redact(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.forms.is_match(text).then(|| {
            let mut out = Vec::with_capacity(text.len());
            self.copy(text, text.len(), &mut out);
            out
        })
    }

    /// Starts the redaction of a text that comes in pieces.
    pub(crate) fn stream(&self) -> RedactedStream {
        RedactedStream { redaction: self.clone(), held: BytesMut::new() }
    }

    /// Copies the text without the forms that begin before `end`, and returns the number of bytes
    /// that are dealt with.
    fn copy(&self, text: &[u8], end: usize, out: &mut Vec<u8>) -> usize {
        let mut done = 0;
        for found in self.forms.find_iter(text) {
            if found.start() >= end {
                break;
            }
            out.extend_from_slice(&text[done..found.start()]);
            out.extend_from_slice(REDACTED.as_bytes());
            done = found.end();
        }
        if done < end {
            out.extend_from_slice(&text[done..end]);
            done = end;
        }
        done
    }
}

/// The redaction of a text that comes in pieces. It holds back the end of each piece in which a
/// form may begin.
#[derive(Debug)]
pub(crate) struct RedactedStream {
    redaction: Redaction,
    held: BytesMut,
}

impl RedactedStream {
    /// Takes a piece, and returns the text that is free of secrets.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        // A form that begins before this place is complete.
        let settled = (self.held.len() + 1).saturating_sub(self.redaction.longest);
        let mut out = Vec::new();
        let done = self.redaction.copy(&self.held, settled, &mut out);
        let _ = self.held.split_to(done);
        out.into()
    }

    /// Returns the rest of the text.
    pub(crate) fn finish(&mut self) -> Bytes {
        let mut out = Vec::new();
        let end = self.held.len();
        self.redaction.copy(&self.held, end, &mut out);
        self.held.clear();
        out.into()
    }
}

fn forms_of(secret: &str) -> BTreeSet<Vec<u8>> {
    let mut forms: BTreeSet<Vec<u8>> = BTreeSet::new();
    forms.insert(secret.as_bytes().to_vec());
    for json in json_forms(secret) {
        forms.insert(json.replace('/', "\\/").into_bytes());
        forms.insert(json.into_bytes());
    }
    for case in [Hex::Upper, Hex::Lower] {
        forms.insert(percent(secret, case, |byte| !is_unreserved(byte)));
        forms.insert(percent(secret, case, |_| true));
        // The set that browsers leave alone, and that of forms.
        forms.insert(percent(secret, case, |byte| {
            !is_unreserved(byte) && !b"!'()*".contains(&byte)
        }));
        let form = percent(secret, case, |byte| !is_unreserved(byte) && byte != b' ');
        forms.insert(form.into_iter().map(|byte| if byte == b' ' { b'+' } else { byte }).collect());
    }
    for offset in 0..3 {
        forms.extend(base64_at(secret.as_bytes(), offset));
    }
    forms
}

/// Returns the characters of Base64 that the secret alone determines, where it begins `offset`
/// bytes after a group of three.
fn base64_at(secret: &[u8], offset: usize) -> [Vec<u8>; 2] {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret);
    // Each character holds six bits. Those with bits of other bytes are cut off.
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)]
        .map(|text| text.as_bytes()[first..last].to_vec())
}

/// Returns the text as JSON writes it in a string: as it is, and with all characters beyond ASCII
/// as `\uXXXX`, with the digits in either case.
fn json_forms(secret: &str) -> [String; 3] {
    let quoted = serde_json::to_string(secret).unwrap_or_default();
    let json = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let in_ascii = |case: Hex| {
        let mut out = String::new();
        for character in json.chars() {
            if character.is_ascii() {
                out.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = match case {
                    Hex::Upper => write!(out, "\\u{unit:04X}"),
                    Hex::Lower => write!(out, "\\u{unit:04x}"),
                };
            }
        }
        out
    };
    let [upper, lower] = [Hex::Upper, Hex::Lower].map(in_ascii);
    [json, upper, lower]
}

#[derive(Clone, Copy)]
enum Hex {
    Upper,
    Lower,
}

fn percent(secret: &str, case: Hex, is_encoded: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut out = String::new();
    let mut bytes = Vec::new();
    for byte in secret.bytes() {
        if !is_encoded(byte) {
            bytes.push(byte);
            continue;
        }
        out.clear();
        let _ = match case {
            Hex::Upper => write!(out, "%{byte:02X}"),
            Hex::Lower => write!(out, "%{byte:02x}"),
        };
        bytes.extend_from_slice(out.as_bytes());
    }
    bytes
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    const SECRET: &str = "s3cr/t \"key\"+\u{e4}!";

    /// Returns what a guest gets of a text in pieces of `size` bytes.
    fn streamed(text: &[u8], size: usize) -> String {
        let mut stream = Redaction::new([SECRET]).unwrap().stream();
        let mut out = Vec::new();
        for piece in text.chunks(size) {
            out.extend_from_slice(&stream.push(piece));
        }
        out.extend_from_slice(&stream.finish());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn every_form_is_removed_wherever_the_pieces_end() {
        let forms = [
            SECRET.to_owned(),
            "s3cr/t \\\"key\\\"+\u{e4}!".to_owned(),
            "s3cr\\/t \\\"key\\\"+\\u00e4!".to_owned(),
            "s3cr%2Ft%20%22key%22%2B%C3%A4%21".to_owned(),
            "s3cr%2ft%20%22key%22%2b%c3%a4!".to_owned(),
            "s3cr%2Ft+%22key%22%2B%C3%A4%21".to_owned(),
        ];
        for form in forms {
            let text = format!("before {form} after");
            for size in 1..text.len() {
                let got = streamed(text.as_bytes(), size);
                assert_eq!(got, "before [redacted] after", "{form} in pieces of {size}");
            }
        }
    }

    #[test]
    fn base64_is_removed_at_every_offset() {
        for before in ["", "u", "us", "user:", "user::"] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}{SECRET}{before}"));
            let got = streamed(encoded.as_bytes(), 7);
            assert!(got.contains(REDACTED), "{before}: {got}");
            // At most the characters that mix the secret with its neighbours stay.
            let rest: usize = got.replace(REDACTED, "").len();
            assert!(rest <= (before.len() * 2 * 8).div_ceil(6) + 2, "{before}: {got}");
        }
    }

    #[test]
    fn text_without_a_secret_is_unchanged() {
        let text = "s3cr/t is not the whole one, and neither is key. ".repeat(50);
        for size in [1, 7, 64, 5_000] {
            assert_eq!(streamed(text.as_bytes(), size), text);
        }
        assert_eq!(Redaction::new([SECRET]).unwrap().redact(text.as_bytes()), None);
    }

    #[test]
    fn held_back_text_is_bounded_by_the_longest_form() {
        let redaction = Redaction::new([SECRET]).unwrap();
        let mut stream = redaction.stream();
        for _ in 0..1_000 {
            stream.push(b"text without anything to hide. ");
            assert!(stream.held.len() < redaction.longest);
        }
    }
}
