//! Allowed `Host` and `Origin` values: the defence against DNS rebinding, by which a web page
//! reaches a local server under a name of its own.

use hyper::http::uri::{Authority, Scheme};
use std::net::{Ipv6Addr, SocketAddr};

/// The default port of `http`.
const HTTP_PORT: u16 = 80;
/// The default port of `https`.
const HTTPS_PORT: u16 = 443;

/// A host with an optional port, as in a `Host` header. The host is in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPort {
    host: String,
    port: Option<u16>,
}

impl HostPort {
    /// Parses a name or an address (IPv6 in brackets) with an optional port. User info, paths and
    /// wildcards are rejected.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let authority = Authority::try_from(text).ok()?;
        let host = authority.host();
        let port = authority.port_u16();
        // An `Authority` may have user info or an invalid port, which its getters leave out.
        let is_whole = match port {
            Some(port) => text == format!("{host}:{port}"),
            None => text == host,
        };
        is_whole.then(|| canonical_host(host))?.map(|host| Self { host, port })
    }

    fn with_default_port(&self, port: u16) -> Self {
        Self { host: self.host.clone(), port: self.port.or(Some(port)) }
    }
}

/// Returns a name in lower case, or an IPv6 address in its shortest form.
fn canonical_host(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return Some(format!("[{}]", address.parse::<Ipv6Addr>().ok()?));
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (!host.is_empty() && host.bytes().all(is_part)).then(|| host.to_ascii_lowercase())
}

/// The origin of a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: Scheme,
    /// The host, with the default port of `http` and `https` filled in.
    host: HostPort,
}

impl Origin {
    /// Parses a scheme, a host and an optional port. `null`, the opaque origin, is rejected.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let scheme =
            scheme.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(scheme);
        Some(Self::new(Scheme::try_from(scheme?.as_str()).ok()?, HostPort::parse(host)?))
    }

    /// Returns true if this is the origin of the pages that a request with this `Host` asks for. A
    /// host without a port has the default port of the origin's scheme: a proxy may add TLS.
    pub(super) fn is_of(&self, host: &HostPort) -> bool {
        Self::new(self.scheme.clone(), host.clone()) == *self
    }

    fn new(scheme: Scheme, host: HostPort) -> Self {
        let host = match scheme.as_str() {
            "http" => host.with_default_port(HTTP_PORT),
            "https" => host.with_default_port(HTTPS_PORT),
            _ => host,
        };
        Self { scheme, host }
    }
}

/// The hosts that a server answers to, and the origins that it accepts.
#[derive(Debug)]
pub(super) struct AllowedHosts {
    /// The hosts, each with its port.
    hosts: Vec<HostPort>,
    origins: Vec<Origin>,
}

impl AllowedHosts {
    /// Combines the names of the bound address with the configured ones. A configured host without
    /// a port is accepted with the server's port and, for a reverse proxy, without one.
    pub(super) fn new(bound: SocketAddr, hosts: &[HostPort], origins: &[Origin]) -> Self {
        let own = own_hosts(bound);
        let own_origins = own.iter().cloned().map(|host| Origin::new(Scheme::HTTP, host));
        let origins = own_origins.chain(origins.iter().cloned()).collect();
        let configured = hosts.iter().flat_map(|host| {
            [host.with_default_port(bound.port()), host.with_default_port(HTTP_PORT)]
        });
        Self { hosts: own.iter().cloned().chain(configured).collect(), origins }
    }

    /// Returns true if the server answers to this `Host` value.
    pub(super) fn allows_host(&self, header: &str) -> bool {
        // A `Host` without a port means the default port of `http`.
        HostPort::parse(header)
            .is_some_and(|host| self.hosts.contains(&host.with_default_port(HTTP_PORT)))
    }

    /// Returns true if requests with this `Origin` value are accepted.
    pub(super) fn allows_origin(&self, header: &str) -> bool {
        Origin::parse(header).is_some_and(|origin| self.origins.contains(&origin))
    }

    /// Returns the host names without ports, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.hosts.iter().map(|host| host.host.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Returns the names of the bound address itself.
fn own_hosts(bound: SocketAddr) -> Vec<HostPort> {
    let ip = bound.ip();
    let loopback = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
    let mut hosts =
        if ip.is_loopback() || ip.is_unspecified() { loopback.to_vec() } else { Vec::new() };
    if !ip.is_unspecified() {
        hosts.push(if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() });
    }
    hosts.into_iter().map(|host| HostPort { host, port: Some(bound.port()) }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn allowed(bound: &str, hosts: &[&str], origins: &[&str]) -> AllowedHosts {
        let hosts: Vec<_> = hosts.iter().map(|host| HostPort::parse(host).unwrap()).collect();
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
            "localhost:08000",
            "localhost:65536",
            "localhost:http",
            "localhost:",
            ":8000",
            " localhost:8000",
            "localhost:8000 ",
            "localhost%2e:8000",
            "localhost:8000/",
            "localhost:8000?x",
            "localhost:8000#x",
            "@localhost:8000",
            "a:b@localhost:8000",
            "localhost:8000@evil.example",
            "[::1",
            "[::1]x:8000",
            "[::1]8000",
            "[::1%25lo]:8000",
            "[localhost]:8000",
            "::1",
            "::1:8000",
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
            "https://app.example.",
            "https://user@app.example",
            "https://app.example:0443",
            "https://app.example#x",
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
            assert_eq!(HostPort::parse(none), None, "{none}");
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
