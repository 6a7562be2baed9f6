//! Descriptions as comments.

/// Returns the beginning of a description on one line, which cannot end a comment. It ends with `…`
/// if it is cut.
pub(crate) fn sentence(text: &str, characters: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    let mut is_after_space = true;
    for character in text.chars() {
        let shown = match character {
            '\n' | '\r' | '\t' => ' ',
            shown if shown.is_control() || is_direction(shown) => continue,
            shown => shown,
        };
        if shown == ' ' && is_after_space {
            continue;
        }
        if count == characters {
            line.push('…');
            break;
        }
        is_after_space = shown == ' ';
        line.push(shown);
        count += 1;
    }
    line.trim_end().replace("*/", r"*\/")
}

/// Returns true for characters that change the direction of the text around them.
fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn comment_is_one_bounded_line() {
        assert_eq!(sentence("  a\n\n b\tc ", 100), "a b c");
        assert_eq!(sentence("abcdef", 3), "abc…");
        assert_eq!(sentence("a*/b**/", 100), r"a*\/b**\/");
        assert_eq!(sentence("a\u{1b}[2J\u{2066}b", 100), "a[2Jb");
    }
}
