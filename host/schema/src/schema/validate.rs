//! Validates values against a schema, within a number of steps and the budget of the waiting call.

use std::sync::Arc;

use serde_json::Value;

use super::meter::{self, ErrorCost, Seen, Spent};
use super::{Built, MAX_STEPS, MAX_VALUE_DEPTH, Schema, Violations, explain};
use crate::budget::{Budget, Exhausted};

/// The maximum steps of an immediate validation: some 100 µs, and a millisecond if each step is of
/// the slowest kind.
const STEPS_AT_ONCE: u64 = 20_000;
/// The maximum steps for listing violations. Beyond them only the first error is reported.
const LISTING_STEPS: u64 = 200_000;
/// The steps of formatting one error, which bound the list to four hundred errors.
const ERROR_STEPS: u64 = 500;
/// The memory of an error in the validator, in bytes, without its pointer, its names and quoted
/// parts of the schema.
const ERROR_BYTES: u64 = 512;
/// The maximum length of a pointer that the validator may keep with each error, in bytes.
const MAX_POINTER: usize = 1 << 10;

/// The reason why validation has no result.
enum Void {
    /// The value takes more steps than available.
    TooMuch,
    /// The value does not conform, and locating the violation takes more steps than available.
    Unexplained,
    /// The budget of the call is exhausted.
    Stopped(Exhausted),
}

impl Void {
    fn told(&self) -> Violations {
        let reason = match self {
            Self::TooMuch | Self::Stopped(_) => {
                "is too large to be checked against its schema; want less at once"
            }
            Self::Unexplained => "does not conform to its schema, and is too large to say where",
        };
        Violations::one("", reason)
    }
}

/// One validation with its remaining steps.
struct Look<'s> {
    schema: &'s Schema,
    budget: Option<&'s Arc<dyn Budget>>,
    left: u64,
}

impl Schema {
    /// Validates `value` against the schema, within half a second of CPU time.
    ///
    /// # Errors
    ///
    /// Up to ten violations with their positions, or a single one if the value is too deep or too
    /// large to validate.
    pub fn validate(&self, value: &Value) -> Result<(), Violations> {
        Look { schema: self, budget: None, left: MAX_STEPS }
            .judge(value)
            .unwrap_or_else(|void| Err(void.told()))
    }

    /// Validates as [`validate`](Self::validate), within a budget.
    ///
    /// # Errors
    ///
    /// The reason why the budget ended the validation. The inner result is that of
    /// [`validate`](Self::validate).
    pub fn validate_within(
        &self,
        value: &Value,
        budget: &Arc<dyn Budget>,
    ) -> Result<Result<(), Violations>, Exhausted> {
        match (Look { schema: self, budget: Some(budget), left: MAX_STEPS }).judge(value) {
            Ok(verdict) => Ok(verdict),
            Err(Void::Stopped(why)) => Err(why),
            Err(void) => Ok(Err(void.told())),
        }
    }

    /// Validates as [`validate`](Self::validate) if that takes some 100 µs at most. Returns `None`
    /// for a larger value, or a schema whose validator takes longer to build.
    #[must_use]
    pub fn validate_at_once(&self, value: &Value) -> Option<Result<(), Violations>> {
        self.is_at_hand().then_some(())?;
        Look { schema: self, budget: None, left: STEPS_AT_ONCE }.judge(value).ok()
    }
}

impl Look<'_> {
    fn judge(mut self, value: &Value) -> Result<Result<(), Violations>, Void> {
        let built = match self.schema.built() {
            Ok(built) => built,
            Err(error) => {
                let reason = format!("cannot be checked, since its schema is wrong: {error}");
                return Ok(Err(Violations::one("", reason)));
            }
        };
        match self.run(self.left, None, || built.validator.is_valid(Seen::root(value))) {
            Ok(true) => Ok(Ok(())),
            Ok(false) => self.explain(value, built).map(Err),
            Err(Spent::TooDeep) => {
                let reason =
                    format!("is nested too deeply; want a depth of at most {MAX_VALUE_DEPTH}");
                Ok(Err(Violations::one("", reason)))
            }
            Err(Spent::Stopped(why)) => Err(Void::Stopped(why)),
            Err(Spent::Everything | Spent::Within(_)) => Err(Void::TooMuch),
        }
    }

    /// Lists the violations, or only the first one if listing costs too much.
    fn explain(&mut self, value: &Value, built: &Built) -> Result<Violations, Void> {
        let Built { validator, moved } = built;
        let document = self.schema.as_value();
        let pointer =
            self.run(self.left, None, || longest_pointer(value, 0)).map_err(unexplained)?;
        if pointer > MAX_POINTER {
            return Ok(Void::Unexplained.told());
        }
        let bytes = ERROR_BYTES.saturating_add(pointer as u64).saturating_add(self.schema.0.quoted);
        let error = |steps| Some(ErrorCost { steps, bytes });
        let list = || {
            let errors = validator.iter_errors(Seen::root(value));
            Violations::of(errors.map(|error| explain::violation(&error, value, document, moved)))
        };
        match self.run(self.left.min(LISTING_STEPS), error(ERROR_STEPS), list) {
            Ok(Some(violations)) => return Ok(violations),
            Err(Spent::Stopped(why)) => return Err(Void::Stopped(why)),
            Ok(None) | Err(_) => {}
        }
        let first = || {
            validator
                .validate(Seen::root(value))
                .err()
                .map(|error| explain::violation(&error, value, document, moved))
        };
        // Bounds this run to four hundred errors as well.
        let first = self.run(self.left, error(self.left / 400), first).map_err(unexplained)?;
        first.and_then(|violation| Violations::of([violation])).ok_or(Void::Unexplained)
    }

    /// Runs the validator with up to `steps` of the remaining steps.
    fn run<T>(
        &mut self,
        steps: u64,
        error: Option<ErrorCost>,
        validate: impl FnOnce() -> T,
    ) -> Result<T, Spent> {
        let (result, spent) = meter::run(self.schema.tariff(steps, error), self.budget, validate);
        let unused = if let Spent::Within(left) = spent { left } else { 0 };
        self.left = self.left.saturating_sub(steps.saturating_sub(unused));
        if matches!(spent, Spent::Within(_)) { Ok(result) } else { Err(spent) }
    }
}

fn unexplained(spent: Spent) -> Void {
    if let Spent::Stopped(why) = spent { Void::Stopped(why) } else { Void::Unexplained }
}

/// Returns the approximate length of the longest pointer into a value, or `usize::MAX` if the value
/// is too deep or the account is empty.
fn longest_pointer(value: &Value, depth: usize) -> usize {
    if depth > MAX_VALUE_DEPTH || !meter::step() {
        return usize::MAX;
    }
    let inside = |value, token: usize| longest_pointer(value, depth + 1).saturating_add(token);
    let mut longest = 0;
    match value {
        Value::Array(values) => values.iter().all(|value| longer(&mut longest, inside(value, 8))),
        Value::Object(members) => {
            members.iter().all(|(name, value)| longer(&mut longest, inside(value, name.len() + 1)))
        }
        _ => true,
    };
    longest
}

/// Keeps the greater length. Returns false if the search can stop.
fn longer(longest: &mut usize, length: usize) -> bool {
    *longest = length.max(*longest);
    *longest <= MAX_POINTER
}
