//! A validated input.

mod unused;

use super::account::Account;
use super::deferred_drop::drop_later;
use super::owner::input_turns_of;
use crate::tool::budget::Exhausted;
use serde_json::Value;
use std::io;
use std::sync::{Arc, OnceLock};

/// The input of a call that ends before its tool runs.
pub(crate) type Unused = unused::Unused<ValidInput>;
/// The place for it.
pub(crate) type UnusedInput = unused::UnusedInput<ValidInput>;

/// The size in bytes from which writing or dropping a value takes milliseconds.
const OFFLOADED: u64 = 1 << 20;

/// The canonical text of an input.
#[derive(Debug)]
enum Text {
    Own(String),
    /// A question to the user has it as well.
    Shared(Arc<str>),
}

impl Text {
    fn as_str(&self) -> &str {
        match self {
            Self::Own(text) => text,
            Self::Shared(text) => text,
        }
    }
}

/// An input validated against the tool's schema, with its paths checked.
#[derive(Debug)]
pub struct ValidInput {
    value: OnceLock<Value>,
    text: OnceLock<Text>,
    account: Option<Account>,
    /// The memory of the value, in bytes.
    bytes: u64,
    /// Where the input goes if the tool does not get it.
    unused: Option<Arc<UnusedInput>>,
}

impl ValidInput {
    /// Wraps a checked value. Only the dispatcher calls this, after the checks.
    pub(crate) fn new(value: Value) -> Self {
        let (value, text) = (OnceLock::from(value), OnceLock::new());
        Self { value, text, account: None, bytes: 0, unused: None }
    }

    /// Sets the memory of the value, in bytes.
    pub(crate) fn with_memory(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the account in which that memory is reserved.
    pub(crate) fn with_account(mut self, account: Account) -> Self {
        self.account = Some(account);
        self
    }

    /// Sets where the input goes if the tool does not get it.
    pub(crate) fn kept_in(mut self, unused: Option<Arc<UnusedInput>>) -> Self {
        self.unused = unused;
        self
    }

    /// Leaves the input to the tool, which is about to run.
    pub(crate) fn begin(&mut self) {
        self.unused = None;
    }

    /// Returns true if there is a value, and work on the whole of it is too long for a thread of
    /// the runtime.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes >= OFFLOADED && self.value.get().is_some()
    }

    /// Returns the account in which the input is reserved, if there is one.
    pub(crate) fn account(&self) -> Option<Account> {
        self.account.clone()
    }

    /// Replaces a large value with its text, for plugins that read text and for queued calls: the
    /// value may take 90 times the memory.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if there is no memory for the text; the value is kept then.
    pub(crate) fn compact(&mut self) -> Result<(), Exhausted> {
        let Some(account) = self.counting_account() else { return Ok(()) };
        let Some(value) = self.value.get() else { return Ok(()) };
        let length = self.text.get().map_or_else(|| length(value), |_| 0);
        account.reserve(length as u64)?;
        self.text.get_or_init(|| Text::Own(text(value, length)));
        account.release(self.bytes);
        self.value = OnceLock::new();
        Ok(())
    }

    /// Returns the account of a large input, both of whose forms are counted.
    fn counting_account(&self) -> Option<Account> {
        /// The size of a large input, in bytes.
        const LARGE: u64 = 64 << 10;
        if self.bytes < LARGE { None } else { self.account() }
    }

    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            if let Some(account) = self.counting_account() {
                account.owe(self.bytes);
            }
            // The text was written from a value, so parsing cannot fail.
            self.text
                .get()
                .and_then(|text| serde_json::from_str(text.as_str()).ok())
                .unwrap_or_default()
        })
    }

    /// Returns the canonical text for a holder that keeps it no longer than the call keeps its
    /// input, which is charged for it. Moves the text once; only calls that ask pay for that.
    pub(crate) fn share_text(&mut self) -> Arc<str> {
        let shared = match self.text.take() {
            Some(Text::Shared(text)) => text,
            Some(Text::Own(text)) => text.into(),
            None => self.text().into(),
        };
        self.text = OnceLock::from(Text::Shared(shared.clone()));
        shared
    }

    /// Returns the canonical text: sorted keys, no duplicates, no spaces.
    #[must_use]
    pub fn text(&self) -> &str {
        let text = self.text.get_or_init(|| {
            let text = serde_json::to_string(self.value()).unwrap_or_default();
            if let Some(account) = self.counting_account() {
                account.owe(text.len() as u64);
            }
            Text::Own(text)
        });
        text.as_str()
    }
}

/// Keeps the input of a call that was refused for its record. Otherwise, drops a large value on
/// another thread, because it may consist of a million allocations.
impl Drop for ValidInput {
    fn drop(&mut self) {
        if let Some(unused) = self.unused.take() {
            let (value, text) = (std::mem::take(&mut self.value), std::mem::take(&mut self.text));
            let (account, bytes) = (self.account.take(), self.bytes);
            return unused.put(Unused::Valid(Self { value, text, account, bytes, unused: None }));
        }
        if self.is_large()
            && let Some(value) = self.value.take()
        {
            let account = self.account.take();
            let turns = input_turns_of(account.as_ref()).clone();
            drop_later(&turns, (value, account));
        }
    }
}

/// Returns the length of a value's text, in bytes.
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
    // Neither the value nor the counter can fail.
    let _ = serde_json::to_writer(&mut length, value);
    length.0
}

/// Returns a value's text, whose length in bytes is known.
fn text(value: &Value, length: usize) -> String {
    let mut text = Vec::with_capacity(length);
    // Neither the value nor the buffer can fail.
    let _ = serde_json::to_writer(&mut text, value);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its input has failed")]
    use super::super::account::MemoryLimits;
    use super::*;
    use serde_json::json;

    /// Returns an input held in an account of this much memory, as the dispatcher creates it.
    fn held(value: Value, memory: u64) -> (ValidInput, Account) {
        let account = Account::exactly(MemoryLimits { call: memory, total: u64::MAX });
        let bytes = crate::tool::json::JsonBounds::CALL_INPUT.admit(&value).unwrap();
        account.reserve(bytes).unwrap();
        (ValidInput::new(value).with_memory(bytes).with_account(account.clone()), account)
    }

    #[test]
    fn compacted_input_is_charged_for_its_text() {
        for value in [
            json!("x".repeat(200_000)),
            json!("\u{1}".repeat(200_000)),
            json!(vec![json!({"a": 0}); 1000]),
        ] {
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
    fn input_without_room_for_text_stays_a_value() {
        let (mut input, account) = held(json!("\u{1}".repeat(200_000)), 1 << 20);
        let before = account.held();
        assert_eq!(input.compact(), Err(Exhausted::CallMemory { limit: 1 << 20 }));
        assert_eq!((account.held(), input.value().as_str().map(str::len)), (before, Some(200_000)));
    }

    #[test]
    fn small_input_stays_a_value() {
        let (mut input, account) = held(json!({"a": 1}), u64::MAX);
        let before = account.held();
        input.compact().unwrap();
        assert_eq!((input.text(), account.held()), ("{\"a\":1}", before));
    }
}
