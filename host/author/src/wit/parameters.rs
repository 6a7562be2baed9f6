//! The number of parameters of a function, counted before the text is parsed: the parser compares
//! each parameter with all before it.

/// The most parameters of a function, which is the limit of wasmparser
/// (`MAX_WASM_FUNCTION_PARAMS`).
pub(super) const MOST: usize = 1_000;

/// Returns true if a list between parentheses has more than [`MOST`] commas outside of comments.
pub(super) fn are_too_many(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut commas) = (0, 0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count();
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => at += length_of_comment(&bytes[at..]) - 1,
            b'(' => (depth, commas) = (depth + 1, if depth == 0 { 0 } else { commas }),
            b')' => depth = depth.saturating_sub(1),
            b',' if depth > 0 => commas += 1,
            _ => {}
        }
        if commas > MOST {
            return true;
        }
        at += 1;
    }
    false
}

/// Returns the length of the block comment at the beginning, whose comments may be nested.
fn length_of_comment(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (at, depth) = (at + 2, depth + 1),
            Some(b"*/") => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_and_comments_are_not() {
        let function = |count: usize| format!("f: func({});", "a: u8, ".repeat(count));
        assert!(!are_too_many(&function(MOST)));
        assert!(are_too_many(&function(MOST + 1)));
        assert!(!are_too_many(&function(MOST).repeat(3)), "each function counts alone");
        let commas = ",".repeat(MOST + 1);
        for other in [
            format!("enum e {{ {commas} }}"),
            format!("// ({commas}"),
            format!("f: func(/* /* ( */ {commas} */ a: u8);"),
            format!("/* ({commas}"),
        ] {
            assert!(!are_too_many(&other), "{}", &other[..12]);
        }
        assert!(are_too_many(&format!("// a comment\nf: func(/* another */ {commas});")));
    }
}
