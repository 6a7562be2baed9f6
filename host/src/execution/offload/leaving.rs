//! Large values that are dropped after the answer, in turns of their owner: the memory of a guest, a tree of JSON.
//!
//! What is in them stays counted until they are gone. So work that finds no memory drops first what waits here.

use super::super::share::Share;
use super::start;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value that is dropped once, by whichever thread comes first. The others wait for it.
struct Leaving(Mutex<Option<Box<dyn Send>>>);

/// Those of the process.
static LEAVING: Mutex<Vec<Arc<Leaving>>> = Mutex::new(Vec::new());

/// Held by tests that look at what waits: a test that finds no memory clears it for all.
#[cfg(test)]
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

/// Drops a large value in a turn, on a thread of the host's own. Returns at once.
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

/// Tries something that needs memory. Where it fails, it is tried again after each large value that is on its way out
/// has gone.
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
