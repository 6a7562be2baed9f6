//! The URLs of requests: read strictly, and resolved when a response leads elsewhere.

use fluent_uri::{Iri, IriRef, Uri};
use palisade_guest::{Error, Result};

/// An absolute URL of a page, without a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address(Uri<String>);

/// The scheme of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Address {
    /// Reads the URL of an argument. Letters beyond ASCII are percent-encoded.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let refused = |reason: &str| {
            let form = "give an absolute URL, such as https://example.org/page";
            Error::invalid_input("url", format!("{reason}; {form}"))
        };
        let iri = Iri::parse(text.trim()).map_err(|error| refused(&error.to_string()))?;
        Self::checked(&iri.to_uri()).map_err(refused)
    }

    /// Returns the address that a link of this page leads to, or `None` if it leads to no page.
    pub(crate) fn join(&self, link: &str) -> Option<Self> {
        Self::checked(&self.resolve(link)?).ok()
    }

    /// Returns a link of this page as an absolute URL of any scheme.
    pub(crate) fn resolve(&self, link: &str) -> Option<Uri<String>> {
        let link = IriRef::parse(link.trim()).ok()?.to_uri_ref();
        link.resolve_against(&self.0).ok()
    }

    fn checked(uri: &Uri<String>) -> Result<Self, &'static str> {
        let address = Self(uri.strip_fragment().to_owned());
        if address.scheme().is_none() {
            return Err("its scheme is neither http nor https");
        }
        match address.0.authority() {
            None => Err("it names no host"),
            Some(authority) if authority.host().is_empty() => Err("it names no host"),
            Some(authority) if authority.has_userinfo() => Err("it has a user name"),
            Some(_) => Ok(address),
        }
    }

    fn scheme(&self) -> Option<Scheme> {
        match self.0.scheme().as_str().to_ascii_lowercase().as_str() {
            "http" => Some(Scheme::Http),
            "https" => Some(Scheme::Https),
            _ => None,
        }
    }

    /// Returns the parts of a request: scheme, host with port, and path with query.
    pub(crate) fn parts(&self) -> (Scheme, &str, String) {
        let authority = self.0.authority().map_or("", |authority| authority.as_str());
        let path = match self.0.path().as_str() {
            "" => "/",
            path => path,
        };
        let query = self.0.query().map(|query| format!("?{query}")).unwrap_or_default();
        // `checked` accepts no other scheme.
        (self.scheme().unwrap_or(Scheme::Https), authority, format!("{path}{query}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn url_is_split_into_the_parts_of_a_request() {
        let address =
            Address::parse(" HTTPS://Example.org:8443/gr\u{f6}\u{df}e?q=\u{e4}#part ").unwrap();
        let (scheme, authority, path) = address.parts();
        assert_eq!(scheme, Scheme::Https);
        assert_eq!(authority, "Example.org:8443");
        assert_eq!(path, "/gr%C3%B6%C3%9Fe?q=%C3%A4");
        assert_eq!(Address::parse("http://example.org").unwrap().parts().2, "/");
    }

    #[test]
    fn refused_url_says_what_would_be_accepted() {
        for text in
            ["", "/page", "example.org", "ftp://a.org/", "http:", "http://", "http://u@a.org"]
        {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error.field(), Some("url"), "{text}");
            assert!(error.message().contains("https://example.org/page"), "{text}: {error:?}");
        }
    }

    #[test]
    fn links_resolve_against_their_page() {
        let page = Address::parse("https://example.org/a/b?c").unwrap();
        for (link, leads) in [
            ("d", Some("https://example.org/a/d")),
            ("../../../x#y", Some("https://example.org/x")),
            ("//other.org/z", Some("https://other.org/z")),
            ("http://user@other.org/", None),
            ("mailto:a@b.org", None),
            ("ht tp://", None),
        ] {
            assert_eq!(page.join(link).as_ref().map(Address::as_str), leads, "{link}");
        }
        assert_eq!(page.resolve("mailto:a@b.org").unwrap().as_str(), "mailto:a@b.org");
    }
}
