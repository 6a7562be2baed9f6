//! The clients: their sessions with the host, what they were shown, and what they subscribed to.

pub(crate) mod client;
pub(crate) mod client_registry;
pub(crate) mod client_session;
pub(crate) mod known_lists;
pub(crate) mod session_factory;
pub(crate) mod subscriptions;
