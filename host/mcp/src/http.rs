//! A small HTTP/1.1 server with host and origin checks, token authentication, rate limits, and
//! bounds on connections and requests. It is independent of the services it routes to.
//!
//! TLS is not included. A listener that other machines can reach requires a token, and should sit
//! behind a TLS-terminating proxy. On loopback, the token can be left out only with an explicit
//! [`Access::Anybody`].

mod allowed_hosts;
mod auth;
mod body;
mod body_guard;
mod client_address;
mod connection;
mod connection_limit;
mod cors;
mod disconnect;
mod listener;
mod rejection;
mod request_rates;
mod settings;
mod socket;
mod turn_away;

pub(crate) use auth::{Admitted, Caller};
pub(crate) use body_guard::{guarded_body, guarded_bytes};
pub(crate) use connection::ConnectionHandler;
pub(crate) use listener::Listener;
pub use settings::{Access, Settings, SettingsError, Token, TokenRefused};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::Response;
use palisade::execution::BoxFuture;
use std::convert::Infallible;
use std::sync::Arc;

/// The log target of the per-request lines, which are logged at level *debug*.
pub(crate) const LOG_TARGET: &str = "palisade::requests";

/// The body of a response.
pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// The head of an admitted request. Its extensions contain the [`Caller`].
pub(crate) type RequestHead = hyper::http::request::Parts;

/// A handler for one path.
pub(crate) trait Service: Send + Sync {
    /// Answers a request. The future is dropped if the client disconnects before the response.
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>>;
}

/// The services, each with its path.
pub(crate) type Routes = Vec<(&'static str, Arc<dyn Service>)>;
