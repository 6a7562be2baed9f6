//! The listener: accepts connections within the connection limit, and shuts them down at the end.

use super::allowed_hosts::AllowedHosts;
use super::disconnect::DisconnectWatch;
use super::places::{Place, Places};
use super::{ConnectionHandler, Routes, Settings};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The grace period for in-flight requests at shutdown.
const GRACE: Duration = Duration::from_secs(2);
/// The delay before the next attempt after `accept` fails, for example for lack of file
/// descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// The response on a connection above the limit.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A listener that does not accept connections yet.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    settings: Settings,
    bound: SocketAddr,
}

impl Listener {
    /// Takes over a listener; must be called inside a runtime. The access rule is checked against
    /// the listener's own address.
    ///
    /// # Errors
    ///
    /// Fails if the listener cannot be used, or if its address is not allowed by the settings.
    pub(crate) fn new(listener: std::net::TcpListener, settings: Settings) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        // The settings were validated for the configured address; the bound one is authoritative.
        let settings = settings
            .for_address(bound)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Self { listener: TcpListener::from_std(listener)?, settings, bound })
    }

    /// Returns the bound address, with the port that the system chose.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.bound
    }

    /// Returns an address by which clients of this machine reach the server. No request may name
    /// the wildcard address as its host, so that it is the loopback address then.
    pub(crate) fn reachable(&self) -> SocketAddr {
        let ip = match self.bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, self.bound.port())
    }

    /// Returns the host names that the server answers to, without ports.
    pub(crate) fn hosts(&self) -> Vec<String> {
        AllowedHosts::new(self.bound, &self.settings.hosts, &self.settings.origins).names()
    }

    /// Returns the connection handler for these routes.
    pub(crate) fn handler(&self, routes: Routes) -> Arc<ConnectionHandler> {
        Arc::new(ConnectionHandler::new(&self.settings, self.bound, routes))
    }

    /// Serves until `stop` is cancelled, and then gives in-flight requests 2 s to finish.
    pub(crate) async fn run(self, handler: Arc<ConnectionHandler>, stop: CancellationToken) {
        let (places, mut connections) = (Places::default(), JoinSet::new());
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = connections.join_next() => {
                    report(ended);
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, from)) => match places.take(from.ip()) {
                    Some(place) => {
                        let (handler, stop) = (handler.clone(), stop.clone());
                        connections
                            .spawn(async move { serve(&handler, socket, place, &stop).await });
                    }
                    None => turn_away(socket),
                },
                Err(error) => {
                    tracing::warn!("a connection could not be taken in: {error}");
                    sleep(PAUSE).await;
                }
            }
        }
        drop(self.listener);
        let ended = async {
            while let Some(ended) = connections.join_next().await {
                report(ended);
            }
        };
        // Dropping the set aborts the connections that are still open.
        let _ = timeout(GRACE, ended).await;
    }
}

async fn serve(
    handler: &ConnectionHandler,
    socket: TcpStream,
    place: Place,
    stop: &CancellationToken,
) {
    // Hyper writes whole messages, so that Nagle's algorithm would only add latency.
    let _ = socket.set_nodelay(true);
    match DisconnectWatch::new(&socket) {
        Ok(watch) => handler.serve(socket, (&place, watch.disconnected()), stop).await,
        Err(error) => tracing::warn!("a connection could not be watched: {error}"),
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection ended in a panic: {error}");
    }
}

/// Sends the 503 response in one non-blocking write, as far as the socket buffer takes it.
fn turn_away(socket: TcpStream) {
    if let Ok(mut socket) = socket.into_std() {
        let _ = socket.write(FULL);
    }
}

#[cfg(test)]
mod tests;
