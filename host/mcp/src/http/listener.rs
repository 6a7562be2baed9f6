//! The listener: accepts connections within the connection limit, and shuts them down at the end.

use super::allowed_hosts::AllowedHosts;
use super::both_loopbacks::{self, OtherLoopback};
use super::connection::{Connection, ConnectionHandler};
use super::connection_limit::{ConnectionLimit, ConnectionPermit};
use super::disconnect::DisconnectWatch;
use super::logins::Logins;
use super::rejection::Rejection;
use super::rejection_log::RejectionLog;
use super::service::{Beside, Routes};
use super::settings::Settings;
use super::turn_away::turn_away;
use palisade::internal::{Charge, guest_descriptors};
use palisade::sandbox::limits::Limits;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The grace period for in-flight requests at shutdown.
const GRACE: Duration = Duration::from_secs(2);
/// The delay before the next attempt after `accept` fails, for example for lack of file
/// descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum number of clients above the connection limit that are answered at the same time.
const TURNED_AWAY: usize = 32;

/// A listener that does not accept connections yet.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    /// The listener at the other loopback address.
    other: Option<TcpListener>,
    settings: Settings,
    bound: SocketAddr,
    limit: ConnectionLimit,
    logins: Logins,
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
        let (other, settings) = match both_loopbacks::take(&listener)? {
            OtherLoopback::Held(other) => (Some(TcpListener::from_std(other)?), settings),
            OtherLoopback::Absent => (None, settings),
            OtherLoopback::Open => (None, settings.without_console_name()),
        };
        // Connections may hold as many descriptors as guests; the rest stays with the host.
        let limit = ConnectionLimit::with_descriptors(guest_descriptors());
        let (listener, logins) = (TcpListener::from_std(listener)?, Logins::default());
        Ok(Self { listener, other, settings, bound, limit, logins })
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

    /// Returns the host names, without ports, that lead to this server: none by which clients may
    /// reach another program at the other loopback address.
    pub(crate) fn leading_hosts(&self) -> Vec<String> {
        let other = if self.bound.is_ipv4() { "[::1]" } else { "127.0.0.1" };
        let mut hosts = self.hosts();
        if !self.settings.has_console_name() {
            hosts.retain(|host| host != "localhost" && host != other);
        }
        hosts
    }

    /// Returns the origin of the console under its own host name, or `None` if the server has no
    /// operator, is bound to an address of the network, or does not hold both loopback addresses.
    pub(crate) fn console_origin(&self) -> Option<String> {
        self.settings.console_host(self.bound).map(|host| format!("http://{host}"))
    }

    /// Returns the logins of the operator, if the settings have one.
    pub(crate) fn logins(&self) -> Option<&Logins> {
        self.settings.operator.map(|_| &self.logins)
    }

    /// Returns the connection handler for these routes. The memory of requests counts against
    /// `limits`.
    #[cfg(test)]
    pub(crate) fn handler(&self, routes: Routes, limits: Limits) -> Arc<ConnectionHandler> {
        self.handler_beside(routes, None, limits)
    }

    /// Returns the connection handler for these routes, and for the service of all other paths. The
    /// memory of requests counts against `limits`.
    pub(crate) fn handler_beside(
        &self,
        routes: Routes,
        beside: Option<Beside>,
        limits: Limits,
    ) -> Arc<ConnectionHandler> {
        let handler = ConnectionHandler::new(&self.settings, self.bound, routes, limits)
            .with_logins(self.logins.clone());
        let handler = match self.settings.operator {
            Some(_) => handler.with_client_limit(self.limit.of_clients()),
            None => handler,
        };
        Arc::new(match beside {
            Some(beside) => handler.with_beside(beside),
            None => handler,
        })
    }

    /// Serves until `stop` is cancelled, and then gives in-flight requests 2 s to finish.
    pub(crate) async fn run(self, handler: Arc<ConnectionHandler>, stop: CancellationToken) {
        let mut connections = Connections::new(handler, stop.clone());
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = connections.tasks.join_next() => {
                    report(ended);
                    continue;
                }
                accepted = self.accept() => accepted,
            };
            match accepted {
                Ok((socket, from)) => {
                    let permit = self.limit.acquire(from.ip());
                    match permit.and_then(|permit| Ok((permit, connections.handler.reserve()?))) {
                        Ok(reserved) => connections.serve(socket, from.ip(), reserved),
                        Err(rejection) => connections.turn_away(socket, from.ip(), rejection).await,
                    }
                }
                Err(error) => {
                    tracing::warn!("a connection could not be accepted: {error}");
                    sleep(PAUSE).await;
                }
            }
        }
        drop((self.listener, self.other));
        connections.end().await;
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.other {
            None => self.listener.accept().await,
            Some(other) => tokio::select! {
                accepted = self.listener.accept() => accepted,
                accepted = other.accept() => accepted,
            },
        }
    }
}

/// The tasks of the open connections.
struct Connections {
    tasks: JoinSet<()>,
    handler: Arc<ConnectionHandler>,
    stop: CancellationToken,
    turned_away: Arc<Semaphore>,
    log: RejectionLog,
}

impl Connections {
    fn new(handler: Arc<ConnectionHandler>, stop: CancellationToken) -> Self {
        let turned_away = Arc::new(Semaphore::new(TURNED_AWAY));
        let log = RejectionLog::new("a connection", Instant::now());
        Self { tasks: JoinSet::new(), handler, stop, turned_away, log }
    }

    /// Serves a connection, with its reservations.
    fn serve(&mut self, socket: TcpStream, from: IpAddr, reserved: (ConnectionPermit, Charge)) {
        let handler = self.handler.clone();
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            // Hyper writes whole messages, so that Nagle's algorithm would only add latency.
            let _ = socket.set_nodelay(true);
            match DisconnectWatch::new(&socket) {
                Ok(watch) => {
                    let disconnected = watch.disconnected();
                    handler.serve(Connection { socket, from, disconnected }, &stop).await;
                }
                Err(error) => tracing::warn!("a connection could not be watched: {error}"),
            }
            drop(reserved);
        });
    }

    async fn turn_away(&mut self, socket: TcpStream, from: IpAddr, rejection: Rejection) {
        self.log.note(from, &rejection, Instant::now());
        match self.turned_away.clone().try_acquire_owned() {
            Ok(permit) => {
                self.tasks.spawn(async move {
                    turn_away(socket, rejection).await;
                    drop(permit);
                });
            }
            // In a flood, only a client that has sent its request already is answered.
            Err(_) => {
                let _ = timeout(Duration::ZERO, turn_away(socket, rejection)).await;
            }
        }
    }

    /// Waits for the end of all connections within the grace period.
    async fn end(mut self) {
        let ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                report(ended);
            }
        };
        // Dropping the set aborts the connections that are still open.
        let _ = timeout(GRACE, ended).await;
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection ended in a panic: {error}");
    }
}

#[cfg(test)]
mod tests;
