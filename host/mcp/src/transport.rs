//! The transports: standard input and output, and HTTP.

mod fast_path;
pub(crate) mod http;
pub(crate) mod stdio;
