//! A network rule: methods, scheme, host and port that requests may use.

use crate::address::AddressKind;
use crate::host_name::{HostName, HostNameError};
use crate::target::{Scheme, Target};
use http::Method;
use std::fmt;
use std::str::FromStr;

/// The methods that a rule may name. `CONNECT` would turn a server into a relay, and `TRACE` would
/// show the headers that the host adds.
pub(crate) const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// The word that lets a rule reach private addresses.
const PRIVATE: &str = "private";

/// The hosts that a rule names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// One host.
    Exact(HostName),
    /// All names below this one, without itself.
    Below(String),
}

/// The addresses that a rule reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// Public addresses.
    Public,
    /// Private addresses as well.
    Private,
}

/// A network rule, such as `GET,POST https://api.example.org` or
/// `GET http://localhost:3000 private`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NetRule {
    methods: Vec<Method>,
    scheme: Scheme,
    host: HostPattern,
    port: u16,
    reach: Reach,
}

/// The reason why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetRuleError {
    /// The text has other parts than a rule.
    #[error(
        "a rule is `METHODS URL`, such as `GET,POST https://api.example.org`, with `private` at its end for a host of a private network"
    )]
    Form,
    /// A method is unknown.
    #[error(
        "`{0}` is no method of a rule; GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS are, joined by commas"
    )]
    Method(String),
    /// The URL has another scheme.
    #[error("the URL of a rule begins with `https://` or `http://`")]
    Scheme,
    /// The URL names more than a host and a port.
    #[error("a rule ends with its host and port: a path, a query or a user would bound nothing")]
    Path,
    /// The port is no number from 1 to 65535.
    #[error("the port is no number from 1 to 65535")]
    Port,
    /// The host is invalid.
    #[error(transparent)]
    Host(#[from] HostNameError),
    /// The pattern covers more than the names below one domain.
    #[error(
        "`*` stands at the beginning alone, before a name of at least two parts: `*.example.org`"
    )]
    Pattern,
    /// A rule for many names reaches private addresses.
    #[error("`private` needs one exact host: names below a domain can lead to any address")]
    PrivatePattern,
}

/// The reason why a rule reaches nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleObstacle {
    /// No rule reaches this address.
    #[error("no rule reaches `{0}`: it is a metadata service, or link-local or reserved")]
    Never(HostName),
    /// Only a rule that says so reaches this host.
    #[error(
        "`{0}` is this machine or in a private network, and the rule has no `private` at its end"
    )]
    Private(HostName),
}

impl NetRule {
    /// Returns the addresses that the rule reaches, if it allows this method at this target.
    #[must_use]
    pub fn allows(&self, method: &Method, target: &Target) -> Option<Reach> {
        let is_allowed = self.host.covers(&target.host)
            && self.scheme == target.scheme
            && self.port == target.port
            && self.methods.contains(method);
        is_allowed.then_some(self.reach)
    }

    /// Returns the reason why the rule reaches nothing, if its host shows that: a reserved address,
    /// or one of a private network in a rule without `private`.
    #[must_use]
    pub fn obstacle(&self) -> Option<RuleObstacle> {
        let HostPattern::Exact(host) = &self.host else { return None };
        let kind = match host {
            HostName::Address(address) => AddressKind::of(*address),
            HostName::Name(_) if host.is_loopback() => AddressKind::Private,
            HostName::Name(_) => AddressKind::Public,
        };
        match (kind, self.reach) {
            (AddressKind::Never, _) => Some(RuleObstacle::Never(host.clone())),
            (AddressKind::Private, Reach::Public) => Some(RuleObstacle::Private(host.clone())),
            (AddressKind::Private, Reach::Private) | (AddressKind::Public, _) => None,
        }
    }

    /// Returns the hosts of the rule.
    #[must_use]
    pub fn host(&self) -> &HostPattern {
        &self.host
    }
}

impl HostPattern {
    /// Returns true if the pattern names this host.
    #[must_use]
    pub fn covers(&self, host: &HostName) -> bool {
        match self {
            Self::Exact(own) => own == host,
            Self::Below(parent) => host.is_below(parent),
        }
    }
}

impl FromStr for NetRule {
    type Err = NetRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (methods, url, reach) = match words[..] {
            [methods, url] => (methods, url, Reach::Public),
            [methods, url, PRIVATE] => (methods, url, Reach::Private),
            _ => return Err(NetRuleError::Form),
        };
        let methods = methods.split(',').map(method).collect::<Result<Vec<_>, _>>()?;
        let (scheme, rest) = url.split_once("://").ok_or(NetRuleError::Scheme)?;
        let scheme = Scheme::parse(scheme).ok_or(NetRuleError::Scheme)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#', '@', '\\']) {
            return Err(NetRuleError::Path);
        }
        let (host, port) = split_port(authority)?;
        let host = pattern(host)?;
        if reach == Reach::Private && matches!(host, HostPattern::Below(_)) {
            return Err(NetRuleError::PrivatePattern);
        }
        Ok(Self { methods, scheme, host, port: port.unwrap_or(scheme.port()), reach })
    }
}

impl fmt::Display for NetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<&str> = self.methods.iter().map(Method::as_str).collect();
        write!(f, "{} {}://{}", methods.join(","), self.scheme, self.host)?;
        if self.port != self.scheme.port() {
            write!(f, ":{}", self.port)?;
        }
        match self.reach {
            Reach::Public => Ok(()),
            Reach::Private => write!(f, " {PRIVATE}"),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => host.fmt(f),
            Self::Below(parent) => write!(f, "*.{parent}"),
        }
    }
}

