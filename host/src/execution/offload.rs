//! Work of the host for a call that may take long. It is done on a thread of the host's own, in the turns of whoever it
//! is done for, so that a runtime thread stays free for other calls and no plugin gets more of the cores by it. It ends
//! with the call's deadline, its cancellation, or its caller.

mod leaving;
#[cfg(test)]
mod tests;
mod turned;

use super::account::CallBudget;
use super::crew::{Crew, Job, Unstarted};
use super::owner::TURN;
use super::share::{Grant, Pool, Share};
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::{ErrorKind, Limit, SideEffects};
#[cfg(test)]
pub(crate) use leaving::ALONE;
pub(crate) use leaving::{drop_away, making_room};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
pub(crate) use turned::Turned;

/// The largest text that is worked on in place, in bytes. Parsing and validating one takes some 200 µs, which is what
/// the way to another thread and back costs on a busy machine.
pub(crate) const IN_PLACE: usize = 32 << 10;
/// Pieces of work that have begun and not ended, each on its thread. One owner has at most half of them.
const PLACES: u64 = 32;

/// Does work away from the runtime's threads, in these turns: from its beginning it holds one, which it gives up at its
/// budget's check when a tick is over. Whoever stops waiting stops the work: dropping this future cancels the budget
/// that `work` was given.
///
/// # Errors
///
/// What the work refuses with; [`Exhausted::Deadline`] or [`Exhausted::Cancelled`] also where the work does not answer.
pub(crate) async fn offload<T: Send + 'static>(
    budget: &CallBudget,
    turns: &Arc<Share>,
    work: impl FnOnce(Arc<dyn Budget>) -> Result<T, Exhausted> + Send + 'static,
) -> Result<T, Exhausted> {
    let (own, _stops_with_this_future) = budget.until_dropped();
    let (deadline, cancel) = (own.deadline(), own.cancel().clone());
    let done = async {
        let place = places().share(turns.owner()).take(1).await;
        let budget = Arc::new(Turned::begin(own, turns, Some(turn(turns).await)));
        let (send, done) = oneshot::channel();
        start(Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(budget.clone())));
            if send.is_closed() {
                // In its turn as well: it may be large.
                return drop(result);
            }
            // The books are closed before the caller learns of the end.
            budget.end();
            drop(place);
            let _ = send.send(result);
        }));
        // A panic of the work is a panic of the call, which the dispatcher catches.
        done.await.map_or(Err(Exhausted::Cancelled), |done| done.unwrap_or_else(|panic| resume_unwind(panic)))
    };
    tokio::select! {
        biased;
        done = done => done,
        () = cancel.cancelled() => Err(Exhausted::Cancelled),
        () = sleep_until(Instant::from_std(deadline)) => Err(Exhausted::Deadline),
    }
}

/// A turn, once there is one. The clock that writes off turns stands still where no guest runs.
async fn turn(turns: &Arc<Share>) -> Grant {
    let mut turn = pin!(turns.take(1));
    loop {
        match timeout(TURN, &mut turn).await {
            Ok(turn) => return turn,
            Err(_) => turns.pool().write_off_older_than(TURN),
        }
    }
}

fn places() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(PLACES))
}

/// Does this on a thread of the host's own; here where the system has none.
fn start(job: Job) {
    static CREW: OnceLock<Arc<Crew>> = OnceLock::new();
    if let Err(Unstarted { job, .. }) = CREW.get_or_init(|| Crew::new("palisade-work")).start(job) {
        job();
    }
}

/// The error of a call whose budget is exhausted.
pub(crate) fn ended(why: Exhausted, limit: Duration, class: SideEffects) -> ErrorKind {
    match why {
        Exhausted::CallMemory { limit } => ErrorKind::ResourceExhausted { limit: Limit::Memory, value: limit },
        Exhausted::TotalMemory { limit } => ErrorKind::ResourceExhausted { limit: Limit::TotalMemory, value: limit },
        Exhausted::AddressSpace { limit } => ErrorKind::ResourceExhausted { limit: Limit::AddressSpace, value: limit },
        Exhausted::Deadline => ErrorKind::Timeout { limit, class, input: None },
        Exhausted::Cancelled => ErrorKind::Cancelled,
    }
}
