//! The sessions of a host, created by it and found by their ids.

use super::Host;
use crate::session::{Session, SessionBuilder, cut_id};

impl Host {
    /// Returns a builder for a session with the caller's id, in the host's workspace and with its
    /// policy, lists of tools and limits, each of which the builder can replace. The session is
    /// found by its id as long as someone holds it.
    #[must_use]
    pub fn new_session(&self, id: &str) -> SessionBuilder {
        self.defaults
            .begin(self.workspace(), &self.dispatcher.floor)
            .id(id)
            .found_in(self.sessions.clone())
    }

    /// Returns the sessions of this id that [`new_session`](Self::new_session) has made and someone
    /// still holds. There may be several, because callers choose the ids.
    #[must_use]
    pub fn sessions(&self, id: &str) -> Vec<Session> {
        self.sessions.of(&cut_id(id))
    }

    /// Cancels all calls in flight of the [`sessions`](Self::sessions) of this id and returns their
    /// number. Later calls are not affected.
    pub fn cancel_session(&self, id: &str) -> usize {
        self.sessions(id).iter().map(Session::cancel_all).sum()
    }
}
