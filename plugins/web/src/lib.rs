//! The shipped plugin `web`: fetches pages and sends HTTP requests, to the hosts that its grants
//! name.

mod address;
mod exchange;
mod fetch;
mod page;
mod request;

use fetch::web_fetch;
use request::http_request;

palisade_guest::export!(web_fetch, http_request);
