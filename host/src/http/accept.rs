//! Connections: how many there are, and how they all come to an end.

use super::names::Names;
use super::peer::Peer;
use super::places::{Place, Places};
use super::{Door, Routes, Settings};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long those that are being answered at the end are waited for.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait after the system could not take a connection in.
const PAUSE: Duration = Duration::from_millis(50);
/// What a connection is told that finds no place.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A listener that is not served yet.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    settings: Settings,
    bound: SocketAddr,
}

impl Server {
    /// Takes over a listener, inside of a runtime. Who may reach it is read off the listener itself.
    ///
    /// # Errors
    ///
    /// Where the listener cannot be used, or listens where the settings do not allow it.
    pub(crate) fn new(listener: std::net::TcpListener, settings: Settings) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        // The settings were checked for one address. What counts is the one that is listened at.
        let settings = settings.moved_to(bound).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Self { listener: TcpListener::from_std(listener)?, settings, bound })
    }

    /// Where it listens, with the port that the system chose.
    pub(crate) fn address(&self) -> SocketAddr {
        self.bound
    }

    /// The names that it answers to, without ports.
    pub(crate) fn hosts(&self) -> Vec<String> {
        Names::new(self.bound, &self.settings.hosts, &self.settings.origins).hosts()
    }

    /// The door to what is to be served.
    pub(crate) fn door(&self, routes: Routes) -> Arc<Door> {
        Arc::new(Door::new(&self.settings, self.bound, routes))
    }

    /// Serves until `stop` is cancelled, and then for 2 s those that are being answered.
    pub(crate) async fn run(self, door: Arc<Door>, stop: CancellationToken) {
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
                        let (door, stop) = (door.clone(), stop.clone());
                        connections.spawn(async move { serve(&door, socket, place, &stop).await });
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
        // The others are dropped.
        let _ = timeout(GRACE, ended).await;
    }
}

async fn serve(door: &Door, socket: TcpStream, place: Place, stop: &CancellationToken) {
    // What is written is whole messages: nothing is gained by waiting for more.
    let _ = socket.set_nodelay(true);
    match Peer::of(&socket) {
        Ok(peer) => door.serve(socket, (&place, peer.gone()), stop).await,
        Err(error) => tracing::warn!("a connection could not be watched: {error}"),
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection ended in a panic: {error}");
    }
}

/// Without waiting: what does not fit into the socket at once is left out.
fn turn_away(socket: TcpStream) {
    if let Ok(mut socket) = socket.into_std() {
        let _ = socket.write(FULL);
    }
}

#[cfg(test)]
mod tests;
