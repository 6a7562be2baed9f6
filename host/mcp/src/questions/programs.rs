//! The programs that wait for an answer, with the results of the calls that they have made. They
//! stay in the server, for the time that a question may take.

use palisade::internal::ProgramRecord;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// The most programs that wait. A caller has at most as many as are free, so that none takes all
/// of them.
const MOST: usize = 64;

/// The random id of a program that waits. Each question has a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ProgramId(u128);

/// The programs that wait.
#[derive(Debug, Default)]
pub(crate) struct ProgramStore(Mutex<HashMap<ProgramId, Waiting>>);

/// The places of one caller: of a token at an address, or of a connection. Not of the name that a
/// client claims, of which it could claim any number.
#[derive(Debug, Clone)]
pub(crate) struct ProgramPlaces {
    /// The programs that wait.
    pub(crate) store: Arc<ProgramStore>,
    /// The caller.
    pub(crate) caller: String,
}

impl ProgramPlaces {
    /// Returns true if one more program of the caller may wait.
    pub(crate) fn has_room(&self) -> bool {
        has_room(&mut self.store.programs(), &self.caller)
    }

    /// Keeps the calls of a program, for `lifetime`. `None` if too many programs wait, or without
    /// random numbers from the system.
    pub(crate) fn keep(&self, record: Arc<ProgramRecord>, lifetime: Duration) -> Option<ProgramId> {
        let id = self.store.keep(&self.caller, record, lifetime)?;
        let store = Arc::downgrade(&self.store);
        let expiry = tokio::spawn(async move {
            sleep(lifetime + Duration::from_millis(1)).await;
            if let Some(store) = store.upgrade() {
                store.programs().remove(&id);
            }
        });
        if let Some(waiting) = self.store.programs().get_mut(&id) {
            waiting.expiry = Some(Expiry(expiry.abort_handle()));
        }
        Some(id)
    }
}

#[derive(Debug)]
struct Waiting {
    caller: String,
    until: Instant,
    record: Arc<ProgramRecord>,
    expiry: Option<Expiry>,
}

/// The task that removes a program when its time is over; aborted on drop.
#[derive(Debug)]
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ProgramStore {
    fn keep(
        &self,
        caller: &str,
        record: Arc<ProgramRecord>,
        lifetime: Duration,
    ) -> Option<ProgramId> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let id = ProgramId(u128::from_ne_bytes(bytes));
        let mut programs = self.programs();
        if !has_room(&mut programs, caller) {
            return None;
        }
        let until = Instant::now() + lifetime;
        let waiting = Waiting { caller: caller.to_owned(), until, record, expiry: None };
        programs.insert(id, waiting);
        Some(id)
    }

    /// Takes out the calls of a program, unless the time for its answer is over.
    pub(crate) fn take(&self, id: ProgramId) -> Option<Arc<ProgramRecord>> {
        let waiting = self.programs().remove(&id)?;
        (waiting.until >= Instant::now()).then_some(waiting.record)
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<ProgramId, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_room(programs: &mut HashMap<ProgramId, Waiting>, caller: &str) -> bool {
    let now = Instant::now();
    programs.retain(|_, waiting| waiting.until >= now);
    let of_caller = programs.values().filter(|waiting| waiting.caller == caller).count();
    of_caller < MOST - programs.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const LIFETIME: Duration = Duration::from_secs(300);

    fn keep(store: &ProgramStore, caller: &str) -> Option<ProgramId> {
        store.keep(caller, Arc::default(), LIFETIME)
    }

    #[tokio::test(start_paused = true)]
    async fn program_is_taken_once() {
        let store = ProgramStore::default();
        let id = keep(&store, "caller").unwrap();
        assert!(store.take(id).is_some());
        assert!(store.take(id).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn program_waits_to_the_end_of_its_time() {
        let store = ProgramStore::default();
        let ids = [keep(&store, "caller"), keep(&store, "caller")].map(Option::unwrap);
        tokio::time::advance(LIFETIME).await;
        assert!(store.take(ids[0]).is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(store.take(ids[1]).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn program_is_forgotten_at_the_end_of_its_time() {
        let places = ProgramPlaces { store: Arc::default(), caller: "caller".to_owned() };
        let record = Arc::<ProgramRecord>::default();
        let _id = places.keep(record.clone(), LIFETIME).unwrap();
        assert_eq!(Arc::strong_count(&record), 2);
        sleep(LIFETIME + Duration::from_millis(2)).await;
        assert_eq!(Arc::strong_count(&record), 1, "its results take memory no more");
    }

    #[tokio::test(start_paused = true)]
    async fn no_caller_takes_all_the_room() {
        let store = ProgramStore::default();
        let of_one = std::iter::from_fn(|| keep(&store, "one")).count();
        assert_eq!(of_one, MOST / 2);
        assert!(keep(&store, "another").is_some());
        tokio::time::advance(LIFETIME + Duration::from_millis(1)).await;
        assert!(keep(&store, "one").is_some(), "programs that are over make room");
    }
}
