//! The first two checks of a call: the input against the schema, and its paths against the
//! workspace.

use crate::execution::ValidInput;
use crate::execution::account::{Account, CallBudget, Charge};
use crate::execution::offload::{IN_PLACE, ended};
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::call::Nulls;
use crate::tool::formats::drop_absent;
use crate::tool::json::{JsonBounds, JsonError, parse_within};
use crate::tool::{CallInput, Definition, ErrorKind, PermissionReason, SideEffects, Violations};
use crate::workspace::{LastLink, PathRefused, Workspace};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The budget checks that work in place may use: some 5 µs each for a path, 50 µs for other work.
const LOOKS_IN_PLACE: u32 = 64;
/// The bytes of a path per budget check; resolving them takes at most a hundred directory lookups.
const PATH_PER_LOOK: usize = 256;

/// The budget of checking an input.
#[derive(Clone)]
pub(super) struct Purse {
    budget: CallBudget,
    time: Duration,
}

impl Purse {
    /// Creates a budget of this account's memory, until the timeout or the cancellation.
    pub(super) fn new(account: Account, time: Duration, cancel: CancellationToken) -> Self {
        Self { budget: CallBudget::new(account, Instant::now() + time, cancel), time }
    }

    pub(super) fn budget(&self) -> &CallBudget {
        &self.budget
    }

    /// Returns the error of a call whose input could not be checked within the budget.
    pub(super) fn exhausted(&self, why: Exhausted, class: SideEffects) -> ErrorKind {
        ended(why, self.time, class)
    }
}

/// The budget of work on a thread of the runtime. After a fixed number of checks the work ends and
/// is repeated elsewhere.
pub(super) struct Moment(AtomicU32);

impl Moment {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(LOOKS_IN_PLACE))
    }
}

impl Budget for Moment {
    fn reserve(&self, _: u64) -> Result<(), Exhausted> {
        Ok(())
    }

    fn release(&self, _: u64) {}

    fn check(&self) -> Result<(), Exhausted> {
        let left = self.0.load(Ordering::Relaxed).checked_sub(1).ok_or(Exhausted::Deadline)?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }
}

/// The input of a call as received.
pub(super) struct Given {
    pub(super) input: CallInput,
    pub(super) nulls: Nulls,
    pub(super) memory: Counted,
}

/// The accounting of an input that comes as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// The memory is reserved: the input was parsed under the call's account.
    Already,
    /// The memory is not reserved yet.
    NotYet,
}

/// The outcome of a check in place.
pub(super) enum Glance {
    /// The input is valid.
    Checked(ValidInput),
    /// The check may take long.
    Long(Given),
}

/// Checks an input in place if that takes no longer than a few hundred microseconds.
pub(super) fn glance(
    definition: &Definition,
    workspace: &Workspace,
    given: Given,
    account: &Account,
) -> Result<Glance, ErrorKind> {
    let schema = definition.input_schema();
    // Only memory can be exhausted here, so the time limit is irrelevant.
    let exhausted = |why| ended(why, Duration::ZERO, definition.side_effects());
    let read = match given.input {
        CallInput::Value(value) => match short(&value, IN_PLACE) {
            Some(bytes) => reserved(value, bytes, given.memory, account),
            None => return Ok(Glance::Long(Given { input: CallInput::Value(value), ..given })),
        },
        CallInput::Text(text) if text.len() <= IN_PLACE => parsed(&text, account),
        input @ CallInput::Text(_) => return Ok(Glance::Long(Given { input, ..given })),
    };
    let (mut value, bytes) = read.map_err(|unread| unread.or(exhausted))?;
    if given.nulls == Nulls::StandForAbsent {
        drop_absent(definition.parameters(), &mut value);
    }
    let later = |value| {
        let input = CallInput::Value(value);
        let memory = Counted::Already;
        Ok(Glance::Long(Given { input, nulls: Nulls::AsGiven, memory }))
    };
    match schema.validate_at_once(&value) {
        Some(verdict) => verdict.map_err(ErrorKind::Validation)?,
        None => return later(value),
    }
    if schema.has_workspace_paths() {
        match resolve(definition, workspace, &mut value, &Moment::new()) {
            Ok(()) => {}
            Err(Unchecked::Refused(kind)) => return Err(kind),
            // Resolution is idempotent, so paths that are already resolved may be resolved again.
            Err(Unchecked::Exhausted(_)) => return later(value),
        }
    }
    whole_numbers(&mut value);
    Ok(Glance::Checked(ValidInput::new(value).taking(bytes)))
}

/// Returns the memory of a value whose text has at most this length in bytes. Such a value is
/// within the bounds of an input.
fn short(value: &Value, bytes: usize) -> Option<u64> {
    JsonBounds { bytes, ..JsonBounds::CALL_INPUT }.admit(value).ok()
}

