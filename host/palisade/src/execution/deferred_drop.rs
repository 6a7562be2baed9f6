//! Drops large values after the response, in their owner's turns: a guest's memory, a JSON tree.
//!
//! Their memory stays counted until they are gone, so an allocation that fails drops the queued
//! values first.

use super::share::Share;
use super::thread_pool::run_on_shared_pool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value to be dropped once, by the first thread that locks it. Other threads wait for the drop.
struct DeferredDrop(Mutex<Option<Box<dyn Send>>>);

/// The queued values of the process.
static QUEUE: Mutex<Vec<Arc<DeferredDrop>>> = Mutex::new(Vec::new());

/// Serialises the tests that inspect the queue, because a test that runs out of memory empties it.
#[cfg(test)]
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

/// Queues a large value to be dropped in a turn on another thread, and returns at once.
pub(crate) fn drop_later(turns: &Arc<Share>, value: impl Send + 'static) {
    let deferred = Arc::new(DeferredDrop(Mutex::new(Some(Box::new(value)))));
    queue().push(deferred.clone());
    turns.take_then(1, move |turn| {
        run_on_shared_pool(Box::new(move || {
            deferred.run();
            drop(turn);
        }));
    });
}

/// Attempts a reservation. On failure it drops the queued large values one by one and retries after
/// each.
pub(crate) fn retry_after_drops(mut attempt: impl FnMut() -> bool) -> bool {
    if attempt() {
        return true;
    }
    let queued = queue().clone();
    queued.into_iter().any(|deferred| {
        deferred.run();
        attempt()
    })
}

impl DeferredDrop {
    fn run(self: &Arc<Self>) {
        let mut value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = value.take() {
            drop(value);
            queue().retain(|other| !Arc::ptr_eq(self, other));
        }
    }
}

fn queue() -> MutexGuard<'static, Vec<Arc<DeferredDrop>>> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}
