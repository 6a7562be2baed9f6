//! The fuzz target of schemas and inputs: any text as a tool's input schema, and any text as the
//! input of a call.

use palisade::formats::{DefinitionView, Format, Strictness, export};
use palisade::tool::budget::{Exhausted, Unlimited};
use palisade::tool::json::{JsonBounds, parse_bounded};
use palisade::{
    Definition, SideEffects,
    tool::schema::{Schema, Violations, unreviewed},
};

use super::check_message;

/// The separator between the schema and the input.
const DIVISION: char = '\0';

/// Uses the text up to the first NUL as a schema, and the rest as an input.
///
/// # Panics
///
/// If two validations differ, the validation differs from the underlying validator's, or a message
/// is invalid.
pub fn schema(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (schema, input) = text.split_once(DIVISION).unwrap_or((&text, "{}"));
    match Schema::parse_input(schema) {
        Err(refused) => check_message(&refused.to_string()),
        Ok(schema) => {
            check_exports(&schema);
            check_input(&schema, input);
        }
    }
}

/// Validates an input. The guest receives its canonical form, which must therefore be the same
/// value.
fn check_input(schema: &Schema, input: &str) {
    let value = match parse_bounded(input, JsonBounds::CALL_INPUT) {
        Ok(value) => value,
        Err(refused) => return check_message(&refused.to_string()),
    };
    let verdict = schema.validate(&value);
    if let Err(violations) = &verdict {
        check_violations(violations);
    }
    if let Some(expected) = unreviewed::conforms(schema.as_value(), &value) {
        assert_eq!(
            verdict.is_ok(),
            expected,
            "two validators differ on {value} under {}",
            schema.as_value()
        );
    }
    let canonical = value.to_string();
    let again = parse_bounded(&canonical, JsonBounds::CALL_INPUT)
        .expect("the canonical form is within the bounds");
    assert_eq!(again, value, "the canonical form is the same value");
    let mut mapped = value.clone();
    let same = |_: &str, path: &str| Ok::<_, Exhausted>(path.to_owned());
    schema.map_workspace_paths(&mut mapped, &Unlimited, same).expect("nothing fails");
    assert_eq!(mapped, value, "paths that stay the same change nothing");
}

fn check_violations(violations: &Violations) {
    assert!((1..=10).contains(&violations.as_slice().len()));
    check_message(&violations.to_string());
}

/// Exports a tool with this schema in every format.
fn check_exports(schema: &Schema) {
    let made = Definition::with_schema("tool", "A tool.", SideEffects::None, schema.clone());
    let definition = made.expect("the other fields are valid");
    for format in Format::ALL {
        for strictness in [Strictness::AsIs, Strictness::Transform] {
            let _ = export(&DefinitionView::from(&definition), format, strictness);
        }
    }
}
