//! The services behind the server.

use super::auth::{Admitted, Caller, RequestHead};
use super::response_body::Body;
use hyper::Response;
use palisade::BoxFuture;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The services, each with its path.
pub(crate) type Routes = Vec<(&'static str, Arc<dyn Service>)>;

/// A handler for one path, or for all paths without one.
pub trait Service: Send + Sync {
    /// Answers a request. The future is dropped if the client disconnects before the response.
    ///
    /// A response of status 101 hands over the connection to whoever awaits the `OnUpgrade` among
    /// the request's extensions.
    fn answer(&self, request: Admitted) -> BoxFuture<'_, Response<Body>>;

    /// Returns the name of the caller's session that a request belongs to, if there is one. Each
    /// session has shares of its own, within those of its caller; all other requests of a caller
    /// from one address have common ones. A service returns only sessions that exist.
    fn session_of(&self, _: &RequestHead, _: Caller) -> Option<String> {
        None
    }

    /// Returns true if a request needs no credentials. The server asks for `GET` and `HEAD` only,
    /// and for no path of another service. The request may have any headers.
    fn is_public(&self, _: &RequestHead) -> bool {
        false
    }

    /// Returns true if the answer to a `GET` request lasts, such as a stream of events, whatever
    /// the request's headers ask for. The operator's login counts there only for requests that
    /// tell that they are of the server's own pages. The server asks for no path of another
    /// service.
    fn is_stream(&self, _: &RequestHead) -> bool {
        false
    }
}

/// The service of all paths without one of their own.
#[derive(Clone)]
pub(crate) struct Beside {
    /// The service.
    pub(crate) service: Arc<dyn Service>,
    /// Cancelled to end its streams, and the connections that it has taken over.
    pub(crate) ended: CancellationToken,
}
