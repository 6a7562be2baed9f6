//! Work of a request that may take long: on the host's own threads, in the turns of its sender, and
//! until its deadline or the end of the request. So no sender delays another one.

use palisade::CancellationToken;
use palisade::internal::{
    Account, CallBudget, IN_PLACE, InPlaceBudget, Share, input_turns_of, offload,
};
use palisade::tool::budget::{Budget, Exhausted};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time limit of reading or writing one message, with the wait for a turn.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Reads a text of this length, in bytes: on this thread if that does not take long. Otherwise the
/// work begins again elsewhere.
pub(super) async fn read<T: Send + 'static>(
    length: usize,
    account: &Account,
    work: impl Fn(&dyn Budget) -> T + Send + 'static,
) -> Result<T, Exhausted> {
    if length <= IN_PLACE {
        let in_place = InPlaceBudget::new(account);
        let done = work(&in_place);
        if !in_place.is_exceeded() {
            return Ok(done);
        }
    }
    in_own_turns(account, work).await
}

/// Runs work on the values of this many bytes of memory: on this thread if they are short.
pub(super) async fn work<T: Send + 'static>(
    memory: usize,
    account: &Account,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Exhausted> {
    if memory <= IN_PLACE { Ok(work()) } else { in_own_turns(account, |_| work()).await }
}

/// Runs work in the turns of the sender of the request.
async fn in_own_turns<T: Send + 'static>(
    account: &Account,
    work: impl FnOnce(&dyn Budget) -> T + Send + 'static,
) -> Result<T, Exhausted> {
    in_turns_of(input_turns_of(Some(account)), account, work).await
}

/// Runs work in the given turns.
pub(super) async fn in_turns_of<T: Send + 'static>(
    turns: &Arc<Share>,
    account: &Account,
    work: impl FnOnce(&dyn Budget) -> T + Send + 'static,
) -> Result<T, Exhausted> {
    let deadline = Instant::now() + TIME_LIMIT;
    let budget = CallBudget::new(account.clone(), deadline, CancellationToken::new());
    offload(&budget, turns, move |budget| Ok(work(&*budget))).await
}
