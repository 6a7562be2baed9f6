//! Drops large values after the response, in their owner's turns: a guest's memory, a JSON tree.
//!
//! Their memory stays counted until they are gone, so an allocation that fails drops the queued
//! values first.

use super::super::share::Share;
use super::start;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value to be dropped once, by the first thread that locks it. Other threads wait for the drop.
struct Leaving(Mutex<Option<Box<dyn Send>>>);

/// The queued values of the process.
static LEAVING: Mutex<Vec<Arc<Leaving>>> = Mutex::new(Vec::new());

/// Serialises the tests that inspect the queue, because a test that runs out of memory empties it.
#[cfg(test)]
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

/// Queues a large value to be dropped in a turn on another thread, and returns at once.
pub(crate) fn drop_away(turns: &Arc<Share>, value: impl Send + 'static) {
    let leaving = Arc::new(Leaving(Mutex::new(Some(Box::new(value)))));
    all().push(leaving.clone());
    turns.take_then(1, move |turn| {
        start(Box::new(move || {
            leaving.leave();
            drop(turn);
        }));
    });
}

/// Attempts a reservation. On failure it drops the queued large values one by one and retries after
/// each.
pub(crate) fn making_room(mut attempt: impl FnMut() -> bool) -> bool {
    if attempt() {
        return true;
    }
    let leaving = all().clone();
    leaving.into_iter().any(|leaving| {
        leaving.leave();
        attempt()
    })
}

impl Leaving {
    fn leave(self: &Arc<Self>) {
        let mut value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = value.take() {
            drop(value);
            all().retain(|other| !Arc::ptr_eq(self, other));
        }
    }
}

fn all() -> MutexGuard<'static, Vec<Arc<Leaving>>> {
    LEAVING.lock().unwrap_or_else(PoisonError::into_inner)
}
