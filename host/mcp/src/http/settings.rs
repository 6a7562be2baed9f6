//! The server settings, validated on construction: a listener that other machines can reach without
//! a token cannot be expressed.

use super::allowed_hosts::{AllowedHosts, HostPort, Origin};
use palisade::tool::text::elided;
use std::fmt;
use std::net::SocketAddr;

/// The maximum number of hosts, and of origins.
const MOST: usize = 64;
/// The length of a token in bytes. Shorter tokens could be guessed.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=1024;
/// The length of the console's host name in hexadecimal digits: 128 bits, so that no other server
/// can guess it.
const NAME: usize = 32;
/// The maximum number of characters of a value quoted in an error.
const SHOWN: usize = 80;

/// The clients that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Clients that send this token.
    Token(Token),
    /// Every client that can connect, which on loopback means every local user and process.
    /// Accepted for loopback addresses only.
    Unauthenticated,
}

/// The address of a server, the clients it accepts, and its allowed hosts and origins.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(super) address: SocketAddr,
    pub(super) access: Access,
    /// The token of the operator.
    pub(super) operator: Option<Token>,
    pub(super) hosts: Vec<HostPort>,
    pub(super) origins: Vec<Origin>,
    console_name: ConsoleName,
}

/// Whether the console has a host name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConsoleName {
    Own,
    None,
}

/// An error in the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Other machines could reach the server, and it has no token.
    #[error("`{0}` can be reached from other machines: set a token, or serve on 127.0.0.1")]
    TokenNeeded(SocketAddr),
    /// The value is not a host.
    #[error("`{0}` is no host: want NAME or NAME:PORT, without a scheme, a path or a wildcard")]
    Host(String),
    /// The value is not an origin.
    #[error(
        "`{0}` is no origin: want SCHEME://NAME or SCHEME://NAME:PORT; neither wildcards nor `null` are accepted"
    )]
    Origin(String),
    /// The operator's token is also that of the clients.
    #[error("the operator's token is that of the clients too: give the operator one of its own")]
    SameToken,
    /// The list is full.
    #[error("at most 64 hosts and 64 origins can be given")]
    TooMany,
}

impl Settings {
    /// Creates settings for this address, with the default hosts and origins only.
    ///
    /// # Errors
    ///
    /// [`SettingsError::TokenNeeded`] for [`Access::Unauthenticated`] at an address beyond
    /// loopback.
    pub fn new(address: SocketAddr, access: Access) -> Result<Self, SettingsError> {
        match access {
            Access::Unauthenticated if !address.ip().is_loopback() => {
                Err(SettingsError::TokenNeeded(address))
            }
            Access::Unauthenticated | Access::Token(_) => {
                let (hosts, origins) = (Vec::new(), Vec::new());
                let console_name = ConsoleName::Own;
                Ok(Self { address, access, operator: None, hosts, origins, console_name })
            }
        }
    }

    /// Sets the token of the operator, which gives the operator's [`Role`](super::Role), and lets
    /// the operator log in with a browser. No other token does, and neither does
    /// [`Access::Unauthenticated`].
    ///
    /// # Errors
    ///
    /// [`SettingsError::SameToken`] for the token of the clients.
    pub fn with_operator(self, token: Token) -> Result<Self, SettingsError> {
        if self.access == Access::Token(token) {
            return Err(SettingsError::SameToken);
        }
        Ok(Self { operator: Some(token), ..self })
    }

    /// Allows another host name. Without a port, it is accepted with the server's port and without
    /// one.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Host`] for anything but a host with an optional port,
    /// [`SettingsError::TooMany`] beyond 64.
    pub fn with_host(mut self, host: &str) -> Result<Self, SettingsError> {
        let read = HostPort::parse(host).ok_or_else(|| SettingsError::Host(elided(host, SHOWN)))?;
        push(&mut self.hosts, read)?;
        Ok(self)
    }

