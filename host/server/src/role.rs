//! The sender of a request. The program that mounts the router authenticates; the router
//! authorises.

use std::sync::Arc;

/// The sender of a request: an extension of the request, inserted by the program that mounts the
/// router.
///
/// A request without one is answered with 401, except on the public paths: `/`, `/console/*`,
/// `/healthz`, `/readyz` and `/openapi.json`.
///
/// ```
/// use palisade_server::Role;
///
/// let mut request = axum::http::Request::new(());
/// request.extensions_mut().insert(Role::Operator { name: "ana".into() });
/// assert!(request.extensions().get::<Role>().is_some_and(Role::is_operator));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Role {
    /// A person who may see everything and answers confirmation requests.
    Operator {
        /// The name under which answers are recorded.
        name: Arc<str>,
    },
    /// A program that opens sessions and makes calls. It sees only its own, and answers no
    /// confirmation request.
    Client {
        /// The identity, by which sessions belong to it.
        id: Arc<str>,
    },
}

impl Role {
    /// Returns true for an operator.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        matches!(self, Self::Operator { .. })
    }

    /// Returns the client's identity, or `None` for an operator.
    #[must_use]
    pub fn client(&self) -> Option<&Arc<str>> {
        match self {
            Self::Operator { .. } => None,
            Self::Client { id } => Some(id),
        }
    }
}
