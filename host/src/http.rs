//! A small HTTP/1.1 server: who may connect, under which name, with which token, how often, and how much one request may be. It knows nothing of what it serves.
//!
//! There is no TLS. Beyond this machine a token is needed, and a proxy that encrypts. On this machine only a caller's word
//! that every local user may come in leaves the token out.

mod accept;
mod answer;
mod body;
mod door;
mod gate;
mod kept;
mod names;
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

use crate::execution::BoxFuture;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::Response;
use std::convert::Infallible;
use std::sync::Arc;

/// What lines about requests are logged as, at the level *debug*.
pub(crate) const REQUESTS: &str = "palisade::requests";

/// The body of an answer.
pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// Something that is served at one path.
pub(crate) trait Service: Send + Sync {
    /// Answers a request. Dropped when the client goes away before there is an answer.
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>>;
}

/// What is served, each at one path.
pub(crate) type Routes = Vec<(&'static str, Arc<dyn Service>)>;
