//! Serves the requests of one connection.

use super::answer::Answer;
use super::auth::Auth;
use super::cors;
use super::places::{Place, Spot};
use super::rejection::Rejection;
use super::socket::Socket;
use super::{REQUESTS, Routes, Settings};
use crate::tool::text::elided;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// The deadline for a request head. It is also the idle timeout, since the wait for the next head
/// counts.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The maximum size of a request head, in bytes.
const HEAD: usize = 32 << 10;
/// The maximum number of headers in a request.
const HEADERS: usize = 64;
/// The maximum read and write buffer of a connection, in bytes.
const BUFFER: usize = 64 << 10;

/// The maximum number of characters of a refused request's path in the log.
const MAX_SHOWN: usize = 64;

/// The connection handler: passes admitted requests to the services.
pub(crate) struct ConnectionHandler {
    auth: Auth,
    routes: Routes,
    http: http1::Builder,
}

impl ConnectionHandler {
    /// Creates the handler for a server bound to this address.
    pub(crate) fn new(settings: &Settings, bound: SocketAddr, routes: Routes) -> Self {
        let paths = routes.iter().map(|(path, _)| *path).collect();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
        http.max_header_size(HEAD).max_headers(HEADERS).max_buf_size(BUFFER);
        Self { auth: Auth::new(settings, bound, paths), routes, http }
    }

    /// Serves a connection until either side closes it, or until it is evicted. After `stop` is
    /// cancelled, no further requests are read.
    ///
    /// `gone` completes when the client disconnects, even while unread bytes are buffered. The
    /// connection is then dropped with its in-flight request.
    pub(super) async fn serve<S>(
        &self,
        socket: S,
        (place, gone): (&Place, impl Future<Output = ()>),
        stop: &CancellationToken,
    ) where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let service = service_fn(move |request| async move {
            Ok::<_, Infallible>(self.answer(request, place).await)
        });
        let socket = Socket::new(socket, place.spot().clone());
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(socket), service));
        let stopped = async {
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            connection.await
        };
        tokio::select! {
            biased;
            ended = stopped => if let Err(error) = ended {
                tracing::debug!("a connection ended early: {error}");
            },
            () = place.wanted() => tracing::debug!("an idle connection was closed to make room for another"),
            () = gone => tracing::debug!("a client has gone"),
        }
    }

    async fn answer(&self, request: Request<Incoming>, place: &Place) -> Response<Answer> {
        let asked = tracing::enabled!(target: REQUESTS, tracing::Level::DEBUG)
            .then(|| format!("{} {}", request.method(), elided(request.uri().path(), MAX_SHOWN)));
        let (response, why) = self.answered(request, place).await;
        // Services log the requests that reach them.
        if let Some(asked) = asked.filter(|_| response.status().is_client_error()) {
            let why = why.map(|refusal| format!(", {refusal}")).unwrap_or_default();
            tracing::debug!(target: REQUESTS, "{asked}: refused with {}{why}", response.status());
        }
        response
    }

    async fn answered(
        &self,
        request: Request<Incoming>,
        place: &Place,
    ) -> (Response<Answer>, Option<Rejection>) {
        let spot = place.spot();
        spot.heard();
        let reader = self.auth.allowed_origin(request.headers());
        let preflight = cors::is_preflight(&request).then(|| self.auth.preflight(&request));
        let (mut response, refusal) = match preflight {
            Some(Ok(response)) => (response.map(|body| Answer::new(body, spot.answering())), None),
            Some(Err(refusal)) => refused(refusal, spot),
            None => self.routed(request, place).await,
        };
        cors::add_headers(response.headers_mut(), reader);
        (response, refusal)
    }

    async fn routed(
        &self,
        request: Request<Incoming>,
        place: &Place,
    ) -> (Response<Answer>, Option<Rejection>) {
        let spot = place.spot();
        let path = self.routes.iter().find(|(path, _)| *path == request.uri().path());
        match (self.auth.admit(request, place.from()).await, path) {
            (Ok(admitted), Some((_, service))) => {
                // Busy only from here on: a client that sends slowly or is refused must stay
                // evictable.
                let answering = spot.answering();
                (service.answer(admitted).await.map(|body| Answer::new(body, answering)), None)
            }
            (Ok(_), None) => refused(self.auth.unknown_path(), spot),
            (Err(refusal), _) => refused(refusal, spot),
        }
    }
}

fn refused(refusal: Rejection, spot: &Spot) -> (Response<Answer>, Option<Rejection>) {
    let response = refusal.clone().into_response().map(|body| Answer::new(body, spot.answering()));
    (response, Some(refusal))
}

#[cfg(test)]
impl ConnectionHandler {
    /// Serves a single in-memory connection.
    pub(crate) async fn serve_stream<S>(
        &self,
        socket: S,
        from: std::net::IpAddr,
        stop: &CancellationToken,
    ) where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.serve(socket, (&Place::alone(from), std::future::pending()), stop).await;
    }
}

#[cfg(test)]
mod tests;
