//! The promises of the API, one module for each.
#![allow(clippy::unwrap_used, reason = "a test whose preparation fails has failed")]

mod attached;
mod calls;
mod confirmations;
mod description;
mod health;
mod history;
mod hostile;
mod idempotency;
mod remedies;
mod replies;
mod requests;
mod runs;
mod sessions;
mod streams;
mod websocket;
mod world;
