//! Counts the budget checks of long work for a call, so that a test can act within one of them.

use super::{Account, CallBudget};
use crate::tool::budget::Budget as _;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

type Act = Box<dyn Fn(usize, &CallBudget) + Send + Sync>;

/// The number of checks, and the action of each.
#[derive(Default)]
pub(super) struct Looks {
    count: AtomicUsize,
    act: OnceLock<Act>,
}

impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.count.fmt(f)
    }
}

impl Account {
    /// Sets an action for each check of long work under this account, before its verdict. The
    /// action gets the number of the check, from one.
    pub(crate) fn at_each_look(&self, act: impl Fn(usize, &CallBudget) + Send + Sync + 'static) {
        let _ = self.0.looks.act.set(Box::new(act));
    }

    /// Waits until no work holds the account any more, and returns the number of checks.
    pub(crate) async fn looks(self) -> usize {
        while Arc::strong_count(&self.0) > 1 {
            tokio::task::yield_now().await;
        }
        self.0.looks.count.load(Ordering::SeqCst)
    }
}

impl CallBudget {
    /// Counts one check of long work.
    pub(crate) fn look(&self) {
        let looks = &self.account.0.looks;
        let number = looks.count.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(act) = looks.act.get() {
            act(number, self);
        }
    }
}

/// Waits within a check until its budget is exhausted, by the deadline or by a cancellation.
pub(crate) fn until_the_end(budget: &CallBudget) {
    while budget.check().is_ok() {
        std::thread::park_timeout(Duration::from_millis(1));
    }
}
