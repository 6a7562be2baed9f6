//! The budget of the host's work for one call: its memory account, its deadline and its
//! cancellation.

use super::call_account::Account;
use crate::tool::budget::{Budget, Exhausted};
use std::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The budget of the host's own work for a call: the call's memory, until its deadline or
/// cancellation.
#[derive(Debug, Clone)]
pub struct CallBudget {
    account: Account,
    deadline: Instant,
    cancel: CancellationToken,
}

impl CallBudget {
    /// Creates a budget that ends at `deadline` or when `cancel` is cancelled.
    pub fn new(account: Account, deadline: Instant, cancel: CancellationToken) -> Self {
        Self { account, deadline, cancel }
    }

    /// Returns the same budget, which also ends when the guard is dropped.
    pub(crate) fn until_dropped(&self) -> (Self, DropGuard) {
        let cancel = self.cancel.child_token();
        (Self { cancel: cancel.clone(), ..self.clone() }, cancel.drop_guard())
    }

    /// Returns the deadline.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the cancellation token of the budget.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Counts one check of long work, for tests.
    #[cfg(test)]
    pub(crate) fn note_check(&self) {
        self.account.budget_checks().note(self);
    }
}

impl Budget for CallBudget {
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        self.account.reserve(bytes)
    }

    fn release(&self, bytes: u64) {
        self.account.release(bytes);
    }

    fn check(&self) -> Result<(), Exhausted> {
        if self.cancel.is_cancelled() {
            Err(Exhausted::Cancelled)
        } else if Instant::now() >= self.deadline {
            Err(Exhausted::Deadline)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::call_account::MemoryLimits;
    use super::*;

    #[test]
    fn work_ends_at_deadline_and_cancellation() {
        let account = Account::exactly(MemoryLimits { call: 90, total: u64::MAX });
        let cancel = CancellationToken::new();
        let far = Instant::now() + std::time::Duration::from_secs(600);
        let budget = CallBudget::new(account, far, cancel.clone());
        assert_eq!(budget.check(), Ok(()));
        assert_eq!(
            CallBudget { deadline: Instant::now(), ..budget.clone() }.check(),
            Err(Exhausted::Deadline)
        );
        cancel.cancel();
        assert_eq!(budget.check(), Err(Exhausted::Cancelled));
    }
}
