//! The first two checks: the input against the schema, and its paths against the workspace.

use crate::execution::ValidInput;
use crate::tool::call::Nulls;
use crate::tool::formats::drop_absent;
use crate::tool::json::{JsonBounds, parse_bounded};
use crate::tool::{CallInput, Definition, ErrorKind, PermissionReason, Violations};
use crate::workspace::{LastLink, PathRefused, Workspace};
use serde_json::Value;

/// Checks an input. Nothing has run yet, and nothing will unless all of it holds.
pub(super) fn check(
    definition: &Definition,
    workspace: &Workspace,
    input: CallInput,
    nulls: Nulls,
) -> Result<ValidInput, ErrorKind> {
    let mut value = match input {
        CallInput::Value(value) => {
            JsonBounds::CALL_INPUT.admit(&value).map_err(|error| invalid("", error.to_string()))?;
            value
        }
        CallInput::Text(text) => {
            parse_bounded(&text, JsonBounds::CALL_INPUT).map_err(|error| invalid("", error.to_string()))?
        }
    };
    if nulls == Nulls::StandForAbsent {
        drop_absent(definition.parameters(), &mut value);
    }
    definition.validate_params(&value).map_err(ErrorKind::Validation)?;
    if definition.input_schema().has_workspace_paths() {
        resolve(definition, workspace, &mut value)?;
    }
    whole_numbers(&mut value);
    Ok(ValidInput::new(value))
}

/// Whether checking an input of this tool looks into the workspace.
pub(super) fn names_paths(definition: &Definition) -> bool {
    definition.input_schema().has_workspace_paths()
}

fn resolve(definition: &Definition, workspace: &Workspace, value: &mut Value) -> Result<(), ErrorKind> {
    let last = if definition.keeps_links() { LastLink::Keep } else { LastLink::Follow };
    definition.input_schema().map_workspace_paths(value, |pointer, path| {
        workspace.resolve(path, last).map_err(|refused| match refused {
            PathRefused::Escapes(_) => ErrorKind::denied(PermissionReason::Workspace, refused.to_string()),
            PathRefused::Unusable { .. } => invalid(pointer, refused.to_string()),
        })
    })
}

fn invalid(pointer: &str, reason: String) -> ErrorKind {
    ErrorKind::Validation(Violations::one(pointer, reason))
}

/// The largest whole number that a float holds exactly, and so the largest that is one number in both forms.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// JSON has one kind of number: `2.0` is the integer 2, to the schema, and then to the tool as well.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT) {
                #[allow(clippy::cast_possible_truncation, reason = "it is whole and in range")]
                let whole = float as i64;
                *value = Value::from(whole);
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_whole_number_is_an_integer_in_whichever_form_it_is_written() {
        let mut value = json!({"a": 1000.0, "b": [1e3, 0.5, -2.0, 1e300], "c": {"d": -0.0}});
        whole_numbers(&mut value);
        assert_eq!(value.to_string(), json!({"a": 1000, "b": [1000, 0.5, -2, 1e300], "c": {"d": 0}}).to_string());
    }
}
