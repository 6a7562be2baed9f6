//! Allowed `Host` and `Origin` values: the defence against DNS rebinding, by which a web page
//! reaches a local server under a name of its own.

use std::net::{Ipv6Addr, SocketAddr};

/// The default port of `http`.
const HTTP: u16 = 80;
/// The default port of `https`.
const HTTPS: u16 = 443;

/// A host with an optional port, as in a `Host` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    /// Parses a name or an address (IPv6 in brackets) with an optional port. User info, paths and
    /// wildcards are rejected.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(bracketed) => {
                let (address, rest) = bracketed.split_once(']')?;
                (format!("[{}]", address.parse::<Ipv6Addr>().ok()?), rest)
            }
            None => {
                let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                (is_name(name).then(|| name.to_ascii_lowercase())?, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(digits) => Some(port(digits)?),
            None => rest.is_empty().then_some(None)?,
        };
        Some(Self { host, port })
    }

    fn at(&self, otherwise: u16) -> Place {
        Place { host: self.host.clone(), port: self.port.unwrap_or(otherwise) }
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (1..=253).contains(&text.len()) && text.bytes().all(is_part)
}

fn port(digits: &str) -> Option<u16> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    host: String,
    port: u16,
}

/// The origin of a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: String,
    host: String,
    /// The port, with the default of `http` and `https` filled in; `None` for another scheme
    /// without one.
    port: Option<u16>,
}

impl Origin {
    /// Parses a scheme, a host and an optional port. `null`, the opaque origin, is rejected.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let is_scheme = scheme.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
            && scheme.bytes().all(is_part);
        let (scheme, Authority { host, port }) =
            (is_scheme.then(|| scheme.to_ascii_lowercase())?, Authority::parse(rest)?);
        let usual = match scheme.as_str() {
            "http" => Some(HTTP),
            "https" => Some(HTTPS),
            _ => None,
        };
        Some(Self { scheme, host, port: port.or(usual) })
    }

    fn of(Place { host, port }: Place) -> Self {
        Self { scheme: "http".to_owned(), host, port: Some(port) }
    }
}

/// The hosts that a server answers to, and the origins that it accepts.
#[derive(Debug)]
pub(super) struct AllowedHosts {
    places: Vec<Place>,
    origins: Vec<Origin>,
}

impl AllowedHosts {
    /// Combines the names of the bound address with the configured ones. A configured host without
    /// a port is accepted with the server's port and, for a reverse proxy, without one.
    pub(super) fn new(bound: SocketAddr, hosts: &[Authority], origins: &[Origin]) -> Self {
        let mut places = own(bound);
        let origins =
            places.iter().cloned().map(Origin::of).chain(origins.iter().cloned()).collect();
        places.extend(hosts.iter().flat_map(|host| [host.at(bound.port()), host.at(HTTP)]));
        Self { places, origins }
    }

    /// Returns true if the server answers to this `Host` value.
    pub(super) fn allows_host(&self, header: &str) -> bool {
        // A `Host` without a port means the default port of `http`.
        Authority::parse(header).is_some_and(|host| self.places.contains(&host.at(HTTP)))
    }

    /// Returns true if requests with this `Origin` value are accepted.
    pub(super) fn allows_origin(&self, header: &str) -> bool {
        Origin::parse(header).is_some_and(|origin| self.origins.contains(&origin))
    }

