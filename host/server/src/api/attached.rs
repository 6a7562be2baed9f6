//! Sessions that something else than the API has opened, such as an MCP server: they are recorded,
//! listed and shown like others, and can be cancelled and closed. Their calls come their own way.

use super::open_sessions::{End, OpenSession, Owner};
use super::state::Shared;
use crate::journal::Timestamp;
use palisade::Session;
use palisade::tool::text::elided;
use std::fmt;
use std::sync::Arc;

/// The longest text of a client or a protocol, in characters.
const SHOWN: usize = 200;

/// A session that something else than the API has opened. Its id tells it apart from all others,
/// of this run and of earlier ones.
pub struct AttachedSession {
    session: Session,
    origin: &'static str,
    client: Option<Arc<str>>,
    title: Option<String>,
    protocol: Option<String>,
    end: End,
}

impl fmt::Debug for AttachedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttachedSession")
            .field("session", &self.session)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl AttachedSession {
    /// Creates a session whose calls come by this way, such as `mcp-http`. `end` ends it when
    /// somebody closes it in the console or through the API.
    #[must_use]
    pub fn new(
        session: Session,
        origin: &'static str,
        end: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self { session, origin, client: None, title: None, protocol: None, end: End::new(end) }
    }

    /// Sets the [client](crate::Role::Client) that the session belongs to. Without one, only
    /// operators see it.
    #[must_use]
    pub fn client(mut self, id: impl Into<Arc<str>>) -> Self {
        self.client = Some(id.into());
        self
    }

    /// Sets how the client names itself. Any text is accepted: a long one is cut, and what could
    /// deceive a reader is escaped.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        let title = title.trim();
        self.title = (!title.is_empty()).then(|| elided(title, SHOWN));
        self
    }

    /// Sets the revision of the client's protocol. Any text is accepted.
    #[must_use]
    pub fn protocol(mut self, revision: &str) -> Self {
        self.protocol = Some(elided(revision, SHOWN));
        self
    }
}

impl Shared {
    /// Takes a session. Its record is queued before anything else of it.
    pub(crate) fn attach(&self, attached: AttachedSession) {
        let AttachedSession { session, origin, client, title, protocol, end } = attached;
        let Some(id) = session.id().cloned() else { return };
        let make = |number| OpenSession {
            memory: None,
            id,
            owner: client.map_or(Owner::Operators, Owner::Client),
            session,
            tools: None,
            opened_at: Timestamp::now(),
            number,
            origin,
            title: title.map(Into::into),
            protocol: protocol.map(Into::into),
            end: Some(end),
        };
        self.sessions.attach(make, |open| self.record_attached(open));
    }

    /// Records the end of an attached session, and forgets it.
    pub(crate) fn detach(&self, id: &str) {
        self.sessions.detach(id, || self.session_closed(id));
    }

    /// Ends an attached session. Returns false if there is none of this id.
    pub(super) fn end_attached(&self, id: &str) -> bool {
        let Some(end) = self.sessions.end_of(id) else { return false };
        // Outside of the table's lock, since the end is reported back.
        end.call();
        self.detach(id);
        true
    }

    /// Closes all sessions, and records that.
    pub(crate) fn close_sessions(&self) {
        for open in self.sessions.all() {
            if !self.end_attached(&open.id) {
                self.sessions.close(&open.id, || self.session_closed(&open.id));
            }
        }
    }
}
