//! The services behind the server.

use super::auth::Admitted;
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
}
