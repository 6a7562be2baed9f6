//! The budgets of checking an input.

use crate::execution::account::{Account, CallBudget};
use crate::execution::offload::{exhaustion_error, offload};
use crate::execution::owner::input_turns_within;
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::{ErrorKind, SideEffects};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The budget checks that work in place may use: some 5 µs each for a path, 50 µs for other work.
const STEPS_IN_PLACE: u32 = 64;

/// The budget of checking an input.
#[derive(Clone)]
pub(in crate::dispatch) struct InputBudget {
    budget: CallBudget,
    time: Duration,
}

impl InputBudget {
    /// Creates a budget of this account's memory, until the timeout or the cancellation.
    pub(in crate::dispatch) fn new(
        account: Account,
        time: Duration,
        cancel: CancellationToken,
    ) -> Self {
        Self { budget: CallBudget::new(account, Instant::now() + time, cancel), time }
    }

    pub(in crate::dispatch) fn call_budget(&self) -> &CallBudget {
        &self.budget
    }

    /// Returns the error of a call whose input could not be checked within the budget.
    pub(in crate::dispatch) fn exhausted(&self, why: Exhausted, class: SideEffects) -> ErrorKind {
        exhaustion_error(why, self.time, class)
    }

    /// Runs work outside the runtime's threads, in the turns of the call's owner. If it exceeds the
    /// budget, the error is that of a call of this class.
    pub(in crate::dispatch) async fn offload<T: Send + 'static>(
        &self,
        class: SideEffects,
        work: impl FnOnce(Arc<dyn Budget>) -> Result<T, Exhausted> + Send + 'static,
    ) -> Result<T, ErrorKind> {
        let done = offload(&self.budget, input_turns_within(&self.budget), work).await;
        done.map_err(|why| self.exhausted(why, class))
    }
}

/// The budget of work on a thread of the runtime. After a fixed number of checks the work ends and
/// is repeated elsewhere.
pub(in crate::dispatch) struct StepBudget(AtomicU32);

impl StepBudget {
    pub(in crate::dispatch) fn new() -> Self {
        Self(AtomicU32::new(STEPS_IN_PLACE))
    }
}

impl Budget for StepBudget {
    fn reserve(&self, _: u64) -> Result<(), Exhausted> {
        Ok(())
    }

    fn release(&self, _: u64) {}

    fn check(&self) -> Result<(), Exhausted> {
        let left = self.0.load(Ordering::Relaxed).checked_sub(1).ok_or(Exhausted::Deadline)?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }
}
