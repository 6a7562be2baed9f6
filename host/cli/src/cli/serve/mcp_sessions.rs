//! The sessions of MCP clients, as sessions of the API: recorded, listed, shown and closed like
//! those that the API opens.

use palisade_mcp::{ClientSession, SessionObserver, TransportKind};
use palisade_server::{AttachedSession, Server};

/// Tells the API of the sessions of MCP clients.
pub(super) struct McpSessions(Server);

impl McpSessions {
    pub(super) fn new(api: Server) -> Self {
        Self(api)
    }
}

impl SessionObserver for McpSessions {
    fn opened(&self, session: &ClientSession) {
        self.0.attach(attached(session));
    }

    fn closed(&self, session: &ClientSession) {
        self.0.detach(session.id());
    }
}

fn attached(session: &ClientSession) -> AttachedSession {
    let origin = match session.transport() {
        TransportKind::Stdio => "mcp-stdio",
        TransportKind::Http => "mcp-http",
    };
    let ended = session.clone();
    let attached = AttachedSession::new(session.session().clone(), origin, move || ended.end());
    let Some(who) = session.introduction() else { return attached };
    let parts = [who.name.as_deref(), who.version.as_deref()];
    let title = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let attached = attached.title(&title);
    let attached = who.client.iter().fold(attached, |it, id| it.client(id.clone()));
    who.protocol.iter().fold(attached, |it, revision| it.protocol(revision))
}
