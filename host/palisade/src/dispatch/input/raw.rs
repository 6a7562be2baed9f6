//! The input of a call before and while it is checked. Dropped then, because the call is refused,
//! it is kept for the record of the call.

use crate::execution::{Unused, UnusedInput, ValidInput};
use crate::tool::CallInput;
use crate::tool::call::Nulls;
use serde_json::Value;
use std::sync::Arc;

/// The accounting of an input that comes as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dispatch) enum InputMemory {
    /// The memory is reserved: the input was parsed under the call's account.
    Reserved,
    /// The memory is not reserved yet.
    Unreserved,
}

/// The input of a call as received.
pub(in crate::dispatch) struct RawInput {
    pub(super) input: CallInput,
    nulls: Nulls,
    pub(super) memory: InputMemory,
    unused: Option<Arc<UnusedInput>>,
}

/// An input that is read, and still to be validated.
pub(super) struct ReadInput {
    pub(super) value: Value,
    pub(super) nulls: Nulls,
    /// The memory of the value, in bytes, which is reserved.
    bytes: u64,
    unused: Option<Arc<UnusedInput>>,
}

impl RawInput {
    /// Creates the input of a call that has no record.
    pub(in crate::dispatch) fn new(input: CallInput, nulls: Nulls, memory: InputMemory) -> Self {
        Self { input, nulls, memory, unused: None }
    }

    /// Sets where the input goes if the call is refused.
    pub(in crate::dispatch) fn kept_in(mut self, unused: Option<&Arc<UnusedInput>>) -> Self {
        self.unused = unused.cloned();
        self
    }

    /// Returns the input with its parsed value, or else with the value that it came as, and the
    /// memory of the value.
    pub(super) fn read(mut self, parsed: Option<Value>, bytes: u64) -> ReadInput {
        let unused = self.unused.take();
        let value = match (parsed, take(&mut self.input)) {
            (Some(value), _) | (None, CallInput::Value(value)) => value,
            // Nobody takes a text for its value, and the schema refuses this one.
            (None, CallInput::Text(text)) => Value::String(text),
        };
        ReadInput { value, nulls: self.nulls, bytes, unused }
    }
}

impl ReadInput {
    /// Returns the input for a check elsewhere, as far as it has come.
    pub(super) fn into_raw(mut self) -> RawInput {
        let unused = self.unused.take();
        let input = CallInput::Value(self.value.take());
        RawInput { input, nulls: Nulls::AsGiven, memory: InputMemory::Reserved, unused }
    }

    /// Returns the input after all checks.
    pub(super) fn into_valid(mut self) -> ValidInput {
        let unused = self.unused.take();
        ValidInput::new(self.value.take()).with_memory(self.bytes).kept_in(unused)
    }
}

impl Drop for RawInput {
    fn drop(&mut self) {
        if let Some(unused) = self.unused.take() {
            unused.put(Unused::Raw(take(&mut self.input)));
        }
    }
}

impl Drop for ReadInput {
    fn drop(&mut self) {
        if let Some(unused) = self.unused.take() {
            unused.put(Unused::Raw(CallInput::Value(self.value.take())));
        }
    }
}

fn take(input: &mut CallInput) -> CallInput {
    std::mem::replace(input, CallInput::Value(Value::Null))
}