/// Reserves the memory of an input that waits to be checked. An input beyond its bounds is refused
/// at once.
pub(super) fn waiting(given: &Given, account: &Account) -> Result<Charge, ErrorKind> {
    let refused = |error| unread(error).or(|why| ended(why, Duration::ZERO, SideEffects::None));
    let bounds = JsonBounds::CALL_INPUT;
    let mut charge = account.empty_charge();
    let bytes = match &given.input {
        CallInput::Value(_) if given.memory == Counted::Already => 0,
        CallInput::Value(value) => bounds.admit(value).map_err(refused)?,
        CallInput::Text(text) if text.len() <= bounds.bytes => text.len() as u64,
        CallInput::Text(text) => {
            return Err(refused(JsonError::TooLong { got: text.len(), max: bounds.bytes }));
        }
    };
    charge.grow(bytes).map_err(|why| refused(JsonError::Exhausted(why)))?;
    Ok(charge)
}

/// Reserves the memory of an input that came as a value. Returns the value and its memory.
fn reserved(
    value: Value,
    bytes: u64,
    memory: Counted,
    budget: &dyn Budget,
) -> Result<(Value, u64), Unchecked> {
    if memory == Counted::NotYet {
        budget.reserve(bytes)?;
    }
    Ok((value, bytes))
}

/// Parses an input that came as text. Returns the value and its memory, which is reserved.
fn parsed(text: &str, budget: &dyn Budget) -> Result<(Value, u64), Unchecked> {
    parse_within(text, JsonBounds::CALL_INPUT, budget).map_err(unread)
}

fn unread(error: JsonError) -> Unchecked {
    match error {
        JsonError::Exhausted(why) => Unchecked::Exhausted(why),
        wrong => Unchecked::Refused(invalid("", wrong.to_string())),
    }
}

/// Checks an input within the budget. Nothing has run at this point, and nothing runs unless all
/// checks pass.
pub(super) fn check(
    definition: &Definition,
    workspace: &Workspace,
    given: Given,
    budget: &Arc<dyn Budget>,
) -> Result<Result<ValidInput, ErrorKind>, Exhausted> {
    Unchecked::or_verdict(checked(definition, workspace, given, budget))
}

/// The reason why an input is not accepted.
pub(super) enum Unchecked {
    Refused(ErrorKind),
    Exhausted(Exhausted),
}

impl Unchecked {
    /// Separates the verdict on an input from an exhausted budget.
    pub(super) fn or_verdict<T>(
        checked: Result<T, Self>,
    ) -> Result<Result<T, ErrorKind>, Exhausted> {
        match checked {
            Ok(checked) => Ok(Ok(checked)),
            Err(Self::Refused(kind)) => Ok(Err(kind)),
            Err(Self::Exhausted(why)) => Err(why),
        }
    }

    fn or(self, exhausted: impl FnOnce(Exhausted) -> ErrorKind) -> ErrorKind {
        match self {
            Self::Refused(kind) => kind,
            Self::Exhausted(why) => exhausted(why),
        }
    }
}

impl From<ErrorKind> for Unchecked {
    fn from(kind: ErrorKind) -> Self {
        Self::Refused(kind)
    }
}

impl From<Exhausted> for Unchecked {
    fn from(why: Exhausted) -> Self {
        Self::Exhausted(why)
    }
}

fn checked(
    definition: &Definition,
    workspace: &Workspace,
    given: Given,
    budget: &Arc<dyn Budget>,
) -> Result<ValidInput, Unchecked> {
    budget.check()?;
    let (mut value, bytes) = match given.input {
        CallInput::Value(value) => {
            let bytes = JsonBounds::CALL_INPUT.admit(&value).map_err(unread)?;
            reserved(value, bytes, given.memory, &**budget)?
        }
        CallInput::Text(text) => parsed(&text, &**budget)?,
    };
    if given.nulls == Nulls::StandForAbsent {
        drop_absent(definition.parameters(), &mut value);
    }
    let schema = definition.input_schema();
    schema.validate_within(&value, budget)?.map_err(ErrorKind::Validation)?;
    if schema.has_workspace_paths() {
        resolve(definition, workspace, &mut value, &**budget)?;
    }
    whole_numbers(&mut value);
    Ok(ValidInput::new(value).taking(bytes))
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
) -> Result<(), Unchecked> {
    let last = if definition.keeps_links() { LastLink::Keep } else { LastLink::Follow };
    definition.input_schema().map_workspace_paths(value, budget, |pointer, path| {
        (0..=path.len() / PATH_PER_LOOK).try_for_each(|_| budget.check())?;
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
            let given = Given { input, nulls: Nulls::AsGiven, memory: Counted::NotYet };
            let glanced = glance(&definition, &workspace, given, &Limits::default().account());
            matches!(glanced.unwrap(), Glance::Checked(_))
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
        let given = |input, memory| Given { input, nulls: Nulls::AsGiven, memory };
        let list = || CallInput::Value(json!(vec!["x"; 1000]));
        for (given, is_counted) in [
            (given(list(), Counted::NotYet), true),
            (given(list(), Counted::Already), false),
            (given(CallInput::Text("[]".to_owned()), Counted::NotYet), true),
        ] {
            let waits = waiting(&given, &account);
            assert!(waits.is_ok() && (account.held() > 0) == is_counted, "{}", account.held());
            drop(waits);
            assert_eq!(account.held(), 0);
        }
        let long =
            given(CallInput::Text(" ".repeat(JsonBounds::CALL_INPUT.bytes + 1)), Counted::NotYet);
        assert!(matches!(waiting(&long, &account), Err(ErrorKind::Validation(_))));
    }
}
