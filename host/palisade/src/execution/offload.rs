//! Offloads long work of the host for a call to the host's own threads. The work takes turns on its
//! owner's share of the cores: runtime threads stay free for other calls, and no plugin gets more
//! CPU time that way. It ends with the call's deadline, its cancellation, or the caller's future.

mod in_place;
#[cfg(test)]
mod tests;
mod turn_budget;

use super::account::CallBudget;
use super::owner::TURN;
use super::share::{Grant, Pool, Share};
use super::thread_pool::run_on_shared_pool;
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::{ErrorKind, Limit, SideEffects};
pub use in_place::{IN_PLACE, InPlaceBudget, is_short};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
pub(crate) use turn_budget::TurnBudget;

/// The most jobs in flight, each on its own thread. One owner has at most half of them.
const MAX_JOBS: u64 = 32;

/// Runs work on another thread in the given turns. The work holds a turn from its start and yields
/// it at the first budget check after a tick. Dropping this future cancels the budget that `work`
/// received, and so stops the work.
///
/// # Errors
///
/// The error of the work; also [`Exhausted::Deadline`] or [`Exhausted::Cancelled`] if the work does
/// not respond.
pub async fn offload<T: Send + 'static>(
    budget: &CallBudget,
    turns: &Arc<Share>,
    work: impl FnOnce(Arc<dyn Budget>) -> Result<T, Exhausted> + Send + 'static,
) -> Result<T, Exhausted> {
    let (own, _stops_with_this_future) = budget.until_dropped();
    let deadline = own.deadline();
    let cancel = own.cancel().clone();
    let done = async {
        let permit = job_permits().share_of(turns.owner()).take(1).await;
        let budget = Arc::new(TurnBudget::new(own, turns, Some(turn(turns).await)));
        let (send, done) = oneshot::channel();
        run_on_shared_pool(Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(budget.clone())));
            if send.is_closed() {
                // The result may be large, so it is dropped in the turn as well.
                return drop(result);
            }
            // Release the turn and the slot before the caller learns of the end.
            budget.end();
            drop(permit);
            let _ = send.send(result);
        }));
        // A panic of the work is a panic of the call; the dispatcher catches it.
        done.await.map_or(Err(Exhausted::Cancelled), |done| {
            done.unwrap_or_else(|panic| resume_unwind(panic))
        })
    };
    tokio::select! {
        biased;
        done = done => done,
        () = cancel.cancelled() => Err(Exhausted::Cancelled),
        () = sleep_until(Instant::from_std(deadline)) => Err(Exhausted::Deadline),
    }
}

/// Waits for a turn. It also abandons expired turns, because the engine's clock does so only while
/// guests run.
async fn turn(turns: &Arc<Share>) -> Grant {
    let mut turn = pin!(turns.take(1));
    loop {
        match timeout(TURN, &mut turn).await {
            Ok(turn) => return turn,
            Err(_) => turns.pool().abandon_older_than(TURN),
        }
    }
}

fn job_permits() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(MAX_JOBS))
}

/// Returns the error of a call whose budget is exhausted.
pub fn exhaustion_error(why: Exhausted, limit: Duration, class: SideEffects) -> ErrorKind {
    match why {
        Exhausted::CallMemory { limit } => {
            ErrorKind::ResourceExhausted { limit: Limit::Memory, value: limit }
        }
        Exhausted::TotalMemory { limit } => {
            ErrorKind::ResourceExhausted { limit: Limit::TotalMemory, value: limit }
        }
        Exhausted::AddressSpace { limit } => {
            ErrorKind::ResourceExhausted { limit: Limit::AddressSpace, value: limit }
        }
        Exhausted::Deadline => ErrorKind::Timeout { limit, class, input: None },
        Exhausted::Cancelled => ErrorKind::Cancelled,
    }
}
