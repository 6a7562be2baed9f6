//! The first two checks of a call: the input against the schema, and its paths against the
//! workspace.

mod budget;
mod error;
mod raw;

pub(super) use budget::{InputBudget, StepBudget};
pub(super) use error::CheckError;
pub(super) use raw::{InputMemory, RawInput};

use crate::execution::ValidInput;
use crate::execution::account::{Account, Charge};
use crate::execution::offload::{IN_PLACE, InPlaceBudget, TurnBudget, exhaustion_error, is_short};
use crate::execution::owner::input_turns_within;
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::call::Nulls;
use crate::tool::json::{JsonBounds, JsonError, parse_within};
use crate::tool::schema::drop_absent;
use crate::tool::{CallInput, Definition, ErrorKind, PermissionReason, SideEffects, Violations};
use crate::workspace::{LastLink, PATH_PER_STEP, PathRefused, Workspace};
use raw::ReadInput;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of a check in place.
pub(super) enum QuickCheck {
    /// The input is valid.
    Valid(ValidInput),
    /// The check may take long.
    Long(RawInput),
}

/// Checks an input in place if that takes no longer than a few hundred microseconds.
pub(super) fn check_in_place(
    definition: &Definition,
    workspace: &Workspace,
    raw: RawInput,
    account: &Account,
) -> Result<QuickCheck, ErrorKind> {
    let schema = definition.input_schema();
    // Only memory can be exhausted here, so the time limit is irrelevant.
    let exhausted = |why| exhaustion_error(why, Duration::ZERO, definition.side_effects());
    let mut read = match read_in_place(raw, account).map_err(|error| error.or(exhausted))? {
        Read::Done(read) => read,
        Read::Long(raw) => return Ok(QuickCheck::Long(raw)),
    };
    if read.nulls == Nulls::StandForAbsent {
        drop_absent(definition.parameters(), &mut read.value);
    }
    let mut verdict = schema.validate_at_once(&read.value);
    if matches!(verdict, Some(Err(_))) && definition.takes_null_as_absent() {
        drop_absent(definition.parameters(), &mut read.value);
        verdict = schema.validate_at_once(&read.value);
    }
    match verdict {
        Some(verdict) => verdict.map_err(ErrorKind::Validation)?,
        None => return Ok(QuickCheck::Long(read.into_raw())),
    }
    if schema.has_workspace_paths() {
        match resolve(definition, workspace, &mut read.value, &StepBudget::new()) {
            Ok(()) => {}
            Err(CheckError::Refused(kind)) => return Err(kind),
            // Resolution is idempotent, so paths that are already resolved may be resolved again.
            Err(CheckError::Exhausted(_)) => return Ok(QuickCheck::Long(read.into_raw())),
        }
    }
    whole_numbers(&mut read.value);
    Ok(QuickCheck::Valid(read.into_valid()))
}

/// The outcome of reading an input in place.
enum Read {
    Done(ReadInput),
    /// Reading it may take long.
    Long(RawInput),
}

/// Reads an input if that takes no longer than a few hundred microseconds.
fn read_in_place(raw: RawInput, account: &Account) -> Result<Read, CheckError> {
    let read = match &raw.input {
        CallInput::Value(value) => short_value_memory(value, IN_PLACE)
            .map(|bytes| reserve(bytes, raw.memory, account).map(|()| (None, bytes))),
        CallInput::Text(text) if text.len() <= IN_PLACE => {
            let budget = InPlaceBudget::new(account);
            let parsed = parse(text, &budget).map(|(value, bytes)| (Some(value), bytes));
            (!budget.is_exceeded()).then_some(parsed)
        }
        CallInput::Text(_) => None,
    };
    match read {
        Some(read) => read.map(|(parsed, bytes)| Read::Done(raw.read(parsed, bytes))),
        None => Ok(Read::Long(raw)),
    }
}

/// Returns the memory of a value whose text has at most this length in bytes, if the value is short
/// as well. Such a value is within the bounds of an input.
fn short_value_memory(value: &Value, bytes: usize) -> Option<u64> {
    let memory = JsonBounds { bytes, ..JsonBounds::CALL_INPUT }.admit(value).ok()?;
    is_short(0, memory).then_some(memory)
}

