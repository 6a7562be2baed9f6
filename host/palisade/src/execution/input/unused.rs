//! The input of a call that ends before its tool runs, kept for the record of the call.

use crate::execution::account::Account;
use crate::tool::CallInput;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Takes the input of a call, wherever the call is refused: whoever holds the input when it is
/// dropped puts it here, unless the tool has begun. A call without a recorder has no such place.
#[derive(Debug)]
pub(crate) struct UnusedInput<Valid> {
    input: Mutex<Option<Unused<Valid>>>,
    /// The account of the call, in which the input stays charged.
    account: OnceLock<Account>,
}

/// An input as far as it was checked.
#[derive(Debug)]
pub(crate) enum Unused<Valid> {
    /// As received, or parsed.
    Raw(CallInput),
    /// Checked.
    Valid(Valid),
}

impl<Valid> Default for UnusedInput<Valid> {
    fn default() -> Self {
        Self { input: Mutex::new(None), account: OnceLock::new() }
    }
}

impl<Valid> UnusedInput<Valid> {
    /// Keeps the account of the call for as long as the input.
    pub(crate) fn hold(&self, account: &Account) {
        self.account.get_or_init(|| account.clone());
    }

    /// Returns the account of the call, if the call has one already.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.account.get()
    }

    /// Keeps the input of a call that has ended.
    pub(crate) fn put(&self, input: Unused<Valid>) {
        *self.input() = Some(input);
    }

    /// Takes the input, if it was put here.
    pub(crate) fn take(&self) -> Option<Unused<Valid>> {
        self.input().take()
    }

    fn input(&self) -> MutexGuard<'_, Option<Unused<Valid>>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
