//! The target of a request: scheme, host and port.

use crate::host_name::HostName;
use crate::refusal::NetRefused;
use crate::rule::split_port;
use http::Uri;
use std::fmt;

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Without encryption.
    Http,
    /// Over TLS.
    Https,
}

/// The target of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: HostName,
    /// The port, also where the URL names none.
    pub port: u16,
}

impl Scheme {
    /// Reads a scheme, in any case of letters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Http, Self::Https]
            .into_iter()
            .find(|scheme| scheme.as_str().eq_ignore_ascii_case(text))
    }

    /// Returns the scheme as it stands in a URL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns the port of URLs without a port.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl Target {
    /// Returns the target of a request's URL.
    ///
    /// # Errors
    ///
    /// [`NetRefused::Url`] if the URL names a user, has no host, or has another scheme, an invalid
    /// host or an invalid port.
    pub fn of(uri: &Uri) -> Result<Self, NetRefused> {
        let scheme = uri.scheme_str().and_then(Scheme::parse);
        let scheme =
            scheme.ok_or_else(|| NetRefused::url("its scheme is neither http nor https"))?;
        let authority = uri.authority().ok_or_else(|| NetRefused::url("it has no host"))?.as_str();
        if authority.contains('@') {
            return Err(NetRefused::url(
                "it names a user; a request carries credentials in a header",
            ));
        }
        let (host, port) = split_port(authority).map_err(NetRefused::url)?;
        let host = HostName::parse(host).map_err(NetRefused::url)?;
        Ok(Self { scheme, host, port: port.unwrap_or(scheme.port()) })
    }

    /// Returns the target of a URL's text.
    ///
    /// # Errors
    ///
    /// Those of [`of`](Self::of), and if the text is no URL.
    pub fn of_url(url: &str) -> Result<Self, NetRefused> {
        Self::of(&url.parse::<Uri>().map_err(NetRefused::url)?)
    }

    /// Returns the `Host` header of requests.
    #[must_use]
    pub fn authority(&self) -> String {
        match self.port == self.scheme.port() {
            true => self.host.to_string(),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_with_a_user_or_another_scheme_is_refused() {
        for url in [
            "https://user@example.org/",
            "https://user:password@example.org/",
            "https://example.org@127.0.0.1/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "/path",
            "https://example.org:0/",
            "https://example.org:70000/",
            "https://[::1]x/",
        ] {
            let target = Target::of_url(url);
            assert!(
                matches!(&target, Err(refused) if refused.code() == "url_invalid"),
                "{url}: {target:?}"
            );
        }
    }

    #[test]
    fn equal_targets_have_one_form() {
        for url in ["https://Example.ORG/a", "HTTPS://example.org.:443/b?c"] {
            let target = Target::of_url(url);
            assert_eq!(
                target.map(|target| target.to_string()),
                Ok("https://example.org".to_owned())
            );
        }
    }
}
