//! JSON pointers: appending tokens, and following the URI fragments that contain pointers.

use std::fmt::Write as _;

use serde_json::Value;

/// Appends one reference token to a JSON pointer.
#[must_use]
pub fn join(pointer: &str, token: &str) -> String {
    let mut joined =
        String::with_capacity(pointer.len().saturating_add(token.len()).saturating_add(1));
    joined.push_str(pointer);
    push_token(&mut joined, token);
    joined
}

/// Appends a token as [`join`], in place.
pub(super) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Returns the value that a `$ref` such as `#/$defs/a` refers to in its own document. Anchors are
/// not resolved.
#[must_use]
pub fn resolve_local_ref<'v>(root: &'v Value, reference: &str) -> Option<&'v Value> {
    root.pointer(&percent_decode(reference.strip_prefix('#')?)?)
}

/// Returns the URI fragment of a JSON pointer, for a `$ref`.
pub(super) fn to_fragment(pointer: &str) -> String {
    let mut fragment = String::with_capacity(pointer.len().saturating_add(1));
    fragment.push('#');
    for byte in pointer.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => fragment.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => fragment.push(char::from(byte)),
            // Writing to a text cannot fail.
            _ => drop(write!(fragment, "%{byte:02X}")),
        }
    }
    fragment
}

/// Decodes percent escapes such as `%41` in a URI fragment. Returns `None` if an escape is
/// malformed or the result is not UTF-8.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let pair = [bytes.next()?, bytes.next()?];
        let digits = std::str::from_utf8(&pair)
            .ok()
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(decoded).ok()
}
