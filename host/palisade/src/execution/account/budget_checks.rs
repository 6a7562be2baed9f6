//! Counts the budget checks of long work for a call, so that a test can act within one of them.

use super::call_account::Account;
use crate::tool::budget::Budget;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

type Action = Box<dyn Fn(usize, &dyn Budget) + Send + Sync>;

/// The number of checks, and the action of each.
#[derive(Default)]
pub(super) struct BudgetChecks {
    count: AtomicUsize,
    action: OnceLock<Action>,
}

impl fmt::Debug for BudgetChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.count.fmt(f)
    }
}

impl BudgetChecks {
    /// Sets the action of each check, unless there is one.
    pub(super) fn set_action(&self, action: impl Fn(usize, &dyn Budget) + Send + Sync + 'static) {
        let _ = self.action.set(Box::new(action));
    }

    /// Returns the number of checks so far.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Counts one check of this budget and runs its action.
    pub(super) fn note(&self, budget: &dyn Budget) {
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(action) = self.action.get() {
            action(number, budget);
        }
    }
}

impl Account {
    /// Sets an action for each check of long work under this account, before its verdict. The
    /// action gets the number of the check, from one.
    pub(crate) fn on_budget_check(
        &self,
        action: impl Fn(usize, &dyn Budget) + Send + Sync + 'static,
    ) {
        self.budget_checks().set_action(action);
    }
}

/// Waits within a check until its budget is exhausted, by the deadline or by a cancellation.
pub(crate) fn wait_until_exhausted(budget: &dyn Budget) {
    while budget.check().is_ok() {
        std::thread::park_timeout(Duration::from_millis(1));
    }
}
