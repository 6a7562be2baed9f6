//! Finds the closest place in a text to one that does not occur in it.

/// Maximum number of compared lines: the message names the first different line only.
const MAX_LINES: usize = 200;

/// Maximum length of a text that is quoted completely, in bytes.
const MAX_QUOTED: usize = 1_000;

const ADVICE: &str =
    "read the file again and copy the text exactly, with its indentation and line breaks";

/// Describes the closest place in `text` to `old`, which does not occur in it, with advice.
pub(super) fn hint(text: &str, old: &str) -> String {
    let wanted: Vec<_> = old.trim_matches('\n').lines().take(MAX_LINES).map(normal).collect();
    let lines: Vec<_> = text.lines().collect();
    match closest(&lines, &wanted) {
        Some(near) if near.equal >= wanted.len() => same_but_for_blanks(text, &lines, near, old),
        Some(near) => differs_later(near),
        None => ADVICE.to_owned(),
    }
}

/// A place in the text, and the number of lines from there that match except for white space.
#[derive(Clone, Copy)]
struct Near {
    line: usize,
    equal: usize,
}

fn closest(lines: &[&str], wanted: &[String]) -> Option<Near> {
    // A blank text would match everywhere.
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let normal_lines: Vec<_> = lines.iter().map(|line| normal(line)).collect();
    let nears = (0..lines.len()).map(|line| Near {
        line,
        equal: equal(normal_lines.get(line..).unwrap_or_default(), wanted),
    });
    // `max_by_key` returns the last maximum, and the first place is the most useful one.
    nears.rev().filter(|near| near.equal > 0).max_by_key(|near| near.equal)
}

/// Returns how many of the wanted lines match at the start of `lines`. The wanted text may begin
/// and end within a line.
fn equal(lines: &[String], wanted: &[String]) -> usize {
    let last = wanted.len().saturating_sub(1);
    let agree = |(number, (line, want)): (usize, (&String, &String))| match number {
        0 if last == 0 => !want.is_empty() && line.contains(want.as_str()),
        0 => line.ends_with(want.as_str()),
        _ if number == last => line.starts_with(want.as_str()),
        _ => line == want,
    };
    lines.iter().zip(wanted).enumerate().take_while(|pair| agree(*pair)).count()
}

fn same_but_for_blanks(text: &str, lines: &[&str], near: Near, old: &str) -> String {
    let last = near.line.saturating_add(near.equal).saturating_sub(1);
    let place = if near.equal == 1 {
        format!("line {} differs", near.line)
    } else {
        format!("lines {} to {last} differ", near.line)
    };
    let endings = if text.contains("\r\n") && !old.contains("\r\n") {
        "; the file ends its lines with CRLF"
    } else {
        ""
    };
    let quoted = lines.get(near.line..=last).map(|lines| lines.join("\n")).unwrap_or_default();
    if quoted.len() <= MAX_QUOTED {
        format!(
            "{place} from it only in white space (counted from 0{endings}), which must match, too:\n{quoted}"
        )
    } else {
        format!(
            "{place} from it only in white space (counted from 0{endings}), which must match, too; {ADVICE}"
        )
    }
}

fn differs_later(near: Near) -> String {
    let Near { line, equal } = near;
    let differs = line.saturating_add(equal);
    let begins = if equal == 1 {
        "its first line is".to_owned()
    } else {
        format!("its first {equal} lines are")
    };
    format!(
        "{begins} at line {line}, and line {differs} is where it differs (counted from 0); {ADVICE}"
    )
}

fn normal(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn main() {\n    let x  = 1;\n    let y = 2;\n}\n";

    #[test]
    fn whitespace_difference_quotes_the_file() {
        let wanted = "line 1 differs from it only in white space (counted from 0), which must match, too:\n    let x  = 1;";
        assert_eq!(hint(TEXT, "let x = 1;"), wanted);
        let wanted = "lines 1 to 2 differ from it only in white space (counted from 0), which must match, too:\n    \
                      let x  = 1;\n    let y = 2;";
        assert_eq!(hint(TEXT, "\tlet x = 1;\n\tlet y = 2;\n"), wanted);
    }

    #[test]
    fn match_may_start_and_end_within_a_line() {
        assert!(hint(TEXT, "x = 1;\n  let y").starts_with("lines 1 to 2 differ"));
    }

    #[test]
    fn line_ending_difference_is_named() {
        assert!(hint("a b\r\nc\r\n", "a b\nc").contains("the file ends its lines with CRLF"));
        assert!(!hint("a  b\nc\n", "a b\nc").contains("CRLF"));
    }

    #[test]
    fn partial_match_is_followed_to_the_difference() {
        let said = hint(TEXT, "fn main() {\n    let x  = 1;\n    let z = 3;\n}");
        assert!(
            said.starts_with(
                "its first 2 lines are at line 0, and line 2 is where it differs (counted from 0);"
            ),
            "{said}"
        );
    }

    #[test]
    fn first_of_several_near_matches_is_named() {
        assert!(hint("a  b\nx\na  b\n", "a b").starts_with("line 0 differs"));
    }

    #[test]
    fn no_near_match_gives_only_advice() {
        assert_eq!(hint(TEXT, "struct"), ADVICE);
        assert_eq!(hint(TEXT, " \n "), ADVICE);
        assert_eq!(hint("", "a"), ADVICE);
    }

    #[test]
    fn long_texts_are_not_quoted() {
        let long = "word ".repeat(500);
        assert!(hint(&long.replace(' ', "  "), long.trim_end()).ends_with(ADVICE));
    }
}