    /// Allows requests from the web pages of another origin. The server's own origins are always
    /// allowed.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Origin`] for anything but one origin, [`SettingsError::TooMany`] beyond 64.
    pub fn with_origin(mut self, origin: &str) -> Result<Self, SettingsError> {
        let read =
            Origin::parse(origin).ok_or_else(|| SettingsError::Origin(elided(origin, SHOWN)))?;
        push(&mut self.origins, read)?;
        Ok(self)
    }

    /// Returns the same settings for another address, checking the access rule again.
    pub(super) fn for_address(self, address: SocketAddr) -> Result<Self, SettingsError> {
        let moved = Self::new(address, self.access)?;
        Ok(Self { address: moved.address, ..self })
    }

    /// Gives the console no host name of its own: such a name would lead to another server as well.
    pub(super) fn without_console_name(self) -> Self {
        Self { console_name: ConsoleName::None, ..self }
    }

    /// Returns true if the console may have a host name of its own.
    pub(super) fn has_console_name(&self) -> bool {
        self.console_name != ConsoleName::None
    }

    /// Returns the hosts and origins that a server at this address accepts.
    pub(super) fn allowed_hosts(&self, bound: SocketAddr) -> AllowedHosts {
        let (mut hosts, mut origins) = (self.hosts.clone(), self.origins.clone());
        if let Some(host) = self.console_host(bound) {
            hosts.extend(HostPort::parse(&host));
            origins.extend(Origin::parse(&format!("http://{host}")));
        }
        AllowedHosts::new(bound, &hosts, &origins)
    }

    /// Returns the host of the console, with its port: a name below `localhost`, which browsers
    /// lead to this machine. Another server that has had the same port may have left a service
    /// worker or a cached script in the browser. They hold for one host, and no other server knows
    /// this one. The name follows from the operator's token, since a login outlasts a restart with
    /// it.
    pub(super) fn console_host(&self, bound: SocketAddr) -> Option<String> {
        if self.console_name == ConsoleName::None {
            return None;
        }
        let (ip, operator) = (bound.ip(), self.operator?);
        let key = blake3::derive_key("palisade: the host of the console", operator.0.as_bytes());
        let name = blake3::Hash::from_bytes(key).to_hex();
        (ip.is_loopback() || ip.is_unspecified())
            .then(|| format!("{}.localhost:{}", &name[..NAME], bound.port()))
    }

    /// Returns the configured address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), SettingsError> {
    if list.len() >= MOST {
        return Err(SettingsError::TooMany);
    }
    list.push(item);
    Ok(())
}

/// A bearer token. Only its digest is kept, so that it cannot be logged; the comparison of digests
/// runs in constant time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(blake3::Hash);

/// An error in a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefused {
    /// The length is out of range.
    #[error("a token has 16 to 1024 characters; this one has {0}")]
    Length(usize),
    /// The token has characters that are not allowed in the header.
    #[error("a token has letters, digits and `-._~+/=` only")]
    Characters,
}

impl Token {
    /// Creates a token of 16 to 1024 letters, digits and `-._~+/=`.
    ///
    /// # Errors
    ///
    /// [`TokenRefused`], which does not repeat the token.
    pub fn new(text: &str) -> Result<Self, TokenRefused> {
        if !LENGTH.contains(&text.len()) {
            return Err(TokenRefused::Length(text.chars().count()));
        }
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if !text.bytes().all(is_part) {
            return Err(TokenRefused::Characters);
        }
        Ok(Self::from_header(text))
    }

    /// Hashes a value without validating it, for the comparison with a client's header.
    pub(super) fn from_header(text: &str) -> Self {
        Self(blake3::hash(text.as_bytes()))
    }

