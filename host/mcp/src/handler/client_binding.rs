//! Binds requests to their client.

use crate::clients::client::Client;
use crate::clients::client_registry::ClientIdentity;
use crate::clients::client_session::{Introduction, TransportKind};
use crate::http::Role;
use crate::messages::extensions::{address, caller, role};
use crate::protocol::lifecycle::Lifecycle;
use crate::sessions::SessionRef;
use crate::state::ServerState;
use palisade::tool::Digest;
use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use std::sync::{Arc, OnceLock};

/// The client that requests belong to.
pub(super) enum ClientBinding {
    /// The client of a connection, for its whole lifetime.
    Connection(Arc<Client>),
    /// The client of HTTP requests: set by the first request of a stateful session. A stateless
    /// request identifies its client by itself.
    Http(OnceLock<Arc<Client>>),
}

impl ClientBinding {
    /// Returns the client of a request. Its first request introduces it.
    pub(super) fn of_request(
        &self,
        server: &ServerState,
        context: &RequestContext<RoleServer>,
    ) -> Arc<Client> {
        let client = self.find(server, context);
        client.introduce(|| introduction(context));
        client
    }

    fn find(&self, server: &ServerState, context: &RequestContext<RoleServer>) -> Arc<Client> {
        let session_client = match self {
            Self::Connection(client) => return client.clone(),
            Self::Http(client) => client,
        };
        match Lifecycle::of_request(context) {
            Lifecycle::Stateful => {
                session_client.get_or_init(|| client_of_session(server, context)).clone()
            }
            Lifecycle::Stateless => {
                let info = context.meta.client_info();
                let sender = (caller(&context.extensions), address(&context.extensions));
                let identity = ClientIdentity::new(sender, info.as_ref());
                server.clients.get_or_add(&server.sessions, identity)
            }
        }
    }

    /// Returns the client of a subscription: that of the connection or session, and otherwise a new
    /// one, since `rmcp` does not tell whose request it is.
    pub(super) fn of_subscription(&self, server: &ServerState) -> Arc<Client> {
        match self {
            Self::Connection(client) => client.clone(),
            Self::Http(client) => client.get_or_init(|| http_client(server)).clone(),
        }
    }
}

fn http_client(server: &ServerState) -> Arc<Client> {
    Arc::new(Client::new(&server.sessions, TransportKind::Http))
}

/// Returns what is known of the client of a request. The operator's own sessions belong to no
/// client.
fn introduction(context: &RequestContext<RoleServer>) -> Introduction {
    let is_operator = role(&context.extensions) == Some(Role::Operator);
    let client = caller(&context.extensions).filter(|_| !is_operator).map(|caller| caller.id());
    let (info, protocol) = match Lifecycle::of_request(context) {
        Lifecycle::Stateful => (context.client_info(), context.protocol_version()),
        // `rmcp` would substitute its own name if a stateless request has none.
        Lifecycle::Stateless => (context.meta.client_info(), context.meta.protocol_version()),
    };
    let protocol = protocol.as_ref().map(ProtocolVersion::as_str);
    let info = info.as_ref().map(|info| (info.name.as_str(), info.version.as_str()));
    Introduction::new(client, info, protocol)
}

/// Returns the caller of a request, to whose shares its session belongs.
fn caller_of(context: &RequestContext<RoleServer>) -> Option<Digest> {
    Some(caller(&context.extensions)?.at(address(&context.extensions)?))
}

/// Creates the client of a session, whose calls end with the session or the server. If somebody
/// else ends its calls, the session ends as well.
fn client_of_session(server: &ServerState, context: &RequestContext<RoleServer>) -> Arc<Client> {
    let of_caller = |caller| Arc::new(Client::of_caller(&server.sessions, caller));
    let client = caller_of(context).map_or_else(|| http_client(server), of_caller);
    if let Some(session) = context.extensions.get::<SessionRef>() {
        let ended = session.ended.clone();
        let shutdown = server.shutdown.clone();
        let over = client.end_token();
        let client = Arc::downgrade(&client);
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = shutdown.cancelled() => {}
                () = over.cancelled() => ended.cancel(),
            }
            if let Some(client) = client.upgrade() {
                client.disconnect();
            }
        });
    }
    client
}
