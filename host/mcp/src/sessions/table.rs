//! The table of sessions: their limits, owners and expiry. No lock is held across an await point.

use super::error::SessionRejection;
use super::session::Session;
use crate::http::{Caller, LOG_TARGET};
use rmcp::transport::streamable_http_server::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of sessions in use: those with a message after `initialize`.
const MAX_IN_USE: usize = 64;
/// The maximum number of sessions not in use yet. They evict each other, so that a client that
/// opens many sessions locks out no other client.
const MAX_BEGUN: usize = 256;
/// The idle timeout of a session without in-flight requests and listeners.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// The minimum idle time before a session in use can be evicted for another.
const MIN_IDLE: Duration = Duration::from_secs(10);
/// The session table. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<HashMap<SessionId, Arc<Session>>>>);

impl Sessions {
    /// Adds a session that begins, evicting the oldest of its kind above the limit.
    pub(super) fn admit(
        &self,
        id: SessionId,
        session: Arc<Session>,
    ) -> Result<(), SessionRejection> {
        let mut all = self.all();
        // Reject the client now if it could not use the session anyway.
        let _ = session_to_evict(&all)?;
        let begun = || all.iter().filter(|(_, session)| !session.is_in_use());
        let oldest = if begun().count() < MAX_BEGUN {
            None
        } else {
            begun().min_by_key(|(_, session)| session.last_activity())
        };
        let evicted = oldest.map(|(id, _)| id.clone()).and_then(|id| all.remove(&id));
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
            let evicted = session_to_evict(&all)?.and_then(|id| all.remove(&id));
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

/// Checks the limit of sessions in use. Returns the session to evict, if one is necessary.
fn session_to_evict(
    all: &HashMap<SessionId, Arc<Session>>,
) -> Result<Option<SessionId>, SessionRejection> {
    let in_use = || all.iter().filter(|(_, session)| session.is_in_use());
    if in_use().count() < MAX_IN_USE {
        return Ok(None);
    }
    let idle = in_use().filter_map(|(id, session)| Some((session.idle_since()?, id)));
    let longest = idle.min().filter(|(since, _)| since.elapsed() >= MIN_IDLE);
    longest.map(|(_, id)| Some(id.clone())).ok_or(SessionRejection::Full)
}
