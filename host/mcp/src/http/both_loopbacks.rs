//! The other loopback address of a listener. A name below `localhost` leads to `127.0.0.1` and to
//! `[::1]`, and browsers try the second one first (RFC 6761 and RFC 8305): while a server listens
//! at one of them alone, another user could take the other one, and answer in its place.

use rustix::io::Errno;
use rustix::net::sockopt::ipv6_v6only;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// The other loopback address at the port of a listener.
#[derive(Debug)]
pub(super) enum OtherLoopback {
    /// It is held: the server listens there as well.
    Held(TcpListener),
    /// No other program can listen there: the listener covers the address, or the machine lacks it.
    Absent,
    /// It is not held, so that a name below `localhost` may lead to another server.
    Open,
}

/// Takes the other loopback address at the port of this listener, if it listens at one.
pub(super) fn take(listener: &TcpListener) -> io::Result<OtherLoopback> {
    let bound = listener.local_addr()?;
    let other = match bound.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST | Ipv4Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) if ipv6_v6only(listener)? => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => return Ok(OtherLoopback::Absent),
        IpAddr::V4(_) | IpAddr::V6(_) => return Ok(OtherLoopback::Open),
    };
    Ok(match TcpListener::bind(SocketAddr::new(other, bound.port())) {
        Ok(held) => {
            held.set_nonblocking(true)?;
            OtherLoopback::Held(held)
        }
        Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT) => OtherLoopback::Absent,
            _ => {
                tracing::warn!(
                    "another program listens at {other}, port {}: the link to the console names \
                     {bound}, and clients should as well, not `localhost`",
                    bound.port()
                );
                OtherLoopback::Open
            }
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    /// Returns a listener at this address, with a port that is free at both loopback addresses.
    fn listener(ip: &str) -> TcpListener {
        TcpListener::bind((ip, 0)).unwrap()
    }

    fn has_both() -> bool {
        TcpListener::bind("[::1]:0").is_ok()
    }

    #[test]
    fn other_loopback_address_is_held() {
        let own = listener("127.0.0.1");
        let taken = take(&own).unwrap();
        if !has_both() {
            assert!(matches!(taken, OtherLoopback::Absent), "{taken:?}");
            return;
        }
        let port = own.local_addr().unwrap().port();
        assert!(matches!(&taken, OtherLoopback::Held(_)), "{taken:?}");
        assert!(
            TcpListener::bind(("::1", port)).is_err(),
            "no other program can bind this address"
        );
        drop((own, taken));
        let own = listener("::1");
        assert!(matches!(take(&own).unwrap(), OtherLoopback::Held(_)));
    }

    #[test]
    fn taken_loopback_address_is_open() {
        if !has_both() {
            return;
        }
        let other = listener("::1");
        let port = other.local_addr().unwrap().port();
        let own = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!(matches!(take(&own).unwrap(), OtherLoopback::Open));
        assert!(matches!(take(&listener("127.0.0.2")).unwrap(), OtherLoopback::Open));
    }

    #[test]
    fn wildcard_addresses_are_covered() {
        if !has_both() {
            return;
        }
        assert!(matches!(take(&listener("0.0.0.0")).unwrap(), OtherLoopback::Held(_)));
        let taken = take(&listener("::")).unwrap();
        assert!(!matches!(taken, OtherLoopback::Open), "{taken:?}");
    }
}
