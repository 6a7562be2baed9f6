//! Messages within bounds: parsing, serialization, their memory, and the requests in flight.

pub(crate) mod catch_panic;
pub(crate) mod extensions;
pub(crate) mod in_flight;
pub(crate) mod long_polls;
pub(crate) mod offload;
pub(crate) mod parse;
pub(crate) mod reply_accounts;
pub(crate) mod request_id;
pub(crate) mod response_resources;
pub(crate) mod serialize;
