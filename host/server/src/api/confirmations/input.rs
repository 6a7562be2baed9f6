//! An input as indented JSON text.

use palisade::tool::text::{cut, visible_json};

/// The longest input that is shown, in bytes.
const SHOWN: usize = 256 << 10;

/// An input for display.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: Option<String>,
    pub(super) truncated: bool,
}

/// Returns an input, which is JSON text, for display.
pub(super) fn shown(input: Option<&str>) -> Shown {
    let Some(input) = input else { return Shown { text: None, truncated: false } };
    let begin = cut(input, SHOWN);
    let text = indented(&visible_json(begin));
    let shown = cut(&text, SHOWN);
    let truncated = begin.len() < input.len() || shown.len() < text.len();
    Shown { text: Some(shown.to_owned()), truncated }
}

/// Returns compact JSON text with line breaks and two spaces for each level. The text is not parsed
/// into a value, so that every number stays as it is written.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut level, mut in_string, mut escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    let break_line = |out: &mut String, level: usize| {
        out.push('\n');
        // Deeper levels are not indented further, so that no input is much longer on display.
        (0..level.min(32)).for_each(|_| out.push_str("  "));
    };
    while let Some(c) = characters.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    level += 1;
                    break_line(&mut out, level);
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                break_line(&mut out, level);
                out.push(c);
            }
            ',' => {
                out.push(c);
                break_line(&mut out, level);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_indented_and_escaped() {
        let input = r#"{"a":[],"b":{"c":"x:{,\"\\","d":[1.10,{}]}}"#;
        let text = "{\n  \"a\": [],\n  \"b\": {\n    \"c\": \"x:{,\\\"\\\\\",\n    \"d\": [\n      1.10,\n      {}\n    ]\n  }\n}";
        assert_eq!(shown(Some(input)).text.as_deref(), Some(text));
        let hostile = shown(Some("\"\u{202e}\""));
        assert_eq!(hostile.text.as_deref(), Some("\"\\u202e\""));
    }

    #[test]
    fn long_input_is_cut() {
        let input = format!("[\"{}\"]", "x".repeat(2 * SHOWN));
        let long = shown(Some(&input));
        assert!(long.truncated && long.text.is_some_and(|text| text.len() <= SHOWN));
        assert_eq!(shown(None), Shown { text: None, truncated: false });
    }
}
