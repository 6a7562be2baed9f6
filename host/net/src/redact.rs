//! The removal of secrets from text that goes to a guest: as they are, percent-encoded, escaped for
//! JSON and HTML, and in Base64. Other transformations are not recognised.

mod spelling;

use crate::limits;
use bytes::{Bytes, BytesMut};
use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use spelling::Spelling;
use std::sync::Arc;

/// The text in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// The most memory of a compiled set of spellings, in bytes.
const COMPILED: usize = 64 << 20;

/// The spellings of a plugin's secrets. Clones share them.
#[derive(Clone)]
pub(crate) struct Redaction {
    spellings: Arc<Regex>,
    /// The same in any case of letters, for the names of headers, which have lost theirs.
    in_any_case: Arc<Regex>,
    /// The length of the longest spelling, in bytes.
    longest: usize,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

/// The secrets are too large together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Redaction {
    /// Prepares the spellings of these secrets.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], if they have more than 16 KiB together.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Self, TooLarge> {
        let secrets: Vec<&str> = secrets.into_iter().collect();
        if secrets.iter().map(|secret| secret.len()).sum::<usize>() > limits::SECRETS {
            return Err(TooLarge);
        }
        let mut spellings: Vec<Spelling> =
            secrets.iter().copied().flat_map(Spelling::all).collect();
        // Where one secret begins another, the longer one is found.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.longest));
        let longest = spellings.iter().map(|spelling| spelling.longest).max().unwrap_or(1);
        let compile = |case| compile(&spellings, case).map(Arc::new);
        Ok(Self { spellings: compile(Case::Kept)?, in_any_case: compile(Case::Lost)?, longest })
    }

    /// Removes the secrets from a whole text. Returns `None` if it has none.
    pub(crate) fn redact(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.spellings.is_match(text).then(|| {
            let mut out = Vec::with_capacity(text.len());
            self.copy(text, text.len(), &mut out);
            out
        })
    }

    /// Returns true if the name of a header, which is in lower case, has a secret.
    pub(crate) fn is_in_name(&self, name: &str) -> bool {
        self.in_any_case.is_match(name.as_bytes())
    }

    /// Starts the redaction of a text that comes in pieces.
    pub(crate) fn stream(&self) -> RedactedStream {
        RedactedStream { redaction: self.clone(), held: BytesMut::new() }
    }

    /// Copies the text without the spellings that begin before `end`, and returns the number of
    /// bytes that are dealt with.
    fn copy(&self, text: &[u8], end: usize, out: &mut Vec<u8>) -> usize {
        let mut done = 0;
        for found in self.spellings.find_iter(text) {
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

/// Whether a text has kept the case of its letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Kept,
    Lost,
}

fn compile(spellings: &[Spelling], case: Case) -> Result<Regex, TooLarge> {
    let patterns: Vec<&str> = spellings.iter().map(|spelling| spelling.pattern.as_str()).collect();
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    let syntax = syntax.case_insensitive(case == Case::Lost);
    let config = Config::new().utf8_empty(false).nfa_size_limit(Some(COMPILED));
    Regex::builder().syntax(syntax).configure(config).build_many(&patterns).map_err(|_| TooLarge)
}

/// The redaction of a text that comes in pieces. It holds back the end of the text in which a
/// spelling may begin, and at most as much again.
#[derive(Debug)]
pub(crate) struct RedactedStream {
    redaction: Redaction,
    held: BytesMut,
}

impl RedactedStream {
    /// Takes a piece, and returns the text that is free of secrets.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        // A spelling that begins before this place is complete.
        let settled = (self.held.len() + 1).saturating_sub(self.redaction.longest);
        // Each search settles as much as it reads again, however small the pieces are.
        if settled < self.redaction.longest {
            return Bytes::new();
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
    use std::time::{Duration, Instant};

    const SECRET: &str = "s3cr/t \"key\"+\u{e4}!";

    fn of_the_secret() -> Redaction {
        Redaction::new([SECRET]).unwrap()
    }

    /// Returns what a guest gets of a text in pieces of `size` bytes.
    fn streamed(redaction: &Redaction, text: &[u8], size: usize) -> String {
        let mut stream = redaction.stream();
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
            // As Python's `quote` leaves the slash, .NET escapes the plus, Go an ampersand, and a
            // page in HTML the quotes; a text in JSON inside of JSON; an address inside another.
            "s3cr/t%20%22key%22%2B%C3%A4%21".to_owned(),
            "s3cr/t \\u0022key\\u0022\\u002B\\u00E4!".to_owned(),
            "s3cr&#x2F;t &quot;key&#34;&#43;\u{e4}!".to_owned(),
            r#"s3cr/t \\\"key\\\"+\\u00e4!"#.to_owned(),
            "s3cr%252Ft%2520%2522key%2522%252B%25C3%25A4%2521".to_owned(),
            "s3cr&sol;t &quot;key&#34&plus;\u{e4}&excl;".to_owned(),
        ];
        let redaction = of_the_secret();
        for form in forms {
            let text = format!("before {form} after");
            for size in 1..text.len() {
                let got = streamed(&redaction, text.as_bytes(), size);
                assert_eq!(got, "before [redacted] after", "{form} in pieces of {size}");
            }
        }
    }

    #[test]
    fn base64_is_removed_at_every_offset() {
        let redaction = of_the_secret();
        for before in ["", "u", "us", "user:", "user::"] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}{SECRET}{before}"));
            let got = streamed(&redaction, encoded.as_bytes(), 7);
            assert!(got.contains(REDACTED), "{before}: {got}");
            // At most the characters that mix the secret with its neighbours stay.
            let rest: usize = got.replace(REDACTED, "").len();
            assert!(rest <= (before.len() * 2 * 8).div_ceil(6) + 2, "{before}: {got}");
        }
    }

    #[test]
    fn base64_is_removed_over_the_ends_of_lines() {
        let redaction = of_the_secret();
        let text = format!("{}{SECRET}", "before ".repeat(9));
        for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            for end in ["\n", "\r\n", "\\n", "\\r\\n", "\n  ", "%0A", "%0d%0a", "&#10;"] {
                for width in [1, 60, 64, 76] {
                    let lines: Vec<&[u8]> = encoded.as_bytes().chunks(width).collect();
                    let lines = lines.join(end.as_bytes());
                    let got = streamed(&redaction, &lines, 11);
                    assert!(got.contains(REDACTED), "{width} {end:?}: {got}");
                }
            }
        }
    }

    #[test]
    fn longer_secret_is_removed_whole() {
        let redaction = Redaction::new(["beginning", "beginning and end"]).unwrap();
        let got = redaction.redact(b"a beginning and end.").unwrap();
        assert_eq!(got, b"a [redacted].");
    }

    #[test]
    fn name_without_its_case_is_recognised() {
        let redaction = Redaction::new(["AbCdEf-GhI"]).unwrap();
        assert!(redaction.is_in_name("x-abcdef-ghi") && !redaction.is_in_name("x-abcdef"));
        let redaction = Redaction::new(["AB.cd_EF/gh"]).unwrap();
        assert!(redaction.is_in_name("x-ab.cd_ef%2fgh"));
    }

    #[test]
    fn largest_secrets_are_accepted_and_what_is_too_large_is_refused() {
        let secret: String = (0..4096).map(|at| char::from(b'!' + (at % 90) as u8)).collect();
        let redaction = Redaction::new([secret.as_str()]).unwrap();
        assert_eq!(redaction.redact(secret.as_bytes()).unwrap(), REDACTED.as_bytes());
        assert!(Redaction::new(vec![secret.as_str(); 5]).is_err());
    }

    #[test]
    fn text_without_a_secret_is_unchanged() {
        let text = "s3cr/t is not the whole one, and neither is key. ".repeat(50);
        let redaction = of_the_secret();
        for size in [1, 7, 64, 5_000] {
            assert_eq!(streamed(&redaction, text.as_bytes(), size), text);
        }
        assert_eq!(redaction.redact(text.as_bytes()), None);
    }

    #[test]
    fn small_pieces_take_about_as_long_as_one() {
        let redaction = Redaction::new([&*"s3cret".repeat(160)]).unwrap();
        let text = "&#0".repeat(30_000);
        let start = Instant::now();
        assert_eq!(streamed(&redaction, text.as_bytes(), text.len()), text);
        let at_once = start.elapsed();
        let start = Instant::now();
        assert_eq!(streamed(&redaction, text.as_bytes(), 1), text);
        let in_pieces = start.elapsed();
        assert!(in_pieces < at_once * 20 + Duration::from_millis(500), "{at_once:?} {in_pieces:?}");
    }

    #[test]
    fn held_back_text_is_bounded_by_twice_the_longest_spelling() {
        let redaction = of_the_secret();
        let mut stream = redaction.stream();
        for _ in 0..1_000 {
            stream.push(b"text without anything to hide. ");
            assert!(stream.held.len() < 2 * redaction.longest);
        }
    }
}
