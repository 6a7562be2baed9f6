//! The session manager of stateful clients over HTTP: limits, ownership and expiry of sessions.
//!
//! The session manager of `rmcp` has no limit, does not check who uses a session, and expires a
//! silent session even while its calls run. Only its building blocks are used here.

mod call_stream;
mod error;
mod manager;
mod session;
mod table;

pub(crate) use error::SessionRejection;
pub(crate) use manager::CallerSessions;
pub(crate) use session::SessionRef;
pub(crate) use table::Sessions;
