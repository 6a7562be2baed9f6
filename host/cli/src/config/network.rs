//! The settings of the network that grants give to plugins. Only the user's own file may contain
//! them: a project could otherwise send the names of granted hosts to a server of its own.

use super::file::RawNetwork;
use super::resolve::{Origin, Value};
use std::net::{IpAddr, SocketAddr};

/// The port of name servers.
const PORT: u16 = 53;

/// The settings of the network in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// The server that resolves the names of granted hosts.
    pub name_server: Option<SocketAddr>,
}

impl NetworkConfig {
    /// Checks the values of a file.
    pub(super) fn checked(raw: &RawNetwork) -> Result<Self, String> {
        Ok(Self { name_server: raw.name_server.as_deref().map(name_server).transpose()? })
    }
}

fn name_server(text: &str) -> Result<SocketAddr, String> {
    let whole = text.parse::<SocketAddr>().ok();
    let given = whole.or_else(|| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, PORT)));
    let is_of_a_host = |given: &SocketAddr| {
        given.port() > 0 && !given.ip().is_unspecified() && !given.ip().is_multicast()
    };
    given.filter(is_of_a_host).ok_or_else(|| {
        format!(
            "`network.name_server` is `{text}`; want the address of a server, with a port if it is not {PORT}, such as \"192.0.2.53\" or \"[2001:db8::53]:5353\""
        )
    })
}

/// The effective settings of the network.
#[derive(Debug, Clone)]
pub struct NetworkSettings {
    /// The server that resolves the names of granted hosts; without one the system does.
    pub name_server: Value<Option<SocketAddr>>,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self { name_server: Value::default(None) }
    }
}

impl NetworkSettings {
    pub(super) fn apply(&mut self, config: &NetworkConfig, origin: impl Fn() -> Origin) {
        self.name_server.set(config.name_server.map(Some), origin);
    }
}

#[cfg(test)]
mod tests {
    use super::name_server;

    #[test]
    fn name_server_is_an_address_with_or_without_a_port() {
        for (text, read) in [
            ("192.0.2.53", "192.0.2.53:53"),
            ("192.0.2.53:5353", "192.0.2.53:5353"),
            ("2001:db8::53", "[2001:db8::53]:53"),
            ("[2001:db8::53]:5353", "[2001:db8::53]:5353"),
        ] {
            assert_eq!(name_server(text).map(|server| server.to_string()), Ok(read.to_owned()));
        }
        for text in ["", "dns.example.org", "192.0.2.53:0", "0.0.0.0", "[::]:53", "224.0.0.1", "1"]
        {
            assert!(name_server(text).is_err(), "{text}");
        }
    }
}
