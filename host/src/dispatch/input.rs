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
        CallInput::Value(value) => value,
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
    Ok(ValidInput::new(value))
}

fn resolve(definition: &Definition, workspace: &Workspace, value: &mut Value) -> Result<(), ErrorKind> {
    let last = if definition.keeps_links() { LastLink::Keep } else { LastLink::Follow };
    definition.input_schema().map_workspace_paths(value, |pointer, path| {
        workspace.resolve(path, last).map_err(|refused| match refused {
            PathRefused::Escapes(_) => {
                ErrorKind::PermissionDenied { reason: PermissionReason::Workspace, message: refused.to_string() }
            }
            PathRefused::Unusable { .. } => invalid(pointer, refused.to_string()),
        })
    })
}

fn invalid(pointer: &str, reason: String) -> ErrorKind {
    ErrorKind::Validation(Violations::one(pointer, reason))
}
