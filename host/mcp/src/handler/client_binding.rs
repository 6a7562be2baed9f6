//! The client that requests belong to.

use crate::clients::client::{Client, Transport};
use crate::clients::client_registry::Principal;
use crate::protocol::lifecycle::Era;
use crate::transport::http;
use crate::{Shared, sessions};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use std::sync::{Arc, OnceLock};

/// The client that requests belong to.
pub(super) enum Seat {
    /// The client of a connection, for its whole lifetime.
    Own(Arc<Client>),
    /// The client of HTTP requests: set by the first request of a legacy session. A modern request
    /// identifies its client by itself.
    Http(OnceLock<Arc<Client>>),
}

impl Seat {
    /// Returns the client of a request.
    pub(super) fn client(
        &self,
        server: &Shared,
        context: &RequestContext<RoleServer>,
    ) -> Arc<Client> {
        let own = match self {
            Self::Own(client) => return client.clone(),
            Self::Http(own) => own,
        };
        match Era::of(context) {
            Era::Legacy => own.get_or_init(|| of_session(server, context)).clone(),
            Era::Modern => {
                let info = context.meta.client_info();
                let principal = Principal::new(http::caller(&context.extensions), info.as_ref());
                server.principals.client(&server.host, principal)
            }
        }
    }

    /// Returns the client of a subscription: that of the connection or session, and otherwise a new
    /// one, since the library does not tell whose request it is.
    pub(super) fn listener(&self, server: &Shared) -> Arc<Client> {
        match self {
            Self::Own(client) => client.clone(),
            Self::Http(own) => {
                own.get_or_init(|| Arc::new(Client::new(&server.host, Transport::Http))).clone()
            }
        }
    }
}

/// Creates the client of a session, whose calls end with the session or the server.
fn of_session(server: &Shared, context: &RequestContext<RoleServer>) -> Arc<Client> {
    let client = Arc::new(Client::new(&server.host, Transport::Http));
    if let Some(seat) = context.extensions.get::<sessions::Seat>() {
        let ended = seat.ended.clone();
        let leaving = server.leaving.clone();
        let client = Arc::downgrade(&client);
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = leaving.cancelled() => {}
            }
            if let Some(client) = client.upgrade() {
                client.leave();
            }
        });
    }
    client
}
