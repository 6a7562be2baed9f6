//! The summary of an input for the user. Every member that reaches the tool is shown with its
//! value: a tool's schema is its own claim, so a member outside of the schema may be the one that
//! it uses.

use crate::execution::ValidInput;
use crate::tool::text::elided;
use crate::tool::{Definition, SideEffects};
use serde_json::Value;

/// The displayed length of a value, in characters.
const VALUE: usize = 400;
/// The displayed length of a value that may be a program, all of which matters.
const PROGRAM: usize = 8_000;
/// The displayed length of all values together, in characters. Values beyond it are shortened to
/// [`LEAST`].
const TOTAL: usize = 4 * PROGRAM;
/// The displayed length of a value that is always shown, in characters.
const LEAST: usize = 64;
/// The number of displayed members, in and outside of the schema each, and the displayed length of
/// a name.
const MEMBERS: usize = 32;
const NAME: usize = 64;

/// Returns the input as one escaped line. Omissions are marked with their length. Members outside
/// of the tool's schema come last, so that they cannot push the others out of sight.
pub(super) fn summary(definition: &Definition, input: &ValidInput) -> String {
    let length = if definition.side_effects() == SideEffects::Execute { PROGRAM } else { VALUE };
    let Value::Object(members) = input.value() else { return elided(input.text(), length) };
    let known = definition.parameters().get("properties").and_then(Value::as_object);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    let (named, others) = members.iter().partition::<Vec<_>, _>(|(name, _)| is_known(name));
    let mut left = TOTAL;
    let text = format_members(&named, length, &mut left);
    match others.len() {
        0 => text,
        count => format!(
            "{text} and {count} outside of the tool's schema: {}",
            format_members(&others, length, &mut left)
        ),
    }
}

/// Formats members, each up to this length, as long as `left` lasts.
fn format_members(members: &[(&String, &Value)], length: usize, left: &mut usize) -> String {
    let mut texts: Vec<String> = Vec::new();
    for (name, value) in members.iter().take(MEMBERS) {
        let key = elided(&Value::from(name.as_str()).to_string(), NAME);
        let value = elided(&value.to_string(), length.min((*left).max(LEAST)));
        *left = left.saturating_sub(value.len());
        texts.push(format!("{key}:{value}"));
    }
    if members.len() > MEMBERS {
        texts.push(format!("… {} more …", members.len() - MEMBERS));
    }
    format!("{{{}}}", texts.join(","))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test whose definition is invalid has failed")]
    use super::*;
    use serde_json::{Map, json};

    fn summary_of(class: SideEffects, input: Value) -> String {
        let schema =
            json!({"type": "object", "properties": {"command": {"type": "string"}, "zone": {}}});
        summary(&Definition::new("t", "A tool.", class, schema).unwrap(), &ValidInput::new(input))
    }

    #[test]
    fn member_in_the_schema_is_not_hidden_by_others() {
        let input = json!({"Command": "ls", "Note": "y".repeat(5000), "command": "echo harm", "zz": "y".repeat(5000)});
        let text = summary_of(SideEffects::Execute, input);
        assert!(text.starts_with(
            r#"{"command":"echo harm"} and 3 outside of the tool's schema: {"Command":"ls","#
        ));
    }

    #[test]
    fn member_outside_of_the_schema_is_shown() {
        let text = summary_of(
            SideEffects::Execute,
            json!({"zone": "just listing", "run": format!("true{}; harm", " ".repeat(900))}),
        );
        assert!(
            text.starts_with(
                r#"{"zone":"just listing"} and 1 outside of the tool's schema: {"run":"true "#
            ),
            "{text}"
        );
        assert!(text.ends_with("; harm\"}"), "{text}");
    }

    #[test]
    fn name_is_escaped_once() {
        let text = summary_of(SideEffects::Write, json!({"a\u{202e}\"\nb": "c\u{202e}"}));
        assert!(text.ends_with(r#"{"a\u{202e}\"\nb":"c\u{202e}"}"#), "{text}");
        let long = "n".repeat(5000);
        assert!(summary_of(SideEffects::Write, json!({long: 1})).contains(r#"n":1}"#));
    }

    #[test]
    fn long_values_are_cut_with_their_length() {
        let many: Map<String, Value> =
            (0..64).map(|n| (format!("m{n}"), json!("y".repeat(PROGRAM)))).collect();
        let text = summary_of(SideEffects::Execute, Value::Object(many));
        assert!(
            text.len() < TOTAL + 64 * 4 * LEAST && text.contains("characters"),
            "{}",
            text.len()
        );
    }

    #[test]
    fn command_is_shown_whole_for_class_execute() {
        let command = format!("ls{}\necho harm # {}", " ".repeat(3000), "x".repeat(3000));
        assert!(
            summary_of(SideEffects::Execute, json!({"command": command})).contains("echo harm")
        );
        assert!(!summary_of(SideEffects::Write, json!({"command": command})).contains("echo harm"));
        assert!(summary_of(SideEffects::Write, json!({"command": command})).contains("characters"));
    }

    #[test]
    fn input_with_many_members_is_summarised() {
        let many: Map<String, Value> = (0..5000).map(|n| (format!("m{n}"), json!(n))).collect();
        let text = summary_of(SideEffects::Write, Value::Object(many));
        assert!(text.len() < 4000 && text.contains("5000 outside of the tool's schema"), "{text}");
    }
}
