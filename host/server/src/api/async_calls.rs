//! The calls whose callers do not wait (`Prefer: respond-async`), and their results.

use super::answers::{Answer, KeptAnswer};
use super::kept::{Bounds, Kept};
use super::open_sessions::Owner;
use super::problem::ApiError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of kept results.
const RESULTS: usize = 1024;
/// The size of all kept results, in bytes.
const BYTES: usize = 64 << 20;

type Key = (Arc<str>, Arc<str>);

#[derive(Default, Clone)]
pub(super) struct AsyncCalls(Arc<Mutex<Table>>);

struct Table {
    /// The calls by session and id; without a result while they run.
    calls: HashMap<Key, Call>,
    /// The ended calls.
    ended: Kept<Key>,
}

struct Call {
    owner: Owner,
    result: Option<Arc<KeptAnswer>>,
}

impl Default for Table {
    fn default() -> Self {
        let most = Bounds { answers: RESULTS, bytes: BYTES };
        Self { calls: HashMap::new(), ended: Kept::new(most) }
    }
}

/// A call that runs. Dropping it without a result forgets the call.
pub(super) struct Pending {
    calls: AsyncCalls,
    owner: Owner,
    key: Key,
    is_ended: bool,
}

/// The state of a call.
pub(super) enum Progress {
    Running,
    Ended(Arc<KeptAnswer>),
}

impl AsyncCalls {
    /// Begins a call. A result that an earlier call of this id left is forgotten.
    pub(super) fn begin(
        &self,
        session: &Arc<str>,
        owner: &Owner,
        call: &str,
    ) -> Result<Pending, ApiError> {
        let key: Key = (session.clone(), call.into());
        let mut table = self.table();
        match table.calls.get(&key) {
            Some(Call { result: None, .. }) => return Err(ApiError::CallExists),
            Some(Call { result: Some(_), .. }) => table.forget(&key),
            None => {}
        }
        table.calls.insert(key.clone(), Call { owner: owner.clone(), result: None });
        drop(table);
        Ok(Pending { calls: self.clone(), owner: owner.clone(), key, is_ended: false })
    }

    pub(super) fn progress(&self, session: &Arc<str>, call: &str) -> Option<Progress> {
        let key: Key = (session.clone(), call.into());
        match &self.table().calls.get(&key)?.result {
            None => Some(Progress::Running),
            Some(answer) => Some(Progress::Ended(answer.clone())),
        }
    }

    /// Forgets the results of a session.
    pub(super) fn forget(&self, session: &str) {
        let mut table = self.table();
        let ended = table.calls.iter().filter(|(_, call)| call.result.is_some());
        let of_session: Vec<Key> =
            ended.map(|(key, _)| key).filter(|(of, _)| **of == *session).cloned().collect();
        of_session.iter().for_each(|key| table.forget(key));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget(&mut self, key: &Key) {
        if let Some(call) = self.calls.remove(key) {
            self.ended.remove(&call.owner, key);
        }
    }
}

impl Pending {
    /// Keeps the result of the call.
    pub(super) fn end(mut self, answer: &Answer) {
        self.is_ended = true;
        let mut table = self.calls.table();
        let call = Call { owner: self.owner.clone(), result: Some(Arc::new(answer.to_keep())) };
        table.calls.insert(self.key.clone(), call);
        for key in table.ended.add(&self.owner, self.key.clone(), answer.body.len()) {
            table.calls.remove(&key);
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