    /// Returns the digest, which identifies the token where the token itself must not appear.
    pub(super) fn digest(&self) -> blake3::Hash {
        self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn at(address: &str, token: Option<&str>) -> Result<Settings, SettingsError> {
        let access = token
            .map_or(Access::Unauthenticated, |token| Access::Token(Token::new(token).unwrap()));
        Settings::new(address.parse().unwrap(), access)
    }

    #[test]
    fn address_beyond_loopback_needs_a_token() {
        for address in ["127.0.0.1:0", "127.1.2.3:80", "[::1]:8000"] {
            assert!(at(address, None).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:8000", "[::]:8000", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
            assert_eq!(
                at(address, None).unwrap_err(),
                SettingsError::TokenNeeded(address.parse().unwrap())
            );
            assert!(at(address, Some(TOKEN)).is_ok(), "{address}");
        }
    }

    #[test]
    fn wildcards_and_null_are_refused() {
        let settings = || at("127.0.0.1:0", None).unwrap();
        assert_eq!(settings().with_host("*").unwrap_err(), SettingsError::Host("*".to_owned()));
        for origin in ["*", "null", "https://*", "https://example.com/"] {
            assert_eq!(
                settings().with_origin(origin).unwrap_err(),
                SettingsError::Origin(origin.to_owned())
            );
        }
        assert!(
            settings()
                .with_host("tools.example")
                .unwrap()
                .with_origin("https://app.example")
                .is_ok()
        );
    }

    #[test]
    fn console_has_a_host_that_follows_from_the_token() {
        let token = |text| Token::new(text).unwrap();
        let with =
            |address, operator| at(address, None).unwrap().with_operator(token(operator)).unwrap();
        let bound = "127.0.0.1:8000".parse().unwrap();
        let host = |settings: &Settings| settings.console_host(bound).unwrap();
        let (one, other) = (
            with("127.0.0.1:8000", "0123456789abcdef"),
            with("127.0.0.1:8000", "fedcba9876543210"),
        );
        assert!(host(&one).ends_with(".localhost:8000") && host(&one) != host(&other));
        assert_eq!(host(&one), host(&one.clone()));
        let allowed = one.allowed_hosts(bound);
        for host in [&*host(&one), "127.0.0.1:8000"] {
            assert!(allowed.allows_host(host) && allowed.allows_origin(&format!("http://{host}")));
        }
        for foreign in [host(&other), "other.localhost:8000".to_owned()] {
            assert!(!allowed.allows_host(&foreign), "{foreign}");
        }
        assert_eq!(one.console_host("192.0.2.1:8000".parse().unwrap()), None);
        assert_eq!(at("127.0.0.1:8000", None).unwrap().console_host(bound), None);
    }

    #[test]
    fn operator_has_a_token_of_its_own() {
        let token = |text| Token::new(text).unwrap();
        let settings = || at("127.0.0.1:0", Some(TOKEN)).unwrap();
        assert_eq!(settings().with_operator(token(TOKEN)).unwrap_err(), SettingsError::SameToken);
        assert!(settings().with_operator(token("fedcba9876543210")).is_ok());
        assert!(at("127.0.0.1:0", None).unwrap().with_operator(token(TOKEN)).is_ok());
    }

    #[test]
    fn list_has_sixty_four_names_at_most() {
        let with = |count| {
            (0..count)
                .try_fold(at("127.0.0.1:0", None).unwrap(), |all, _| all.with_host("a.example"))
        };
        assert!(with(64).is_ok());
        assert_eq!(with(65).unwrap_err(), SettingsError::TooMany);
    }

    #[test]
    fn token_is_long_fits_in_a_header_and_is_never_shown() {
        assert_eq!(format!("{:?}", Token::new(TOKEN).unwrap()), "Token");
        assert_eq!(Token::new(&TOKEN[1..]).unwrap_err(), TokenRefused::Length(15));
        assert!(Token::new(&"x".repeat(1024)).is_ok());
        assert_eq!(Token::new(&"x".repeat(1025)).unwrap_err(), TokenRefused::Length(1025));
        for text in ["0123456789abcde ", "0123456789abcdef\n", "0123456789abcdé"] {
            assert_eq!(Token::new(text).unwrap_err(), TokenRefused::Characters);
        }
    }
}
