//! The request log, and the spans and metrics of calls.

pub(crate) mod request_log;
pub(crate) mod trace;
