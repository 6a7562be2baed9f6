//! The kinds of addresses: public ones, private ones that a rule may name, and those that no
//! request reaches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// An address of the Internet.
    Public,
    /// An address of this machine or of a private network. A rule for one exact name can allow it.
    Private,
    /// An address that no rule allows: metadata services, link-local and shared addresses,
    /// transition formats with another address inside, documentation, multicast and the like.
    Never,
}

/// Metadata services and host agents of clouds outside the link-local range.
const METADATA: [IpAddr; 8] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// IPv4 ranges, as network, length of the prefix, and kind. Everything else is public.
const V4: [(Ipv4Addr, u32, AddressKind); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, AddressKind::Never),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressKind::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressKind::Never),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressKind::Private),
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressKind::Never),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressKind::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressKind::Never),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressKind::Never),
    (Ipv4Addr::new(192, 31, 196, 0), 24, AddressKind::Never),
    (Ipv4Addr::new(192, 52, 193, 0), 24, AddressKind::Never),
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressKind::Never),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressKind::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressKind::Never),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressKind::Never),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressKind::Never),
    (Ipv4Addr::new(224, 0, 0, 0), 3, AddressKind::Never),
];

/// The global unicast range of IPv6. Everything outside is private or never.
const GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Ranges of IPv6 with a kind of their own. The rest is public inside [`GLOBAL`], and never
/// outside.
const V6: [(Ipv6Addr, u32, AddressKind); 6] = [
    // Unique local addresses.
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, AddressKind::Private),
    // Teredo, ORCHID and benchmarking are in 2001::/23; Teredo has an IPv4 address inside.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, AddressKind::Never),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, AddressKind::Never),
    // 6to4, with an IPv4 address inside.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, AddressKind::Never),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, AddressKind::Never),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, AddressKind::Never),
];

impl AddressKind {
    /// Returns the kind of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if METADATA.contains(&address) {
            return Self::Never;
        }
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    let is_in = |network: Ipv4Addr, length: u32| {
        (address.to_bits() ^ network.to_bits()).leading_zeros() >= length
    };
    V4.iter()
        .find(|(network, length, _)| is_in(*network, *length))
        .map_or(AddressKind::Public, |range| range.2)
}

/// Mapped and translated IPv4 addresses (`::ffff:0:0/96`, `64:ff9b::/32`, `::/96`) are outside of
/// the global range, and so are link-local, site-local and multicast addresses.
fn of_v6(address: Ipv6Addr) -> AddressKind {
    if address == Ipv6Addr::LOCALHOST {
        return AddressKind::Private;
    }
    let is_in = |network: Ipv6Addr, length: u32| {
        (address.to_bits() ^ network.to_bits()).leading_zeros() >= length
    };
    match V6.iter().find(|(network, length, _)| is_in(*network, *length)) {
        Some(range) => range.2,
        None if is_in(GLOBAL.0, GLOBAL.1) => AddressKind::Public,
        None => AddressKind::Never,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn check(kind: AddressKind, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(AddressKind::of(address.parse().unwrap()), kind, "{address}");
        }
    }

    #[test]
    fn internet_is_public() {
        check(
            AddressKind::Public,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
                "169.253.255.255",
                "169.255.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "192.0.1.0",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "223.255.255.255",
                "2606:4700::1111",
                "2a00:1450::1",
                "2001:200::1",
                "2003::1",
            ],
        );
    }

    #[test]
    fn private_networks_and_this_machine_need_a_rule() {
        check(
            AddressKind::Private,
            &[
                "10.0.0.0",
                "10.255.255.255",
                "127.0.0.1",
                "127.255.255.255",
                "172.16.0.0",
                "172.31.255.255",
                "192.168.0.1",
                "192.168.255.255",
                "::1",
                "fc00::1",
                "fdff::1",
            ],
        );
    }

    #[test]
    fn no_rule_reaches_the_rest() {
        check(
            AddressKind::Never,
            &[
                // This network, shared, link-local, reserved, documentation, benchmarking,
                // multicast.
                "0.0.0.0",
                "0.255.255.255",
                "100.64.0.1",
                "100.127.255.255",
                "169.254.169.254",
                "169.254.170.2",
                "192.0.0.1",
                "192.0.2.1",
                "192.88.99.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.51.100.1",
                "203.0.113.1",
                "224.0.0.1",
                "240.0.0.1",
                "255.255.255.255",
                // Metadata outside of the link-local range.
                "100.100.100.200",
                "168.63.129.16",
                "192.0.0.192",
                "fd00:ec2::254",
                "fd00:ec2::23",
                "fd00:42::42",
                "fd00:c1::a9fe:a9fe",
                "fd20:ce::254",
                // Another address inside: mapped, compatible, NAT64, local NAT64, 6to4, Teredo.
                "::ffff:127.0.0.1",
                "::ffff:8.8.8.8",
                "::ffff:0:127.0.0.1",
                "::127.0.0.1",
                "::",
                "64:ff9b::7f00:1",
                "64:ff9b::808:808",
                "64:ff9b:1::7f00:1",
                "2002:7f00:1::",
                "2002:a9fe:a9fe::1",
                "2001::7f00:1",
                "2001:0:4136:e378::1",
                // Discard-only, documentation, link-local, site-local, multicast, SRv6, unassigned.
                "100::1",
                "2001:db8::1",
                "3fff::1",
                "fe80::1",
                "febf::1",
                "fec0::1",
                "ff02::1",
                "5f00::1",
                "4000::1",
            ],
        );
    }
}
