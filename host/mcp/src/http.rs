//! A small HTTP/1.1 server with host and origin checks, token authentication, a rate limit, and
//! bounds on connections and requests. It is independent of the services it routes to.
//!
//! TLS is not included. A listener that other machines can reach requires a token, and should sit
//! behind a TLS-terminating proxy. On loopback, the token can be left out only with an explicit
//! [`Access::Anybody`].

mod accept;
mod answer;
mod body;
mod door;
mod gate;
mod kept;
mod names;
mod pages;
mod peer;
mod places;
mod rates;
mod refusal;
mod settings;
mod socket;

pub(crate) use accept::Server;
pub(crate) use door::Door;
pub(crate) use gate::{Admitted, Caller};
pub(crate) use kept::{keeping, kept};
pub use settings::{Access, Settings, SettingsError, Token, TokenRefused};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::Response;
use palisade::execution::BoxFuture;
use std::convert::Infallible;
use std::sync::Arc;

/// The log target of the per-request lines, which are logged at level *debug*.
pub(crate) const REQUESTS: &str = "palisade::requests";

/// The body of a response.
pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// A handler for one path.
pub(crate) trait Service: Send + Sync {
    /// Answers a request. The future is dropped if the client disconnects before the response.
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>>;
}

/// The services, each with its path.
pub(crate) type Routes = Vec<(&'static str, Arc<dyn Service>)>;
