//! The sessions of a host by their ids, for a caller that has only the id.

use super::{Inner, Session};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The live sessions of a host. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct SessionsById(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// The number of the next session.
    next: u64,
    /// Callers choose the ids, so several sessions may share one.
    sessions: HashMap<Arc<str>, Vec<(u64, Weak<Inner>)>>,
}

/// The place of a session in the table. Dropping it removes the session.
pub(super) struct Place {
    table: SessionsById,
    id: Arc<str>,
    number: u64,
}

impl SessionsById {
    /// Returns the sessions of this id, in the order of their creation.
    pub(crate) fn of(&self, id: &str) -> Vec<Session> {
        let table = self.table();
        let known = table.sessions.get(id).into_iter().flatten();
        known.filter_map(|(_, session)| session.upgrade().map(Session)).collect()
    }

    /// Takes a place for a session of this id.
    pub(super) fn place(&self, id: Arc<str>) -> Place {
        let mut table = self.table();
        table.next += 1;
        Place { table: self.clone(), id, number: table.next }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Enters the session that holds this place.
    pub(super) fn enter(&self, session: &Arc<Inner>) {
        let entry = (self.number, Arc::downgrade(session));
        self.table.table().sessions.entry(self.id.clone()).or_default().push(entry);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.table.table();
        let Some(known) = table.sessions.get_mut(&self.id) else { return };
        known.retain(|(number, _)| *number != self.number);
        if known.is_empty() {
            table.sessions.remove(&self.id);
        }
    }
}

impl fmt::Debug for SessionsById {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionsById").finish_non_exhaustive()
    }
}
