//! The clients: their sessions with the host, what they were shown, and what they subscribed to.

pub(crate) mod client;
pub(crate) mod client_registry;
pub(crate) mod known_lists;
pub(crate) mod subscriptions;
