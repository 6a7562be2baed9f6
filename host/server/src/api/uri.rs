//! Text as a segment of a path.

/// Returns the text with all bytes escaped that have a meaning in a path.
pub(super) fn encoded(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes()
        .map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}
