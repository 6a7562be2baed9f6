//! The text of the input of a call that ended before its tool ran, for the record of the call.

use super::input::InputBudget;
use crate::execution::Unused;
use crate::execution::account::Account;
use crate::execution::deferred_drop::drop_later;
use crate::execution::offload::{IN_PLACE, is_short, offload};
use crate::execution::owner::{input_turns_of, input_turns_within};
use crate::tool::CallInput;
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::json::JsonBounds;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time for writing a long input. Its call has ended, and only its record waits.
const WRITING: Duration = Duration::from_secs(5);

/// Passes the text of an input on: canonical JSON, or what came in its place. An input beyond the
/// bounds of one has none here, and neither has a long one that is not written yet.
pub(super) fn with_text(unused: Option<Unused>, pass: impl FnOnce(Option<&str>)) {
    match unused {
        None => pass(None),
        Some(Unused::Raw(CallInput::Text(text))) => {
            pass(Some(text.as_str()).filter(|text| text.len() <= JsonBounds::CALL_INPUT.bytes));
        }
        Some(Unused::Raw(CallInput::Value(value))) if is_short_value(&value) => {
            pass(Some(&value.to_string()));
        }
        Some(Unused::Raw(CallInput::Value(value))) => {
            // It may consist of a million allocations.
            drop_later(input_turns_of(None), value);
            pass(None);
        }
        Some(Unused::Valid(input)) => pass((!input.is_large()).then(|| input.text())),
    }
}

/// Returns true if an input has to be [written](written) before it has a text here.
pub(super) fn is_long(unused: &Unused) -> bool {
    match unused {
        Unused::Raw(CallInput::Text(_)) => false,
        Unused::Raw(CallInput::Value(value)) => !is_short_value(value),
        Unused::Valid(input) => input.is_large(),
    }
}

/// Writes a long input as text, outside the runtime's threads. `None` if there is no room for it.
pub(super) async fn written(unused: Unused, account: Account) -> Option<Unused> {
    let budget = InputBudget::new(account, WRITING, CancellationToken::new());
    let budget = budget.call_budget();
    let write = move |budget: Arc<dyn Budget>| match unused {
        Unused::Raw(CallInput::Value(value)) => write_value(&value, &*budget),
        Unused::Valid(mut input) => {
            input.compact()?;
            Ok(Some(Unused::Valid(input)))
        }
        text => Ok(Some(text)),
    };
    offload(budget, input_turns_within(budget), write).await.ok().flatten()
}

/// Writes a value that was never checked, unless it is beyond the bounds of an input.
fn write_value(value: &Value, budget: &dyn Budget) -> Result<Option<Unused>, Exhausted> {
    let bounds = JsonBounds::CALL_INPUT;
    if bounds.admit(value).is_err() {
        return Ok(None);
    }
    budget.reserve(bounds.bytes as u64)?;
    let text = value.to_string();
    budget.release((bounds.bytes as u64).saturating_sub(text.len() as u64));
    Ok(Some(Unused::Raw(CallInput::Text(text))))
}

/// Returns true for a value that is written in less than a millisecond.
fn is_short_value(value: &Value) -> bool {
    let bounds = JsonBounds { bytes: IN_PLACE, ..JsonBounds::CALL_INPUT };
    bounds.admit(value).is_ok_and(|memory| is_short(0, memory))
}
