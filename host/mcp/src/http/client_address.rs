//! The key of the limits for each client address.

use std::net::IpAddr;

/// A client address: an IPv4 address, or an IPv6 /64 network, since one machine usually holds all
/// 2⁶⁴ addresses of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ClientAddress {
    /// A loopback address. All of them count as one.
    Local,
    /// An IPv4 address, or the upper 64 bits of an IPv6 address.
    Remote(u64),
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Self::Local;
        }
        match address {
            IpAddr::V4(address) => Self::Remote(address.to_bits().into()),
            // The upper bits of a global IPv6 address are never all zero, so that none of these
            // keys equals that of an IPv4 address.
            IpAddr::V6(address) => Self::Remote((address.to_bits() >> 64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn client(address: &str) -> ClientAddress {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn ipv6_network_is_one_client() {
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
    }

    #[test]
    fn mapped_ipv4_address_is_the_ipv4_client() {
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    }

    #[test]
    fn all_loopback_addresses_are_local() {
        for address in ["::1", "127.8.9.1", "::ffff:127.0.0.1"] {
            assert_eq!(client(address), ClientAddress::Local, "{address}");
        }
    }
}
