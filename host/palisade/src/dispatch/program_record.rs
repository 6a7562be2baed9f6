//! The results of the calls that a program has made, for a call that ends with a question and is
//! run again with the answer: none of the calls runs twice.

use crate::execution::account::{Account, Charge};
use crate::tool::{Digest, ErrorKind, ToolResult};
use crate::workspace::{Quotas, SharedQuotas};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The most bytes of the results of one program.
const MOST: usize = 16 << 20;

/// The bytes that a result takes besides its content.
const RESULT: usize = 1 << 10;

/// The calls that a program has made in all runs so far, by their numbers from one.
#[derive(Debug, Default)]
pub struct ProgramRecord {
    calls: Mutex<Calls>,
    /// The file quotas that the calls of all runs share.
    quotas: OnceLock<Arc<SharedQuotas>>,
    /// The memory of the results, which outlives the call.
    account: OnceLock<Account>,
}

#[derive(Debug, Default)]
struct Calls {
    made: BTreeMap<usize, Made>,
    bytes: usize,
    /// True once a result had no room: the program cannot be run again.
    is_full: bool,
}

#[derive(Debug)]
struct Made {
    call: Digest,
    /// `None` for a call that waits for an answer.
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    result: ToolResult,
    #[expect(dead_code, reason = "counts for as long as it lives")]
    memory: Charge,
}

/// A program that is run again made another call than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the program made other calls than before its question")]
pub(crate) struct OtherCall;

impl ProgramRecord {
    /// Returns true if the program can be run again up to here.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.calls().is_full
    }

    /// Identifies a call by its tool and its input.
    pub(super) fn identify(tool: &str, input: &str) -> Digest {
        Digest::of([tool, input].join("\0").as_bytes())
    }

    /// Begins the call of this number. Returns its result if it has ended in an earlier run.
    ///
    /// # Errors
    ///
    /// [`OtherCall`] if the call of this number was another one in an earlier run.
    pub(super) fn begin(
        &self,
        number: usize,
        call: Digest,
    ) -> Result<Option<ToolResult>, OtherCall> {
        let mut calls = self.calls();
        let made = calls.made.entry(number).or_insert(Made { call, kept: None });
        match made.call == call {
            true => Ok(made.kept.as_ref().map(|kept| kept.result.clone())),
            false => Err(OtherCall),
        }
    }

    /// Returns the file quotas of all runs together.
    pub(super) fn quotas(&self) -> Arc<SharedQuotas> {
        self.quotas.get_or_init(|| Arc::new(SharedQuotas::new(Quotas::default()))).clone()
    }

    /// Keeps the result of a call, unless the call waits for an answer. The memory of the first
    /// result opens the account of all of them.
    pub(super) fn keep(
        &self,
        number: usize,
        result: &ToolResult,
        account: impl FnOnce() -> Account,
    ) {
        if result.error().is_some_and(|error| matches!(error.kind(), ErrorKind::AwaitsClient)) {
            return;
        }
        let bytes = result.footprint() + RESULT;
        let mut calls = self.calls();
        let has_room = !calls.is_full && calls.bytes + bytes <= MOST;
        let memory = has_room.then(|| self.account.get_or_init(account).charge(bytes as u64).ok());
        let Some(memory) = memory.flatten() else {
            calls.is_full = true;
            return;
        };
        calls.bytes += bytes;
        if let Some(made) = calls.made.get_mut(&number) {
            made.kept = Some(Kept { result: result.clone(), memory });
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::CallId;

    fn account() -> Account {
        crate::sandbox::limits::Limits::default().account()
    }

    fn result(text: &str) -> ToolResult {
        ToolResult::success(CallId::new("c"), "t", text)
    }

    const ONE: Digest = Digest::from_bytes([1; 32]);
    const OTHER: Digest = Digest::from_bytes([2; 32]);

    fn output(begun: Result<Option<ToolResult>, OtherCall>) -> Option<String> {
        begun.ok().flatten().and_then(|result| result.output().map(Into::into))
    }

    #[test]
    fn call_that_has_ended_has_its_result_in_the_next_run() {
        let record = ProgramRecord::default();
        assert_eq!(output(record.begin(2, ONE)), None);
        record.keep(2, &result("second"), account);
        assert_eq!(output(record.begin(2, ONE)), Some("second".to_owned()));
        assert_eq!(output(record.begin(1, ONE)), None);
    }

    #[test]
    fn other_call_of_the_same_number_is_refused() {
        let record = ProgramRecord::default();
        assert!(record.begin(1, ONE).is_ok());
        assert_eq!(record.begin(1, OTHER).err(), Some(OtherCall), "while the first one waits");
        record.keep(1, &result("first"), account);
        assert_eq!(record.begin(1, OTHER).err(), Some(OtherCall), "after its end");
        assert!(record.begin(1, ONE).is_ok());
    }

    #[test]
    fn call_that_waits_has_no_result() {
        let record = ProgramRecord::default();
        assert!(record.begin(1, ONE).is_ok());
        record.keep(
            1,
            &ToolResult::failure(CallId::new("c"), "t", ErrorKind::AwaitsClient),
            account,
        );
        assert_eq!(output(record.begin(1, ONE)), None);
        assert!(record.is_whole());
    }

    #[test]
    fn record_is_bounded() {
        let record = ProgramRecord::default();
        let large = result(&"x".repeat(9 << 20));
        for (number, is_whole) in [(1, true), (2, false)] {
            assert!(record.begin(number, ONE).is_ok());
            record.keep(number, &large, account);
            assert_eq!(record.is_whole(), is_whole);
        }
        assert_eq!(output(record.begin(2, ONE)), None);
    }
}