/// Reserves the memory of an input that waits to be checked. An input beyond its bounds is refused
/// at once.
pub(super) fn reserve_waiting(raw: &RawInput, account: &Account) -> Result<Charge, ErrorKind> {
    let refused = |error| {
        parse_error(error).or(|why| exhaustion_error(why, Duration::ZERO, SideEffects::None))
    };
    let bounds = JsonBounds::CALL_INPUT;
    let mut charge = account.empty_charge();
    let bytes = match &raw.input {
        CallInput::Value(_) if raw.memory == InputMemory::Reserved => 0,
        CallInput::Value(value) => bounds.admit(value).map_err(refused)?,
        CallInput::Text(text) if text.len() <= bounds.bytes => text.len() as u64,
        CallInput::Text(text) => {
            return Err(refused(JsonError::TooLong { got: text.len(), max: bounds.bytes }));
        }
    };
    charge.grow(bytes).map_err(|why| refused(JsonError::Exhausted(why)))?;
    Ok(charge)
}

/// Reserves the memory of an input that came as a value.
fn reserve(bytes: u64, memory: InputMemory, budget: &dyn Budget) -> Result<(), CheckError> {
    if memory == InputMemory::Unreserved {
        budget.reserve(bytes)?;
    }
    Ok(())
}

/// Parses an input that came as text. Returns the value and its memory, which is reserved.
fn parse(text: &str, budget: &dyn Budget) -> Result<(Value, u64), CheckError> {
    parse_within(text, JsonBounds::CALL_INPUT, budget).map_err(parse_error)
}

fn parse_error(error: JsonError) -> CheckError {
    match error {
        JsonError::Exhausted(why) => CheckError::Exhausted(why),
        wrong => CheckError::Refused(invalid("", wrong.to_string())),
    }
}

/// Checks an input within the budget. Nothing has run at this point, and nothing runs unless all
/// checks pass.
pub(super) fn check(
    definition: &Definition,
    workspace: &Workspace,
    raw: RawInput,
    budget: &Arc<dyn Budget>,
) -> Result<Result<ValidInput, ErrorKind>, Exhausted> {
    CheckError::or_verdict(check_fully(definition, workspace, raw, budget))
}

fn check_fully(
    definition: &Definition,
    workspace: &Workspace,
    raw: RawInput,
    budget: &Arc<dyn Budget>,
) -> Result<ValidInput, CheckError> {
    budget.check()?;
    let (parsed, bytes) = match &raw.input {
        CallInput::Value(value) => {
            let bytes = JsonBounds::CALL_INPUT.admit(value).map_err(parse_error)?;
            reserve(bytes, raw.memory, &**budget)?;
            (None, bytes)
        }
        CallInput::Text(text) => {
            let (value, bytes) = parse(text, &**budget)?;
            (Some(value), bytes)
        }
    };
    let mut read = raw.read(parsed, bytes);
    if read.nulls == Nulls::StandForAbsent {
        drop_absent(definition.parameters(), &mut read.value);
    }
    let schema = definition.input_schema();
    let mut verdict = schema.validate_within(&read.value, budget)?;
    if verdict.is_err() && definition.takes_null_as_absent() {
        drop_absent(definition.parameters(), &mut read.value);
        verdict = schema.validate_within(&read.value, budget)?;
    }
    verdict.map_err(ErrorKind::Validation)?;
    if schema.has_workspace_paths() {
        resolve(definition, workspace, &mut read.value, &**budget)?;
    }
    whole_numbers(&mut read.value);
    Ok(read.into_valid())
}

/// Checks an input within its budget, in the turns that all checks of inputs share.
pub(super) fn check_in_turns(
    definition: &Definition,
    workspace: &Workspace,
    raw: RawInput,
    budget: &InputBudget,
) -> Result<ValidInput, ErrorKind> {
    let turns: Arc<dyn Budget> = Arc::new(TurnBudget::new(
        budget.call_budget().clone(),
        input_turns_within(budget.call_budget()),
        None,
    ));
    let checked = check(definition, workspace, raw, &turns);
    checked.map_err(|why| budget.exhausted(why, definition.side_effects()))?
}

