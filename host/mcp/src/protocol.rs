//! The protocol's own data: its lifecycles and methods, and the conversion of the host's data into
//! it.

pub(crate) mod client_info;
pub(crate) mod content;
pub(crate) mod lifecycle;
pub(crate) mod log_level;
pub(crate) mod methods;
pub(crate) mod remedy;
pub(crate) mod result_meta;
pub(crate) mod server_info;
pub(crate) mod tool_result;
