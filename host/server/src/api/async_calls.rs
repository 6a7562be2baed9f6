//! The calls whose callers do not wait (`Prefer: respond-async`), and their results.

use super::answers::Answer;
use super::problem::ApiError;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of kept results.
const RESULTS: usize = 1024;
/// The size of all kept results, in bytes.
const BYTES: usize = 64 << 20;

type Key = (Arc<str>, Arc<str>);

#[derive(Default, Clone)]
pub(super) struct AsyncCalls(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// The calls by session and id; without a result while they run.
    calls: HashMap<Key, Option<Answer>>,
    /// The ended calls, the oldest first.
    ended: VecDeque<Key>,
    bytes: usize,
}

/// A call that runs. Dropping it without a result forgets the call.
pub(super) struct Pending {
    calls: AsyncCalls,
    key: Key,
    is_ended: bool,
}

/// The state of a call.
pub(super) enum Progress {
    Running,
    Ended(Answer),
}

impl AsyncCalls {
    /// Begins a call. A result that an earlier call of this id left is forgotten.
    pub(super) fn begin(&self, session: &Arc<str>, call: &str) -> Result<Pending, ApiError> {
        let key: Key = (session.clone(), call.into());
        let mut table = self.table();
        match table.calls.get(&key) {
            Some(None) => return Err(ApiError::CallExists),
            Some(Some(_)) => table.forget(&key),
            None => {}
        }
        table.calls.insert(key.clone(), None);
        drop(table);
        Ok(Pending { calls: self.clone(), key, is_ended: false })
    }

    pub(super) fn progress(&self, session: &Arc<str>, call: &str) -> Option<Progress> {
        let key: Key = (session.clone(), call.into());
        match self.table().calls.get(&key)? {
            None => Some(Progress::Running),
            Some(answer) => Some(Progress::Ended(answer.clone())),
        }
    }

    /// Forgets the results of a session.
    pub(super) fn forget(&self, session: &str) {
        let mut table = self.table();
        let of_session: Vec<Key> =
            table.ended.iter().filter(|(of, _)| **of == *session).cloned().collect();
        of_session.iter().for_each(|key| table.forget(key));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget(&mut self, key: &Key) {
        self.ended.retain(|ended| ended != key);
        let bytes = self.calls.remove(key).flatten().map_or(0, |answer| answer.body.len());
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Pending {
    /// Keeps the result of the call.
    pub(super) fn end(mut self, answer: &Answer) {
        self.is_ended = true;
        let mut table = self.calls.table();
        table.bytes += answer.body.len();
        table.calls.insert(self.key.clone(), Some(answer.clone()));
        table.ended.push_back(self.key.clone());
        while table.ended.len() > RESULTS || table.bytes > BYTES {
            let Some(oldest) = table.ended.front().cloned() else { return };
            table.forget(&oldest);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_ended {
            self.calls.table().calls.remove(&self.key);
        }
    }
}
