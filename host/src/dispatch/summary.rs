//! The summary of an input for the user. The members that the tool knows come first, each with its
//! own length limit, so that no value can push another out of sight.

use crate::execution::ValidInput;
use crate::tool::text::elided;
use crate::tool::{Definition, SideEffects};
use serde_json::Value;

/// The displayed length of a value, in characters.
const VALUE: usize = 400;
/// The displayed length of a value that may be a program, all of which matters.
const PROGRAM: usize = 8_000;
/// The number of displayed members, and the displayed length of a name.
const MEMBERS: usize = 32;
const NAME: usize = 64;

/// Returns the input as one escaped line. Omissions are marked with their length. Members unknown
/// to the tool come last, by name only.
pub(super) fn summary(definition: &Definition, input: &ValidInput) -> String {
    let room = if definition.side_effects() == SideEffects::Execute { PROGRAM } else { VALUE };
    let Value::Object(members) = input.value() else { return elided(input.text(), room) };
    let known = definition.parameters().get("properties").and_then(Value::as_object);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    let (used, others): (Vec<_>, Vec<_>) = members.iter().partition(|(name, _)| is_known(name));
    let text = format!("{{{}}}", shown(&used, room));
    match others.len() {
        0 => text,
        count => format!("{text} and {count} that the tool does not know: {}", names(&others)),
    }
}

fn shown(members: &[(&String, &Value)], room: usize) -> String {
    let mut texts: Vec<String> = members.iter().take(MEMBERS).map(|(name, value)| member(name, value, room)).collect();
    if members.len() > MEMBERS {
        texts.push(format!("… {} more …", members.len() - MEMBERS));
    }
    texts.join(",")
}

fn member(name: &str, value: &Value, room: usize) -> String {
    let key = Value::from(elided(name, NAME)).to_string();
    format!("{key}:{}", elided(&value.to_string(), room))
}

fn names(members: &[(&String, &Value)]) -> String {
    let names = members.iter().take(MEMBERS).map(|(name, _)| Value::from(elided(name, NAME)).to_string());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test whose definition is invalid has failed")]
    use super::*;
    use serde_json::{Map, json};

    fn of(class: SideEffects, input: Value) -> String {
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}, "zone": {}}});
        summary(&Definition::new("t", "A tool.", class, schema).unwrap(), &ValidInput::new(input))
    }

    #[test]
    fn what_the_tool_uses_cannot_be_hidden_behind_what_it_does_not() {
        let input = json!({"Command": "ls", "Note": "y".repeat(5000), "command": "echo harm", "zz": "y".repeat(5000)});
        let text = of(SideEffects::Execute, input);
        assert_eq!(text, r#"{"command":"echo harm"} and 3 that the tool does not know: "Command", "Note", "zz""#);
    }

    #[test]
    fn a_program_is_shown_whole_where_other_values_are_shortened() {
        let command = format!("ls{}\necho harm # {}", " ".repeat(3000), "x".repeat(3000));
        assert!(of(SideEffects::Execute, json!({"command": command})).contains("echo harm"));
        assert!(!of(SideEffects::Write, json!({"command": command})).contains("echo harm"));
        assert!(of(SideEffects::Write, json!({"command": command})).contains("characters"));
    }

    #[test]
    fn an_input_with_very_many_members_stays_short_and_says_so() {
        let many: Map<String, Value> = (0..5000).map(|n| (format!("m{n}"), json!(n))).collect();
        let text = of(SideEffects::Write, Value::Object(many));
        assert!(text.len() < 4000 && text.contains("5000 that the tool does not know"), "{text}");
    }
}
