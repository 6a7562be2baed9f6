//! The services behind the server.

use super::auth::{Admitted, Caller, RequestHead};
use super::response_body::Body;
use hyper::Response;
use palisade::BoxFuture;
use std::sync::Arc;

/// The services, each with its path.
pub(crate) type Routes = Vec<(&'static str, Arc<dyn Service>)>;

/// A handler for one path.
pub(crate) trait Service: Send + Sync {
    /// Answers a request. The future is dropped if the client disconnects before the response.
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>>;

    /// Returns the name of the caller's session that a request belongs to, if there is one. Each
    /// session is a client with shares of its own; all other requests of a caller from one address
    /// are one client. So a service returns only sessions that exist, and bounds their number.
    fn session_of(&self, _: &RequestHead, _: Caller) -> Option<String> {
        None
    }
}
