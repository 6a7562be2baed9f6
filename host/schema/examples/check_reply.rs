//! Checks the arguments that a model wrote against the schema that a stranger wrote: both are
//! bounded, and so is the time of the check.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use palisade_schema::json::{JsonBounds, parse_bounded};
use palisade_schema::schema::Schema;
use std::error::Error;

/// The schema of a tool, from its author.
const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "minimum": 1}},
    "required": ["path"]
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let schema = Schema::parse_input(SCHEMA)?;
    for text in [r#"{"path": "a.txt", "lines": 3}"#, r#"{"lines": 0}"#, r#"{"path": 1, "path": 2}"#]
    {
        println!("{text}: {}", judge(&schema, text));
    }
    Ok(())
}

/// Returns a sentence for the model: the arguments hold, or the reasons why they do not.
fn judge(schema: &Schema, text: &str) -> String {
    let value = match parse_bounded(text, JsonBounds::CALL_INPUT) {
        Ok(value) => value,
        Err(error) => return error.to_string(),
    };
    match schema.validate(&value) {
        Ok(()) => "valid".to_owned(),
        Err(violations) => violations.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_judged() -> Result<(), Box<dyn Error>> {
        main()?;
        let schema = Schema::parse_input(SCHEMA)?;
        assert_eq!(judge(&schema, r#"{"path": "a.txt"}"#), "valid");
        let wrong = judge(&schema, r#"{"lines": 0}"#);
        assert!(wrong.contains("path") && wrong.contains("/lines"), "{wrong}");
        let twice = judge(&schema, r#"{"path": 1, "path": 2}"#);
        assert!(twice.contains("path"), "{twice}");
        Ok(())
    }
}
