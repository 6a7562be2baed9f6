//! Connections to hosts: the name is resolved once, its addresses are checked, and exactly those
//! are connected to.

use crate::address::AddressKind;
use crate::call::CallNetwork;
use crate::host_name::HostName;
use crate::limits;
use crate::network::{Network, NetworkError};
use crate::refusal::NetRefused;
use crate::rule::Reach;
use crate::target::{Scheme, Target};
use rustls::pki_types::{DnsName, ServerName};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A connection, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The host may not be connected to.
    #[error(transparent)]
    Refused(#[from] NetRefused),
    /// The network cannot be used on this machine.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The resolver did not answer in time.
    #[error("the name was not resolved within {} s", limits::RESOLVE.as_secs())]
    ResolveTimeout,
    /// No address accepted a connection in time.
    #[error("no address of the host accepted a connection within {} s each", limits::CONNECT.as_secs())]
    Timeout,
    /// The last address refused the connection.
    #[error("the host cannot be connected to: {0}")]
    Io(io::Error),
    /// The TLS handshake failed.
    #[error("no encrypted connection to the host: {0}")]
    Tls(io::Error),
}

/// The addresses that a request may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destinations {
    /// Public addresses of other machines. A public address of this machine leads to services that
    /// no firewall guards from it.
    Public,
    /// Public and private addresses.
    Any,
    /// Public and private addresses of other machines: those of a host whose name is not that of
    /// this machine, whatever a resolver says.
    Elsewhere,
    /// Private addresses alone: those of a request that carries a secret without encryption.
    Private,
}

impl From<Reach> for Destinations {
    fn from(reach: Reach) -> Self {
        match reach {
            Reach::Public => Self::Public,
            Reach::Private => Self::Any,
        }
    }
}

/// Connects to a target, for a call of a plugin or for the host itself.
pub(crate) async fn connect(
    target: &Target,
    destinations: Destinations,
    network: &Network,
    call: Option<&CallNetwork>,
) -> Result<Box<dyn Stream>, ConnectError> {
    let addresses = addresses(&target.host, destinations, network, call).await?;
    let stream = connect_to(&addresses, target.port).await?;
    if !destinations.have_this_machine() && is_of_this_machine(&stream) {
        return Err(
            NetRefused::Address { host: target.host.clone(), found: addresses.len() }.into()
        );
    }
    // A request is written at once, so that waiting for more data would only delay it.
    let _ = stream.set_nodelay(true);
    if target.scheme == Scheme::Http {
        return Ok(Box::new(stream));
    }
    let name = server_name(&target.host)?;
    match timeout(limits::CONNECT, network.tls()?.connect(name, stream)).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(ConnectError::Tls(error)),
        Err(_) => Err(ConnectError::Timeout),
    }
}

/// Looks up a name. The end of the request does not end the look-up: it keeps its place until the
/// system has answered, so that requests that are dropped do not pile up look-ups.
async fn resolve(
    name: &str,
    network: &Network,
    call: Option<&CallNetwork>,
) -> io::Result<Vec<IpAddr>> {
    let place = match call {
        Some(call) => Some(call.lookup_place().await),
        None => None,
    };
    let (name, network) = (name.to_owned(), network.clone());
    let lookup = tokio::spawn(async move {
        let found = network.resolver().resolve(&name).await;
        drop(place);
        found
    });
    lookup.await?
}

/// Returns the addresses of a host that a request may go to.
async fn addresses(
    host: &HostName,
    destinations: Destinations,
    network: &Network,
    call: Option<&CallNetwork>,
) -> Result<Vec<IpAddr>, ConnectError> {
    let found = match host {
        HostName::Address(address) => vec![*address],
        HostName::Name(name) => {
            match timeout(limits::RESOLVE, resolve(name, network, call)).await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    return Err(
                        NetRefused::Name { host: host.clone(), reason: error.to_string() }.into()
                    );
                }
                Err(_) => return Err(ConnectError::ResolveTimeout),
            }
        }
    };
    let is_reached = |address: &&IpAddr| {
        destinations.have(AddressKind::of(**address))
            && !(destinations == Destinations::Elsewhere && address.to_canonical().is_loopback())
    };
    let reached: Vec<IpAddr> =
        found.iter().filter(is_reached).take(limits::ADDRESSES).copied().collect();
    if !reached.is_empty() {
        return Ok(reached);
    }
    let host = host.clone();
    let is_public = |address: &IpAddr| AddressKind::of(*address) == AddressKind::Public;
    Err(match destinations {
        Destinations::Private if found.iter().any(is_public) => NetRefused::PlainAddress { host },
        Destinations::Public
        | Destinations::Any
        | Destinations::Elsewhere
        | Destinations::Private => NetRefused::Address { host, found: found.len() },
    }
    .into())
}

impl Destinations {
    fn have_this_machine(self) -> bool {
        match self {
            Self::Public | Self::Elsewhere => false,
            Self::Any | Self::Private => true,
        }
    }

    fn have(self, kind: AddressKind) -> bool {
        match (kind, self) {
            (AddressKind::Public, Self::Public | Self::Any | Self::Elsewhere)
            | (AddressKind::Private, Self::Private | Self::Any | Self::Elsewhere) => true,
            (AddressKind::Public, Self::Private)
            | (AddressKind::Private, Self::Public)
            | (AddressKind::Never, _) => false,
        }
    }
}

/// Returns true if a connection leads to this machine: the system gives a connection to an address
/// of its own the same address at both ends. Nothing has been sent yet.
fn is_of_this_machine(stream: &TcpStream) -> bool {
    let ends = stream.local_addr().and_then(|own| Ok((own.ip(), stream.peer_addr()?.ip())));
    ends.is_ok_and(|(own, peer)| own.to_canonical() == peer.to_canonical())
}

async fn connect_to(addresses: &[IpAddr], port: u16) -> Result<TcpStream, ConnectError> {
    let mut last = ConnectError::Timeout;
    for address in addresses {
        match timeout(limits::CONNECT, TcpStream::connect(SocketAddr::new(*address, port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = ConnectError::Io(error),
            Err(_) => last = ConnectError::Timeout,
        }
    }
    Err(last)
}

fn server_name(host: &HostName) -> Result<ServerName<'static>, NetRefused> {
    match host {
        HostName::Address(address) => Ok(ServerName::IpAddress((*address).into())),
        HostName::Name(name) => match DnsName::try_from(name.clone()) {
            Ok(name) => Ok(ServerName::DnsName(name)),
            Err(error) => Err(NetRefused::url(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn connection_to_an_address_of_its_own_has_it_at_both_ends() {
        for (address, is_own) in [("127.0.0.1", true), ("127.0.0.2", false)] {
            let listener = TcpListener::bind((address, 0)).await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            assert_eq!(is_of_this_machine(&stream), is_own, "{address}");
        }
    }

    #[test]
    fn this_machine_is_reached_by_a_rule_for_private_addresses_alone() {
        for (destinations, is_reached) in [
            (Destinations::from(Reach::Public), false),
            (Destinations::from(Reach::Private), true),
            (Destinations::Elsewhere, false),
            (Destinations::Private, true),
        ] {
            assert_eq!(destinations.have_this_machine(), is_reached, "{destinations:?}");
        }
    }
}
