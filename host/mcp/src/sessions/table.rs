//! The table of sessions: their limits, owners and expiry. No lock is held across an await point.

use super::error::SessionRejection;
use super::session::{Sender, Session};
use crate::http::{Caller, LOG_TARGET};
use rmcp::transport::streamable_http_server::SessionId;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of sessions in use: those with a message after `initialize`. A caller may
/// have more of them only while it has no more than are free, so that it gets at most half.
const MAX_IN_USE: usize = 128;
/// The maximum number of sessions not in use yet. Those of the caller with the most evict each
/// other, so that a caller that opens many sessions locks out no other one.
const MAX_BEGUN: usize = 256;
/// The idle timeout of a session without in-flight requests and listeners.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// The minimum idle time before a session in use can be evicted for another.
const MIN_IDLE: Duration = Duration::from_secs(10);
/// The session table. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<HashMap<SessionId, Arc<Session>>>>);

impl Sessions {
    /// Adds a session that begins, evicting the oldest one that has only begun above the limit.
    pub(super) fn admit(
        &self,
        id: SessionId,
        session: Arc<Session>,
    ) -> Result<(), SessionRejection> {
        let mut all = self.all();
        // Reject the client now if it could not use the session anyway.
        let _ = session_to_evict(&all, session.sender())?;
        let begun = || all.iter().filter(|(_, session)| !session.is_in_use());
        let oldest = if begun().count() < MAX_BEGUN { None } else { oldest_of_most(begun()) };
        let evicted = oldest.and_then(|id| all.remove(&id));
        all.insert(id, session);
        drop(all);
        evicted.inspect(|session| session.end());
        Ok(())
    }

    /// Returns true if the caller has a session with this id.
    pub(crate) fn has(&self, id: &str, caller: Caller) -> bool {
        self.find(id, caller).is_ok()
    }

    /// Returns the caller's session with this id.
    pub(super) fn find(&self, id: &str, caller: Caller) -> Result<Arc<Session>, SessionRejection> {
        let all = self.all();
        let session = all
            .get(id)
            .filter(|session| session.caller() == caller)
            .ok_or(SessionRejection::Gone)?;
        session.touch();
        Ok(session.clone())
    }

    /// Returns the session and marks it as in use, evicting an idle one if necessary.
    pub(super) fn find_for_use(
        &self,
        id: &str,
        caller: Caller,
    ) -> Result<Arc<Session>, SessionRejection> {
        let session = self.find(id, caller)?;
        if !session.is_in_use() {
            let mut all = self.all();
            let evicted = session_to_evict(&all, session.sender())?.and_then(|id| all.remove(&id));
            session.mark_in_use();
            drop(all);
            evicted.inspect(|session| session.end());
        }
        Ok(session)
    }

    /// Ends the session once it has been idle for [`IDLE_TIMEOUT`].
    pub(super) async fn expire_when_idle(self, id: SessionId, session: Arc<Session>) {
        loop {
            let wait = IDLE_TIMEOUT.saturating_sub(
                session.idle_since().map_or(Duration::ZERO, |since| since.elapsed()),
            );
            tokio::select! {
                () = session.ended() => break,
                () = tokio::time::sleep(wait) => {}
            }
            // Check and remove under one lock, so that it cannot race with `find`.
            let mut all = self.all();
            if session.idle_since().is_some_and(|since| since.elapsed() >= IDLE_TIMEOUT) {
                all.remove(&id);
                break;
            }
        }
        session.end();
        self.all().remove(&id);
        tracing::debug!(target: LOG_TARGET, "a session over HTTP is over");
    }

    /// Removes a session.
    pub(super) fn remove(&self, id: &str) {
        self.all().remove(id);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the limit of sessions in use, for one more of this sender. Returns the session to evict,
/// if one is necessary: of the sender itself, or of the one with the most if the sender has none.
fn session_to_evict(
    all: &HashMap<SessionId, Arc<Session>>,
    sender: Sender,
) -> Result<Option<SessionId>, SessionRejection> {
    let in_use = || all.iter().filter(|(_, session)| session.is_in_use());
    let own = in_use().filter(|(_, session)| session.sender() == sender).count();
    let free = MAX_IN_USE.saturating_sub(in_use().count());
    if free > 0 && own < (free - 1).max(1) {
        return Ok(None);
    }
    let is_left =
        |session: &Session| session.idle_since().is_some_and(|since| since.elapsed() >= MIN_IDLE);
    let left = in_use().filter(|(_, session)| is_left(session));
    let evicted = match own {
        0 => oldest_of_most(left),
        _ => oldest_of_most(left.filter(|(_, session)| session.sender() == sender)),
    };
    evicted.map(Some).ok_or(SessionRejection::Full)
}

/// Returns the session with the earliest activity of the sender that has the most of these.
fn oldest_of_most<'a>(
    sessions: impl Iterator<Item = (&'a SessionId, &'a Arc<Session>)> + Clone,
) -> Option<SessionId> {
    let mut counts: HashMap<Sender, usize> = HashMap::new();
    for (_, session) in sessions.clone() {
        *counts.entry(session.sender()).or_default() += 1;
    }
    let count = |session: &Session| counts.get(&session.sender()).copied();
    let evicted =
        sessions.max_by_key(|(_, session)| (count(session), Reverse(session.last_activity())));
    evicted.map(|(id, _)| id.clone())
}
