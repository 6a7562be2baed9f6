//! Formats a matching line.

/// Maximum number of shown bytes of a line.
const MAX_BYTES: usize = 500;

/// Number of bytes shown before the match, for context.
const LEAD: usize = 100;

/// Returns a line without its line ending; of a long one, the part around byte `at`.
pub(super) fn shown(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = boundary(line, at.saturating_sub(LEAD).min(line.len().saturating_sub(MAX_BYTES)));
    let end = boundary(line, start.saturating_add(MAX_BYTES).min(line.len()));
    let part = String::from_utf8_lossy(line.get(start..end).unwrap_or(line));
    let (before, after) =
        (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{before}{part}{after} [line of {} bytes]", line.len())
}

/// Returns the start of the UTF-8 character that contains byte `at`.
fn boundary(line: &[u8], at: usize) -> usize {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let back = match line.get(at) {
        Some(_) => {
            line.get(..=at).unwrap_or_default().iter().rev().take(3).take_while(continues).count()
        }
        None => 0,
    };
    at.saturating_sub(back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_shown_without_its_ending() {
        assert_eq!(shown(b"  a\tb \r\n", 0), "  a\tb ");
        assert_eq!(shown(b"a\n", 0), "a");
        assert_eq!(shown(b"a", 0), "a");
        assert_eq!(shown(b"caf\xe9\n", 0), "caf\u{fffd}");
    }

    #[test]
    fn long_line_is_cut_around_the_match() {
        let line = format!("{}MATCH{}\n", "a".repeat(10_000), "b".repeat(10_000));
        let part = format!("…{}MATCH{}… [line of 20005 bytes]", "a".repeat(100), "b".repeat(395));
        assert_eq!(shown(line.as_bytes(), 10_000), part);
        let start = format!("{}… [line of 20005 bytes]", "a".repeat(500));
        assert_eq!(shown(line.as_bytes(), 0), start);
        let end = format!("…{} [line of 20005 bytes]", "b".repeat(500));
        assert_eq!(shown(line.as_bytes(), 20_004), end);
    }

    #[test]
    fn characters_are_not_cut() {
        let line = "äöü🦀".repeat(200);
        for at in 0..line.len() {
            assert!(!shown(line.as_bytes(), at).contains('\u{fffd}'), "cut at {at}");
        }
    }
}
