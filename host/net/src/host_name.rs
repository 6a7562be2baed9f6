//! The host of a URL, read strictly: one spelling for each host, and none that only some resolvers
//! understand.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The maximum length of a name, in bytes (RFC 1035).
const NAME: usize = 253;
/// The maximum length of a label, in bytes (RFC 1035).
const LABEL: usize = 63;

/// A host: a DNS name in lower case without its final dot, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostName {
    /// A DNS name.
    Name(String),
    /// An address that was given as such.
    Address(IpAddr),
}

/// The reason why a text is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostNameError {
    /// The text is empty or too long.
    #[error("a host has 1 to 253 characters")]
    Length,
    /// The text has a character that no host has.
    #[error(
        "a host consists of the letters a to z, digits, `-`, `_` and dots; an international name is given in its ASCII form (`xn--…`)"
    )]
    Character,
    /// A label is empty, too long, or begins or ends with a hyphen.
    #[error("each part between dots has 1 to 63 characters, and no `-` at its ends")]
    Label,
    /// The text is a number, or ends in one.
    #[error(
        "a number is no name, and an IPv4 address is four decimal numbers without leading zeros"
    )]
    Number,
    /// The text in brackets is no IPv6 address.
    #[error("the text in brackets is no IPv6 address without a zone")]
    Address,
}

impl HostName {
    /// Reads the host of a URL. Letter case and one final dot make no difference.
    ///
    /// # Errors
    ///
    /// [`HostNameError`] for a text that is neither a DNS name nor a canonical address.
    pub fn parse(text: &str) -> Result<Self, HostNameError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostNameError::Address)?;
            let address = inner.parse::<Ipv6Addr>().map_err(|_| HostNameError::Address)?;
            return Ok(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > NAME {
            return Err(HostNameError::Length);
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !name.bytes().all(is_allowed) {
            return Err(HostNameError::Character);
        }
        if name.split('.').any(|label| !is_label(label)) {
            return Err(HostNameError::Label);
        }
        if ends_in_a_number(&name) {
            let address = name.parse::<Ipv4Addr>().map_err(|_| HostNameError::Number)?;
            // A canonical address has no final dot.
            return match text.ends_with('.') {
                true => Err(HostNameError::Number),
                false => Ok(Self::Address(address.into())),
            };
        }
        Ok(Self::Name(name))
    }

    /// Returns true if this is `localhost` or an address of the loopback network, which no bytes
    /// leave the machine for.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Address(address) => address.is_loopback(),
        }
    }

    /// Returns true if this is a name below `parent`, at any depth.
    #[must_use]
    pub fn is_below(&self, parent: &str) -> bool {
        match self {
            Self::Name(name) => name.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
            Self::Address(_) => false,
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

fn is_label(label: &str) -> bool {
    (1..=LABEL).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

/// Returns true if resolvers may read the name as a number: `inet_aton` accepts `127.1`,
/// `0x7f000001` and `017700000001`.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_hexadecimal = last
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    is_hexadecimal || last.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_without_a_final_dot() {
        for text in ["api.example.org", "API.Example.ORG", "api.example.org."] {
            assert_eq!(
                HostName::parse(text),
                Ok(HostName::Name("api.example.org".to_owned())),
                "{text}"
            );
        }
        assert_eq!(HostName::parse("::1"), Err(HostNameError::Character));
        assert_eq!(HostName::parse("[::1]").map(|host| host.to_string()), Ok("[::1]".to_owned()));
    }

    #[test]
    fn numbers_that_only_some_resolvers_read_are_refused() {
        for text in [
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "127.0.0.1.",
            "127.0.0.01",
            "1.2.3.4.5",
            "example.0x1",
            "0x",
            "256.1.1.1",
        ] {
            assert_eq!(HostName::parse(text), Err(HostNameError::Number), "{text}");
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in [
            "",
            ".",
            "a..b",
            "-a.org",
            "a-.org",
            "a b",
            "a%2eb",
            "ex\u{e4}mple.org",
            "127。0。0。1",
            "①②⑦.0.0.1",
            "a/b",
            "a@b",
            "a:1",
            "[::1",
            "[fe80::1%eth0]",
            "[::ffff:1.2.3]",
            "a\u{0}b",
            "a\\b",
        ] {
            assert!(HostName::parse(text).is_err(), "{text}");
        }
        assert!(HostName::parse(&"a.".repeat(130)).is_err());
        assert!(HostName::parse(&format!("{}.org", "a".repeat(64))).is_err());
    }

    #[test]
    fn below_means_a_whole_label_more() {
        let below = |text| HostName::parse(text).is_ok_and(|host| host.is_below("example.org"));
        assert!(below("a.example.org") && below("a.b.example.org"));
        assert!(!below("example.org") && !below("badexample.org") && !below("1.2.3.4"));
    }
}