    /// Returns the host names without ports, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut hosts: Vec<String> = self.places.iter().map(|place| place.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

/// Returns the names of the bound address itself.
fn own(bound: SocketAddr) -> Vec<Place> {
    let ip = bound.ip();
    let loopback = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
    let mut hosts =
        if ip.is_loopback() || ip.is_unspecified() { loopback.to_vec() } else { Vec::new() };
    if !ip.is_unspecified() {
        hosts.push(if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() });
    }
    hosts.into_iter().map(|host| Place { host, port: bound.port() }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn allowed(bound: &str, hosts: &[&str], origins: &[&str]) -> AllowedHosts {
        let hosts: Vec<_> = hosts.iter().map(|host| Authority::parse(host).unwrap()).collect();
        let origins: Vec<_> = origins.iter().map(|origin| Origin::parse(origin).unwrap()).collect();
        AllowedHosts::new(bound.parse().unwrap(), &hosts, &origins)
    }

    #[test]
    fn loopback_server_answers_to_its_own_names_and_port() {
        let allowed = allowed("127.0.0.1:8000", &[], &[]);
        for own in
            ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000", "[0:0::1]:8000"]
        {
            assert!(allowed.allows_host(own), "{own}");
        }
        for foreign in [
            "127.0.0.1",
            "localhost",
            "localhost:8001",
            "localhost.:8000",
            "evil.example:8000",
            "localhost:8000.evil.example",
            "user@localhost:8000",
            "127.0.0.2:8000",
            "localhost:08000:1",
            "localhost:+8000",
            "localhost:",
            " localhost:8000",
            "[::1",
            "::1",
            "",
        ] {
            assert!(!allowed.allows_host(foreign), "{foreign}");
        }
    }

    #[test]
    fn default_port_is_optional() {
        let allowed = allowed("127.0.0.1:80", &[], &[]);
        assert!(allowed.allows_host("localhost") && allowed.allows_host("localhost:80"));
        assert!(
            allowed.allows_origin("http://localhost")
                && allowed.allows_origin("http://localhost:80")
        );
    }

    #[test]
    fn configured_name_holds_with_the_port_and_behind_a_proxy() {
        let allowed = allowed("192.0.2.1:8000", &["tools.example", "other.example:9000"], &[]);
        for own in [
            "192.0.2.1:8000",
            "tools.example",
            "tools.example:8000",
            "Tools.Example:80",
            "other.example:9000",
        ] {
            assert!(allowed.allows_host(own), "{own}");
        }
        for foreign in [
            "localhost:8000",
            "127.0.0.1:8000",
            "tools.example:9000",
            "other.example",
            "a.tools.example",
        ] {
            assert!(!allowed.allows_host(foreign), "{foreign}");
        }
    }

    #[test]
    fn wildcard_address_answers_to_loopback_and_configured_names() {
        let allowed = allowed("0.0.0.0:8000", &["tools.example"], &[]);
        assert!(allowed.allows_host("localhost:8000") && allowed.allows_host("tools.example"));
        assert!(!allowed.allows_host("0.0.0.0:8000") && !allowed.allows_host("192.0.2.1:8000"));
        assert_eq!(allowed.names(), ["127.0.0.1", "[::1]", "localhost", "tools.example"]);
    }

    #[test]
    fn own_and_configured_origins_are_accepted() {
        let allowed = allowed(
            "127.0.0.1:8000",
            &["tools.example"],
            &["https://app.example", "http://localhost:3000", "ext://abc"],
        );
        for own in [
            "http://127.0.0.1:8000",
            "http://localhost:8000",
            "http://[::1]:8000",
            "https://app.example",
            "https://app.example:443",
            "HTTPS://App.Example",
            "http://localhost:3000",
            "ext://abc",
        ] {
            assert!(allowed.allows_origin(own), "{own}");
        }
        for foreign in [
            "null",
            "https://localhost:8000",
            "http://localhost",
            "http://app.example",
            "https://app.example:8443",
            "https://app.example.evil.example",
            "https://app.example/",
            "http://tools.example",
            "localhost:8000",
            "*",
            "",
        ] {
            assert!(!allowed.allows_origin(foreign), "{foreign}");
        }
    }

    #[test]
    fn wildcards_are_rejected() {
        for none in ["*", "*.example", "*:8000", "localhost:*"] {
            assert_eq!(Authority::parse(none), None, "{none}");
        }
        for none in [
            "*",
            "null",
            "https://*",
            "https://*.example",
            "http://localhost:*",
            "://x",
            "1a://x",
            "file://",
        ] {
            assert_eq!(Origin::parse(none), None, "{none}");
        }
    }
}
