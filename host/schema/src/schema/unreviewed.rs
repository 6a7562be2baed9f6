//! The bare validator, for running the official test suite, which contains schemas that tools may
//! not have.

use super::build::Built;
use super::meter::{self, Seen, Spent, Tariff};
use super::pattern::Matching;
use super::{Dialect, MAX_STEPS};
use serde_json::Value;

/// The price of patterns of unknown size.
const LIGHT: Matching = Matching { byte: 1, text: 0 };

/// Returns whether the value conforms to the schema, by the same validator as for tools, without
/// fetching references. Returns `None` if the schema does not compile or [`MAX_STEPS`] do not
/// suffice.
///
/// Does not check the cost or the references of the schema. Use it only for trusted schemas, and
/// [`Schema`](super::Schema) for all others.
#[must_use]
pub fn conforms(schema: &Value, value: &Value) -> Option<bool> {
    let dialect = Dialect::of(schema.get("$schema")).unwrap_or(Dialect::Draft202012);
    let validator = Built::unreviewed(schema, dialect)?;
    let tariff =
        Tariff { steps: MAX_STEPS, value_pattern: LIGHT, name_pattern: LIGHT, ..Tariff::default() };
    match meter::run(tariff, None, || validator.is_valid(Seen::root(value))) {
        (valid, Spent::Within(_)) => Some(valid),
        _ => None,
    }
}