/// Returns true if checking an input of this tool accesses the workspace.
pub(super) fn names_paths(definition: &Definition) -> bool {
    definition.input_schema().has_workspace_paths()
}

fn resolve(
    definition: &Definition,
    workspace: &Workspace,
    value: &mut Value,
    budget: &dyn Budget,
) -> Result<(), CheckError> {
    let last = if definition.keeps_links() { LastLink::Keep } else { LastLink::Follow };
    definition.input_schema().map_workspace_paths(value, budget, |pointer, path| {
        (0..=path.len() / PATH_PER_STEP).try_for_each(|_| budget.check())?;
        let resolved =
            workspace.resolve_within(path, last, budget)?.map_err(|refused| match refused {
                PathRefused::Escapes(_) => {
                    ErrorKind::denied(PermissionReason::Workspace, refused.to_string())
                }
                PathRefused::Unusable { .. } => invalid(pointer, refused.to_string()),
            })?;
        Ok(resolved)
    })
}

fn invalid(pointer: &str, reason: String) -> ErrorKind {
    ErrorKind::Validation(Violations::one(pointer, reason))
}

/// The largest integer up to which a float represents every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Converts floats with an integral value to integers. JSON has a single number type, so `2.0` is
/// the integer 2 to the schema and must be to the tool.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) =
                number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)
            {
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
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its input has failed")]
    use super::*;
    use crate::sandbox::Limits;
    use serde_json::json;

    #[test]
    fn only_few_short_paths_are_resolved_in_place() {
        let world = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(world.path()).unwrap();
        let path = json!({"type": "string", "format": "workspace-path"});
        let schema = json!({"type": "object", "properties": {"p": {"items": path}}});
        let definition = Definition::new("t", "A tool.", SideEffects::Read, schema).unwrap();
        let is_checked = |path: &str, count: usize| {
            let input = CallInput::Value(json!({"p": vec![path; count]}));
            let raw = RawInput::new(input, Nulls::AsGiven, InputMemory::Unreserved);
            let glanced =
                check_in_place(&definition, &workspace, raw, &Limits::default().account());
            matches!(glanced.unwrap(), QuickCheck::Valid(_))
        };
        assert!(is_checked("a", 10) && is_checked("a/b", 1) && is_checked(&"a/".repeat(60), 3));
        assert!(
            !is_checked("a", 4096) && !is_checked("a", 100) && !is_checked(&"a/".repeat(2_000), 4)
        );
    }

    #[test]
    fn resolving_a_resolved_path_changes_nothing() {
        let world = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(world.path()).unwrap();
        for path in [".", "a/../b", "./c//d", &*world.path().join("e").to_string_lossy()] {
            for last in [LastLink::Keep, LastLink::Follow] {
                let once = workspace.resolve(path, last).unwrap();
                assert_eq!(workspace.resolve(&once, last), Ok(once));
            }
        }
    }

    #[test]
    fn whole_number_becomes_an_integer() {
        let mut value = json!({"a": 1000.0, "b": [1e3, 0.5, -2.0, 1e300], "c": {"d": -0.0}});
        whole_numbers(&mut value);
        assert_eq!(
            value.to_string(),
            json!({"a": 1000, "b": [1000, 0.5, -2, 1e300], "c": {"d": 0}}).to_string()
        );
    }

    #[test]
    fn waiting_input_is_charged() {
        let account = Limits::default().account();
        let raw = |input, memory| RawInput::new(input, Nulls::AsGiven, memory);
        let list = || CallInput::Value(json!(vec!["x"; 1000]));
        for (raw, is_counted) in [
            (raw(list(), InputMemory::Unreserved), true),
            (raw(list(), InputMemory::Reserved), false),
            (raw(CallInput::Text("[]".to_owned()), InputMemory::Unreserved), true),
        ] {
            let waits = reserve_waiting(&raw, &account);
            assert!(waits.is_ok() && (account.held() > 0) == is_counted, "{}", account.held());
            drop(waits);
            assert_eq!(account.held(), 0);
        }
        let long = raw(
            CallInput::Text(" ".repeat(JsonBounds::CALL_INPUT.bytes + 1)),
            InputMemory::Unreserved,
        );
        assert!(matches!(reserve_waiting(&long, &account), Err(ErrorKind::Validation(_))));
    }
}
