//! An input that was checked.

use super::account::Account;
use super::offload::drop_away;
use super::owner::input_turns;
use crate::tool::budget::Exhausted;
use serde_json::Value;
use std::io;
use std::sync::OnceLock;

/// The memory of a value that takes a thread milliseconds to write and to drop, in bytes.
const AWAY: u64 = 1 << 20;

/// An input that has been validated against the tool's schema, its paths checked.
#[derive(Debug)]
pub struct ValidInput {
    value: OnceLock<Value>,
    text: OnceLock<String>,
    account: Option<Account>,
    /// The memory that the value takes, in bytes.
    bytes: u64,
}

impl ValidInput {
    /// Only the dispatcher makes these, after the checks.
    pub(crate) fn new(value: Value) -> Self {
        Self { value: OnceLock::from(value), text: OnceLock::new(), account: None, bytes: 0 }
    }

    /// With the memory that its value takes, in bytes.
    pub(crate) fn taking(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// With the account in which that memory is reserved.
    pub(crate) fn held_in(mut self, account: Account) -> Self {
        self.account = Some(account);
        self
    }

    /// Whether work on the whole value belongs on another thread than a runtime's.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes >= AWAY
    }

    /// The account that the input is held in, where it is held in one.
    pub(crate) fn account(&self) -> Option<Account> {
        self.account.clone()
    }

    /// Keeps the text of a large value in its place, for a plugin that reads the text and for a call that waits: the value
    /// may take 90 times as much.
    ///
    /// # Errors
    ///
    /// Where there is no room for the text; the value stays then.
    pub(crate) fn compact(&mut self) -> Result<(), Exhausted> {
        let (Some(account), Some(value)) = (self.counting(), self.value.get()) else { return Ok(()) };
        let length = self.text.get().map_or_else(|| length(value), |_| 0);
        account.reserve(length as u64)?;
        self.text.get_or_init(|| text(value, length));
        account.release(self.bytes);
        self.value = OnceLock::new();
        Ok(())
    }

    /// The account of an input that is large, and so counted in both of its forms.
    fn counting(&self) -> Option<Account> {
        /// In bytes.
        const LARGE: u64 = 64 << 10;
        if self.bytes < LARGE { None } else { self.account() }
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            if let Some(account) = self.counting() {
                account.owe(self.bytes);
            }
            // The text was a value before.
            self.text.get().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        })
    }

    /// The canonical text: keys sorted, no duplicates, no spaces.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let text = serde_json::to_string(self.value()).unwrap_or_default();
            if let Some(account) = self.counting() {
                account.owe(text.len() as u64);
            }
            text
        })
    }
}

/// A large value may be a million allocations.
impl Drop for ValidInput {
    fn drop(&mut self) {
        if self.is_large()
            && let Some(value) = self.value.take()
        {
            drop_away(input_turns(), (value, self.account.take()));
        }
    }
}

/// The length of a value's text, in bytes.
fn length(value: &Value) -> usize {
    struct Length(usize);

    impl io::Write for Length {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0 += text.len();
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut length = Length(0);
    // Neither the value nor the counter refuses anything.
    let _ = serde_json::to_writer(&mut length, value);
    length.0
}

/// A value's text, which has this length in bytes.
fn text(value: &Value, length: usize) -> String {
    let mut text = Vec::with_capacity(length);
    // As above.
    let _ = serde_json::to_writer(&mut text, value);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its input has failed")]
    use super::super::account::MemoryLimits;
    use super::*;
    use serde_json::json;

    /// An input that is held in an account of so much memory, as the dispatcher makes it.
    fn held(value: Value, memory: u64) -> (ValidInput, Account) {
        let account = Account::exactly(MemoryLimits { call: memory, total: u64::MAX });
        let bytes = crate::tool::json::JsonBounds::CALL_INPUT.admit(&value).unwrap();
        account.reserve(bytes).unwrap();
        (ValidInput::new(value).taking(bytes).held_in(account.clone()), account)
    }

    #[test]
    fn a_waiting_input_is_held_once_and_counted_as_long_as_it_is() {
        for value in [json!("x".repeat(200_000)), json!("\u{1}".repeat(200_000)), json!(vec![json!({"a": 0}); 1000])] {
            let text = value.to_string();
            let (mut input, account) = held(value.clone(), u64::MAX);
            let before = account.held();
            input.compact().unwrap();
            assert_eq!((account.held(), input.text()), (text.len() as u64, text.as_str()));
            assert_eq!(*input.value(), value);
            assert_eq!(account.held(), before + text.len() as u64, "both forms are there");
        }
    }

    #[test]
    fn an_input_whose_text_has_no_room_stays_a_value() {
        let (mut input, account) = held(json!("\u{1}".repeat(200_000)), 1 << 20);
        let before = account.held();
        assert_eq!(input.compact(), Err(Exhausted::CallMemory { limit: 1 << 20 }));
        assert_eq!((account.held(), input.value().as_str().map(str::len)), (before, Some(200_000)));
    }

    #[test]
    fn a_small_input_stays_as_it_is() {
        let (mut input, account) = held(json!({"a": 1}), u64::MAX);
        let before = account.held();
        input.compact().unwrap();
        assert_eq!((input.text(), account.held()), ("{\"a\":1}", before));
    }
}
