//! Secrets that the host adds to requests: a guest can neither read them nor set their headers.

use crate::host_name::{HostName, HostNameError};
use crate::limits;
use http::{HeaderName, HeaderValue, header};
use std::fmt;

/// A secret of a plugin, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The name of the environment variable of the host that has the value.
    pub name: String,
    /// The only host that gets the secret.
    pub host: HostName,
    /// The header that carries it.
    pub header: HeaderName,
    /// The word before the value in the header, such as `Bearer`.
    pub scheme: Option<String>,
}

/// The value of a secret, which no output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

/// The reason why a secret is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The name is no name of an environment variable.
    #[error(
        "`{0}` is no name of an environment variable: letters, digits and `_`, and no digit first"
    )]
    Name(String),
    /// The host is invalid.
    #[error("`{host}` is no host: {reason}; one exact name is accepted, without a scheme")]
    Host {
        /// The text.
        host: String,
        /// Its fault.
        reason: HostNameError,
    },
    /// The header cannot carry a secret.
    #[error(
        "`{0}` is no header for a secret; a name such as `authorization` is, with a word before the value if need be (`Authorization: Bearer`)"
    )]
    Header(String),
}

/// Headers that the host or HTTP itself sets.
const TAKEN: [HeaderName; 13] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::RANGE,
    header::ACCEPT,
    header::ACCEPT_ENCODING,
];

impl Secret {
    /// Reads a secret: the name of its variable, its host, and its header, such as
    /// `Authorization: Bearer`.
    ///
    /// # Errors
    ///
    /// [`SecretError`] for each of the three.
    pub fn parse(name: &str, host: &str, header: &str) -> Result<Self, SecretError> {
        if !is_variable(name) {
            return Err(SecretError::Name(name.to_owned()));
        }
        let invalid_host = |reason| SecretError::Host { host: host.to_owned(), reason };
        let parsed_host = HostName::parse(host).map_err(invalid_host)?;
        let invalid_header = || SecretError::Header(header.to_owned());
        let (header_name, scheme) = match header.split_once(':') {
            Some((name, scheme)) => (name, Some(scheme.trim()).filter(|scheme| !scheme.is_empty())),
            None => (header, None),
        };
        let header = header_name.trim().parse::<HeaderName>().map_err(|_| invalid_header())?;
        let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_graphic());
        if TAKEN.contains(&header) || scheme.is_some_and(|scheme| !is_word(scheme)) {
            return Err(invalid_header());
        }
        let scheme = scheme.map(str::to_owned);
        Ok(Self { name: name.to_owned(), host: parsed_host, header, scheme })
    }

    /// Returns the header as it was written, without the value.
    #[must_use]
    pub fn header_text(&self) -> String {
        match &self.scheme {
            Some(scheme) => format!("{}: {scheme}", self.header),
            None => self.header.to_string(),
        }
    }

    /// Returns the content of the header. It is marked as sensitive.
    pub(crate) fn header_value(&self, value: &SecretValue) -> Option<HeaderValue> {
        let text = match &self.scheme {
            Some(scheme) => format!("{scheme} {}", value.0),
            None => value.0.clone(),
        };
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {} as {}", self.name, self.host, self.header_text())
    }
}

impl SecretValue {
    /// Takes the value of a variable.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be a secret. The text does not contain the value.
    pub fn new(value: Option<String>) -> Result<Self, &'static str> {
        let value = value.ok_or("its environment variable is not set")?;
        if value.len() < limits::SECRET_MIN {
            return Err("it has fewer than 8 bytes, and could not be told from ordinary text");
        }
        if value.len() > limits::SECRET_MAX {
            return Err("it has more than 4 KiB");
        }
        match HeaderValue::from_str(&value) {
            Ok(_) if value.trim() == value => Ok(Self(value)),
            _ => Err("a header cannot carry it: it has a line break, or a space at an end"),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue([redacted])")
    }
}

/// Returns true if the text is the name of an environment variable.
#[must_use]
pub fn is_variable(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&name.len())
        && name.bytes().all(is_part)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_for_one_host_and_one_header() {
        let secret = Secret::parse("KEY", "API.example.org", "Authorization: Bearer");
        assert_eq!(
            secret.map(|secret| secret.to_string()),
            Ok("KEY for api.example.org as authorization: Bearer".to_owned())
        );
        for (name, host, header) in [
            ("1KEY", "a.org", "x-key"),
            ("", "a.org", "x-key"),
            ("KEY", "*.a.org", "x-key"),
            ("KEY", "https://a.org", "x-key"),
            ("KEY", "a.org", "host"),
            ("KEY", "a.org", "Accept-Encoding"),
            ("KEY", "a.org", "x key"),
            ("KEY", "a.org", "x-key: two words"),
        ] {
            assert!(Secret::parse(name, host, header).is_err(), "{name} {host} {header}");
        }
    }

    #[test]
    fn value_is_never_shown() {
        let value = SecretValue::new(Some("hunter2hunter2".to_owned()));
        assert!(!format!("{value:?}").contains("hunter2"));
        for value in ["short", "line\nbreak in it", " space at an end"] {
            assert!(SecretValue::new(Some(value.to_owned())).is_err());
        }
        assert!(SecretValue::new(None).is_err());
    }
}
