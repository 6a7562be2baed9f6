//! What the validator alone answers, so that it can be held against the official test suite whole: also for schemas that no tool may have.

use super::meter::{self, Seen, Spent, Tariff};
use super::pattern::Matching;
use super::{Dialect, MAX_STEPS, compile};
use serde_json::Value;

/// What patterns cost whose size is unknown.
const LIGHT: Matching = Matching { byte: 1, text: 0 };

/// Whether the value conforms to the schema, by the validator that every tool's schema is compiled with; nothing is fetched. `None` where it does not compile, or where
/// the work of [`MAX_STEPS`] does not suffice.
///
/// Nothing here asks what the schema costs or refers to. Only for schemas that you wrote yourself; [`Schema`](super::Schema) is for all others.
#[must_use]
pub fn conforms(schema: &Value, value: &Value) -> Option<bool> {
    let validator = compile(schema, Dialect::of(schema.get("$schema")).unwrap_or(Dialect::Draft202012)).ok()?;
    let tariff = Tariff { steps: MAX_STEPS, value_pattern: LIGHT, name_pattern: LIGHT, silent: 0, error: None };
    match meter::run(tariff, None, || validator.is_valid(Seen::root(value))) {
        (valid, Spent::Within(_)) => Some(valid),
        _ => None,
    }
}
