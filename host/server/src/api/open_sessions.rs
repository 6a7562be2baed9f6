//! The open sessions, those of the API and attached ones, and to whom they belong.

use super::problem::ApiError;
use crate::journal::Timestamp;
use crate::role::Role;
use palisade::Session;
use palisade::internal::Owed;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of closed sessions whose owner is remembered, so that it can read their last events.
const REMEMBERED: usize = 4096;

/// To whom a session belongs. Operators share theirs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Operators,
    Client(Arc<str>),
}

impl From<&Role> for Owner {
    fn from(role: &Role) -> Self {
        role.client().map_or(Self::Operators, |id| Self::Client(id.clone()))
    }
}

/// An open session.
#[derive(Debug, Clone)]
pub(crate) struct OpenSession {
    pub(crate) id: Arc<str>,
    pub(crate) owner: Owner,
    pub(crate) session: Session,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) opened_at: Timestamp,
    /// Counts the sessions, for lists.
    pub(crate) number: u64,
    /// The way by which its calls come.
    pub(crate) origin: &'static str,
    /// How the client names itself.
    pub(crate) title: Option<Arc<str>>,
    /// The revision of the client's protocol.
    pub(crate) protocol: Option<Arc<str>>,
    /// Ends an attached session. `None`: the API has opened it.
    pub(crate) end: Option<End>,
    /// The memory of a session that the API has opened, for as long as it is open.
    #[expect(dead_code, reason = "counts for as long as it lives")]
    pub(crate) memory: Option<Arc<Owed>>,
}

/// Ends an attached session.
#[derive(Clone)]
pub(crate) struct End(Arc<dyn Fn() + Send + Sync>);

impl End {
    pub(crate) fn new(end: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(end))
    }

    pub(super) fn call(&self) {
        (self.0)();
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("End")
    }
}

impl OpenSession {
    /// Returns the id of the client, or `None` for a session of operators.
    pub(crate) fn client(&self) -> Option<Arc<str>> {
        match &self.owner {
            Owner::Operators => None,
            Owner::Client(id) => Some(id.clone()),
        }
    }

    /// Returns the path of the workspace.
    pub(crate) fn workspace(&self) -> String {
        self.session.workspace().root().display().to_string()
    }

    /// Returns true if the session belongs to the sender.
    pub(super) fn is_of(&self, role: &Role) -> bool {
        self.owner == Owner::from(role)
    }
}

/// The table of the open sessions. The end of a session is recorded before the lock is released.
/// So a server that shuts down has the record of every session that is no longer in the table.
pub(super) struct OpenSessions {
    per_owner: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    opened: u64,
    open: HashMap<Arc<str>, OpenSession>,
    /// The last closed sessions, the oldest first.
    closed: VecDeque<(Arc<str>, Owner)>,
}

impl OpenSessions {
    pub(super) fn new(per_owner: usize) -> Self {
        Self { per_owner, table: Mutex::default() }
    }

    /// Opens a session under an id that is free, and that no session of another owner had lately.
    pub(super) fn open(
        &self,
        id: Arc<str>,
        owner: &Owner,
        make: impl FnOnce(u64) -> OpenSession,
    ) -> Result<OpenSession, ApiError> {
        let mut table = self.table();
        let others = |(closed, by): &(Arc<str>, Owner)| *closed == id && by != owner;
        if table.open.contains_key(&id) || table.closed.iter().any(others) {
            return Err(ApiError::SessionExists);
        }
        let counts = |open: &&OpenSession| open.owner == *owner && open.end.is_none();
        if table.open.values().filter(counts).count() >= self.per_owner {
            return Err(ApiError::TooManySessions { limit: self.per_owner });
        }
        table.opened += 1;
        let open = make(table.opened);
        table.open.insert(id, open.clone());
        Ok(open)
    }

    /// Adds a session that something else has opened, and bounds, and records it.
    pub(super) fn attach(
        &self,
        make: impl FnOnce(u64) -> OpenSession,
        record: impl FnOnce(&OpenSession),
    ) {
        let mut table = self.table();
        table.opened += 1;
        let open = make(table.opened);
        record(&open);
        table.open.insert(open.id.clone(), open);
    }

    /// Removes an attached session, and records that. Does nothing if there is none of this id.
    pub(super) fn detach(&self, id: &str, record: impl FnOnce()) {
        let mut table = self.table();
        if table.open.get(id).is_some_and(|open| open.end.is_some()) {
            table.open.remove(id);
            record();
        }
    }

    /// Returns what ends an attached session. `None` if there is none of this id.
    pub(super) fn end_of(&self, id: &str) -> Option<End> {
        self.table().open.get(id)?.end.clone()
    }

    /// Returns the open session of this id if the API has opened it and the sender may see it. The
    /// calls of an attached session come another way.
    pub(super) fn find_callable(&self, role: &Role, id: &str) -> Option<OpenSession> {
        self.find(role, id).filter(|open| open.end.is_none())
    }

    /// Returns the open session of this id, if the sender may see it.
    pub(super) fn find(&self, role: &Role, id: &str) -> Option<OpenSession> {
        let open = self.table().open.get(id).cloned();
        open.filter(|open| role.is_operator() || open.is_of(role))
    }

    /// Closes a session and records that: its calls are cancelled, and its id is free for the same
    /// owner. Returns false if there is none of this id.
    pub(super) fn close(&self, id: &str, record: impl FnOnce()) -> bool {
        let mut table = self.table();
        let Some(open) = table.open.remove(id) else { return false };
        record();
        if table.closed.len() >= REMEMBERED {
            table.closed.pop_front();
        }
        table.closed.push_back((open.id, open.owner));
        drop(table);
        open.session.close();
        true
    }

    /// Returns all open sessions, the newest first.
    pub(super) fn all(&self) -> Vec<OpenSession> {
        let mut all: Vec<_> = self.table().open.values().cloned().collect();
        all.sort_by_key(|open| std::cmp::Reverse(open.number));
        all
    }

    pub(super) fn count(&self) -> usize {
        self.table().open.len()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test whose preparation fails has failed")]
    use super::*;
    use palisade::Host;
    use palisade::plugins::Shipped;
    use std::cell::Cell;

    #[test]
    fn end_of_a_session_is_recorded_before_others_miss_it_and_once() {
        let workspace = tempfile::tempdir().unwrap();
        let host = Host::builder().workspace(workspace.path()).shipped(Shipped::LeftOut);
        let host = host.build().unwrap();
        let open = |id: &str, number, end| OpenSession {
            id: id.into(),
            owner: Owner::Operators,
            session: host.session().clone(),
            tools: None,
            opened_at: Timestamp::now(),
            number,
            origin: "test",
            title: None,
            protocol: None,
            end,
            memory: None,
        };
        let sessions = OpenSessions::new(8);
        let recorded = Cell::new(0);
        let record = || {
            assert!(sessions.table.try_lock().is_err(), "another sees the table before the record");
            recorded.set(recorded.get() + 1);
        };

        let end = End::new(|| {});
        sessions.attach(|number| open("attached", number, Some(end)), |_| record());
        sessions.detach("attached", record);
        sessions.detach("attached", record);
        assert_eq!(recorded.get(), 2);

        let own =
            sessions.open("own".into(), &Owner::Operators, |number| open("own", number, None));
        assert!(own.is_ok());
        assert!(sessions.close("own", record));
        assert!(!sessions.close("own", record));
        assert_eq!(recorded.get(), 3);
    }
}
