//! The ids that callers choose, and new ones.

use super::problem::ApiError;

/// The longest id of a session, in characters.
const SESSION: usize = 128;
/// The longest id of a call or a turn.
const OTHER: usize = 256;
/// The ids of sessions that the MCP server opens begin with it.
const RESERVED: &str = "mcp-";

/// Checks the id of a session.
pub(super) fn check_id(id: &str) -> Result<&str, ApiError> {
    let is_fit = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    let first = id.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    if first && id.len() <= SESSION && id.bytes().all(is_fit) && !id.starts_with(RESERVED) {
        return Ok(id);
    }
    Err(ApiError::Body(
        "`id` has to be 1 to 128 letters, digits and `.`, `_`, `:`, `-`; the first has to be a \
         letter or digit, and `mcp-` is reserved"
            .to_owned(),
    ))
}

/// Checks the id of a call or a turn.
pub(super) fn check_text_id<'a>(member: &str, id: &'a str) -> Result<&'a str, ApiError> {
    // A segment of dots is taken out of an address before it is sent.
    let is_fit = (1..=OTHER).contains(&id.len()) && !matches!(id, "-" | "." | "..");
    if is_fit && id.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(id);
    }
    Err(ApiError::Body(format!(
        "`{member}` has to be 1 to {OTHER} visible ASCII characters or spaces, and not `-`, `.` or `..`"
    )))
}

/// Returns a new id of 128 random bits.
pub(super) fn fresh_id(prefix: &str) -> Result<String, ApiError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| ApiError::Internal)?;
    Ok(format!("{prefix}{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_id_can_be_a_segment_of_a_path() {
        for id in ["call-1", "...", ".a", "a/../b", " ", "%2e"] {
            assert!(check_text_id("id", id).is_ok(), "{id:?}");
        }
        for id in ["", "-", ".", "..", "\u{e4}", "a\n", &"a".repeat(OTHER + 1)] {
            assert!(check_text_id("id", id).is_err(), "{id:?}");
        }
    }
}
