//! The bound of work on JSON in place, on a thread of the runtime: by the text, and by the memory
//! of the parsed form, which decides the time. A short text of many small objects takes ten times
//! as long as a plain one.

use crate::execution::account::Account;
use crate::tool::budget::{Budget, Exhausted};
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest text processed in place, in bytes. Parsing and validating it takes some 200 µs,
/// about the cost of a round trip to another thread on a busy machine.
pub const IN_PLACE: usize = 32 << 10;
/// The largest parsed form processed in place, in bytes. Its objects take as long as a text of
/// [`IN_PLACE`] bytes.
const IN_PLACE_MEMORY: u64 = 128 << 10;

/// Returns true if JSON with a text of this length, whose parsed form takes this memory, is
/// processed in place. Both are in bytes.
#[must_use]
pub fn is_short(text: usize, memory: u64) -> bool {
    text <= IN_PLACE && memory <= IN_PLACE_MEMORY
}

/// The budget of parsing a short text in place: an account's memory, up to the largest parsed form.
/// Beyond it the work ends, and is repeated on another thread.
#[derive(Debug)]
pub struct InPlaceBudget<'a> {
    account: &'a Account,
    used: AtomicU64,
}

impl<'a> InPlaceBudget<'a> {
    /// Creates the budget of one text, in this account.
    #[must_use]
    pub fn new(account: &'a Account) -> Self {
        Self { account, used: AtomicU64::new(0) }
    }

    /// Returns true if the parsed form is too large, so that the work ended early.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.used.load(Ordering::Relaxed) > IN_PLACE_MEMORY
    }
}

impl Budget for InPlaceBudget<'_> {
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        // Released memory counts on: the work on it is done.
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > IN_PLACE_MEMORY {
            return Err(Exhausted::Deadline);
        }
        self.account.reserve(bytes)
    }

    fn release(&self, bytes: u64) {
        self.account.release(bytes);
    }

    fn check(&self) -> Result<(), Exhausted> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::execution::account::MemoryLimits;
    use crate::tool::json::{JsonBounds, parse_within};

    #[test]
    fn short_text_with_a_large_parsed_form_is_not_parsed_in_place() {
        let many = |text: &str, count: usize| format!("[{}]", vec![text; count].join(","));
        for (text, fits) in [
            (many("1", 100), true),
            (many(r#"{"":0}"#, 100), true),
            (format!("\"{}\"", "x".repeat(IN_PLACE - 2)), true),
            (many(r#"{"":0}"#, 4_600), false),
        ] {
            assert!(text.len() <= IN_PLACE, "{}", text.len());
            let account = Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
            let budget = InPlaceBudget::new(&account);
            let parsed = parse_within(&text, JsonBounds::CALL_INPUT, &budget);
            assert_eq!((parsed.is_ok(), budget.is_exceeded()), (fits, !fits), "{text:.20}");
            assert!(account.held() <= IN_PLACE_MEMORY);
            assert_eq!(account.held() > 0, fits, "nothing is held for a text that is parsed again");
        }
    }
}
