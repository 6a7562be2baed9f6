//! The pages and the API of a server, beside `/mcp`: any `tower` service, such as an axum router,
//! behind the checks of `palisade-mcp`.

use bytes::Bytes;
use http_body_util::Full;
use palisade::BoxFuture;
use palisade_mcp::http::{
    self, Admitted, Body, Caller, HttpBody, Request, RequestHead, Response, Role,
};
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use tower_service::Service;

/// A service that is mounted beside `/mcp`.
pub(super) struct Mounted<S> {
    service: S,
    /// Returns true if a `GET` or `HEAD` request needs no credentials.
    is_public: fn(&RequestHead) -> bool,
    /// Returns true if the answer to a `GET` request lasts.
    is_stream: fn(&RequestHead) -> bool,
    /// Tells the service who sent a request, by an extension of the service's own.
    introduce: fn(Caller, Option<Role>, &mut Request<Full<Bytes>>),
}

impl<S> Mounted<S> {
    /// Mounts a service. Only requests that `is_public` names reach it without a role.
    pub(super) fn new(
        service: S,
        is_public: fn(&RequestHead) -> bool,
        is_stream: fn(&RequestHead) -> bool,
        introduce: fn(Caller, Option<Role>, &mut Request<Full<Bytes>>),
    ) -> Self {
        Self { service, is_public, is_stream, introduce }
    }
}

impl<S, B> http::Service for Mounted<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + Sync,
    S::Future: Send,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn answer(&self, admitted: Admitted) -> BoxFuture<'_, Response<Body>> {
        let (caller, role) = (admitted.caller(), admitted.role());
        let mut request = admitted.into_request().map(Full::new);
        (self.introduce)(caller, role, &mut request);
        let mut service = self.service.clone();
        Box::pin(async move {
            let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
            let Ok(response) = service.call(request).await;
            response.map(Body::new)
        })
    }

    fn is_public(&self, head: &RequestHead) -> bool {
        (self.is_public)(head)
    }

    fn is_stream(&self, head: &RequestHead) -> bool {
        (self.is_stream)(head)
    }
}

#[cfg(test)]
mod tests;
