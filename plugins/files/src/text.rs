//! The definition of text: valid UTF-8 without a NUL byte.

use crate::workspace::shown;
use palisade_guest::Error;
use std::path::Path;

/// Converts bytes of a file to text; `offset` is their position in the file. The error names the
/// first byte that is not text.
pub(crate) fn from_bytes(bytes: Vec<u8>, offset: u64, path: &Path) -> Result<String, Error> {
    if bytes.contains(&0) {
        let position = bytes.iter().position(|byte| *byte == 0).unwrap_or_default();
        return Err(binary(path, offset, position, "is NUL"));
    }
    String::from_utf8(bytes).map_err(|error| {
        binary(path, offset, error.utf8_error().valid_up_to(), "is not valid UTF-8")
    })
}

/// Returns the length of `bytes` without an incomplete character at the end.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // An error without a length is an incomplete character at the end; `from_bytes` reports all
        // others.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

fn binary(path: &Path, offset: u64, position: usize, what: &str) -> Error {
    let byte = offset.saturating_add(u64::try_from(position).unwrap_or(u64::MAX));
    Error::failed(format!(
        "{} is binary: byte {byte} {what}; only UTF-8 text can be read and patched",
        shown(path)
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn refusal(bytes: &[u8], offset: u64) -> String {
        from_bytes(bytes.to_vec(), offset, Path::new("x.bin")).unwrap_err().to_string()
    }

    #[test]
    fn text_is_returned_unchanged() {
        let text = "\u{feff}grün\r\n\t🦀";
        assert_eq!(from_bytes(text.into(), 0, Path::new("x")).unwrap(), text);
    }

    #[test]
    fn first_invalid_byte_is_named_by_its_file_offset() {
        assert!(refusal(b"ab\0c\0", 0).contains("`x.bin` is binary: byte 2 is NUL;"));
        assert!(refusal(b"ab\0c", 100).contains("byte 102 is NUL"));
        assert!(refusal(b"abc\xff", 5).contains("byte 8 is not valid UTF-8"));
        assert!(
            refusal("abcü".as_bytes().split_last().unwrap().1, 0)
                .contains("byte 3 is not valid UTF-8")
        );
    }

    #[test]
    fn only_a_truncated_character_is_omitted() {
        assert_eq!(whole_characters("aü".as_bytes()), 3);
        assert_eq!(whole_characters(b"a\xf0\x9f\xa6"), 1);
        assert_eq!(whole_characters(b"a\xffb"), 3);
    }
}