/// Splits an authority at its port. The colons of an IPv6 address are in brackets.
pub(crate) fn split_port(authority: &str) -> Result<(&str, Option<u16>), NetRuleError> {
    let host_ends = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let Some((host, port)) = authority[host_ends..].split_once(':') else {
        return Ok((authority, None));
    };
    let is_number = !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    let port = port.parse().ok().filter(|port| is_number && *port > 0).ok_or(NetRuleError::Port)?;
    Ok((&authority[..host_ends + host.len()], Some(port)))
}

fn method(name: &str) -> Result<Method, NetRuleError> {
    let found = METHODS.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name));
    found.ok_or_else(|| NetRuleError::Method(name.to_owned()))
}

fn pattern(host: &str) -> Result<HostPattern, NetRuleError> {
    let Some(parent) = host.strip_prefix("*.") else {
        return match host.contains('*') {
            true => Err(NetRuleError::Pattern),
            false => Ok(HostPattern::Exact(HostName::parse(host)?)),
        };
    };
    match HostName::parse(parent) {
        Ok(HostName::Name(name)) if name.contains('.') => Ok(HostPattern::Below(name)),
        _ => Err(NetRuleError::Pattern),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn rule_allows_exactly_its_methods_scheme_host_and_port() {
        let rule: NetRule = "get,POST https://API.example.org.".parse().unwrap();
        assert_eq!(rule.to_string(), "GET,POST https://api.example.org");
        let allows = |method: Method, url: &str| {
            rule.allows(&method, &Target::of_url(url).unwrap()).is_some()
        };
        assert!(allows(Method::GET, "https://api.example.org/any/path?query"));
        assert!(allows(Method::POST, "https://api.example.org:443/"));
        for (method, url) in [
            (Method::PUT, "https://api.example.org/"),
            (Method::CONNECT, "https://api.example.org/"),
            (Method::GET, "http://api.example.org/"),
            (Method::GET, "https://api.example.org:8443/"),
            (Method::GET, "https://example.org/"),
            (Method::GET, "https://a.api.example.org/"),
            (Method::GET, "https://api.example.org.evil.org/"),
        ] {
            assert!(!allows(method.clone(), url), "{method} {url}");
        }
    }

    #[test]
    fn pattern_covers_the_names_below_alone() {
        let rule: NetRule = "GET https://*.example.org".parse().unwrap();
        let allows = |url| rule.allows(&Method::GET, &Target::of_url(url).unwrap());
        assert_eq!(allows("https://a.b.example.org"), Some(Reach::Public));
        assert_eq!(allows("https://example.org"), None);
        assert_eq!(allows("https://evilexample.org"), None);
    }

    #[test]
    fn rules_are_read_back_as_they_are_shown() {
        for text in [
            "GET https://api.example.org",
            "GET,HEAD http://*.example.org:8080",
            "DELETE http://localhost:3000 private",
            "GET http://[::1]:3000 private",
            "GET https://1.1.1.1",
        ] {
            assert_eq!(text.parse::<NetRule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn rule_that_reaches_nothing_says_why() {
        let obstacle = |rule: &str| rule.parse::<NetRule>().unwrap().obstacle();
        for rule in ["GET http://169.254.169.254", "GET http://100.100.100.200 private"] {
            assert!(matches!(obstacle(rule), Some(RuleObstacle::Never(_))), "{rule}");
        }
        for rule in ["GET http://localhost:1", "GET http://[::1]", "GET https://10.0.0.1"] {
            assert!(matches!(obstacle(rule), Some(RuleObstacle::Private(_))), "{rule}");
            assert_eq!(obstacle(&format!("{rule} private")), None);
        }
        assert_eq!(obstacle("GET https://example.org"), None);
        assert_eq!(obstacle("GET https://*.example.org"), None);
        assert_eq!(obstacle("GET https://8.8.8.8"), None);
    }

    #[test]
    fn rules_that_say_less_than_they_seem_are_refused() {
        use NetRuleError as Error;
        for (text, error) in [
            ("https://a.org", Error::Form),
            ("GET https://a.org public", Error::Form),
            ("", Error::Form),
            ("CONNECT https://a.org", Error::Method("CONNECT".to_owned())),
            ("* https://a.org", Error::Method("*".to_owned())),
            ("GET,,POST https://a.org", Error::Method(String::new())),
            ("GET ftp://a.org", Error::Scheme),
            ("GET a.org", Error::Scheme),
            ("GET https://a.org/path", Error::Path),
            ("GET https://user@a.org", Error::Path),
            ("GET https://a.org:0", Error::Port),
            ("GET https://a.org:99999", Error::Port),
            ("GET https://a.org:+80", Error::Port),
            ("GET https://*", Error::Pattern),
            ("GET https://*.org", Error::Pattern),
            ("GET https://a.*.org", Error::Pattern),
            ("GET https://*.1.2.3.4", Error::Pattern),
            ("GET https://127.1", Error::Host(HostNameError::Number)),
            ("GET https://*.example.org private", Error::PrivatePattern),
        ] {
            assert_eq!(text.parse::<NetRule>(), Err(error), "{text}");
        }
    }
}
