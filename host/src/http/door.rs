//! One connection: requests in, answers out.

use super::gate::Gate;
use super::refusal::Refusal;
use super::socket::Socket;
use super::{Body, Routes, Settings};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// How long the head of a request may take to arrive, and so how long a connection may idle.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The longest head of a request, in bytes.
const HEAD: usize = 32 << 10;
/// The most headers of a request.
const HEADERS: usize = 64;
/// What is read ahead of a connection, and written ahead to it, in bytes.
const BUFFER: usize = 64 << 10;

/// What connections come to: the gate, and behind it what is served.
pub(crate) struct Door {
    gate: Gate,
    routes: Routes,
    http: http1::Builder,
}

impl Door {
    /// The door of a server that listens at this address.
    pub(crate) fn new(settings: &Settings, bound: SocketAddr, routes: Routes) -> Self {
        let paths = routes.iter().map(|(path, _)| *path).collect();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
        http.max_header_size(HEAD).max_headers(HEADERS).max_buf_size(BUFFER);
        Self { gate: Gate::new(settings, bound, paths), routes, http }
    }

    /// Answers what comes over a connection, until either side ends it. Once `stop` is cancelled, no more requests are taken.
    pub(crate) async fn converse<S>(&self, socket: S, from: IpAddr, stop: &CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let service = service_fn(move |request| async move { Ok::<_, Infallible>(self.answer(request, from).await) });
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(Socket::new(socket)), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!("a connection ended early: {error}");
        }
    }

    async fn answer(&self, request: Request<Incoming>, from: IpAddr) -> Response<Body> {
        let path = self.routes.iter().find(|(path, _)| *path == request.uri().path());
        match (self.gate.admit(request, from).await, path) {
            (Ok(admitted), Some((_, service))) => service.answer(admitted).await,
            (Ok(_), None) => Refusal::Path.into_response(),
            (Err(refusal), _) => {
                tracing::debug!("a request was refused: {refusal}");
                refusal.into_response()
            }
        }
    }
}

#[cfg(test)]
mod tests;
