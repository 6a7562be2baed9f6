//! Tells the requests of the server's own pages from those of other pages, by headers that a page
//! cannot set: the browser sends the operator's cookie whichever page makes a request to this host,
//! also a page of another port. A program sets these headers as it likes, so that they keep out
//! pages only; the page key keeps out programs that know the cookie.

use super::allowed_hosts::{HostPort, Origin};
use hyper::Method;
use hyper::header::{
    ACCEPT, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;

/// The header by which a browser names the relation between a page and the address of its request.
/// Browsers send it to loopback addresses and over TLS only.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");
/// The media type of a stream of events.
const EVENT_STREAM: &str = "text/event-stream";

/// The page that makes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A page of this server.
    Own,
    /// Another page.
    Foreign,
    /// Unknown: the user entered the address, or the request is of a program or of an old browser.
    Unknown,
}

impl Source {
    /// Returns the source of a request. A header that contradicts another one makes it foreign.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        match (of_origin(headers), of_fetch(headers)) {
            (Self::Foreign, _) | (_, Self::Foreign) => Self::Foreign,
            (Self::Own, _) | (_, Self::Own) => Self::Own,
            (Self::Unknown, Self::Unknown) => Self::Unknown,
        }
    }
}

/// How long the answer to a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is sent at once.
    Whole,
    /// It lasts.
    Stream,
}

/// Returns true if the login of the operator counts for a request with this answer. A page of
/// unknown source cannot read the answer to a plain `GET`, which changes nothing. Everything else,
/// and a stream, which lasts, must come from the server's own pages.
pub(super) fn accepts_login(head: &Parts, answer: Answer) -> bool {
    match Source::of(&head.headers) {
        Source::Own => true,
        Source::Foreign => false,
        Source::Unknown => answer == Answer::Whole && is_plain_read(head),
    }
}

/// Keeps a response from pages that include it without reading it, such as a script.
pub(super) fn add_headers(headers: &mut HeaderMap) {
    let same_origin = HeaderValue::from_static("same-origin");
    headers.entry(CROSS_ORIGIN_RESOURCE_POLICY).or_insert(same_origin);
    headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
}

fn is_plain_read(head: &Parts) -> bool {
    let streams = || {
        let mut accepted = head.headers.get_all(ACCEPT).iter();
        accepted.any(|value| {
            value.to_str().map_or(true, |value| value.to_ascii_lowercase().contains(EVENT_STREAM))
        })
    };
    matches!(head.method, Method::GET | Method::HEAD)
        && !head.headers.contains_key(UPGRADE)
        && !streams()
}

/// Compares the origin with the host that the request names.
fn of_origin(headers: &HeaderMap) -> Source {
    let Some(origin) = headers.get(ORIGIN) else { return Source::Unknown };
    let is_single = headers.get_all(ORIGIN).iter().nth(1).is_none();
    let origin = origin.to_str().ok().filter(|_| is_single).and_then(Origin::parse);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).and_then(HostPort::parse);
    match origin.zip(host) {
        Some((origin, host)) if origin.is_of(&host) => Source::Own,
        _ => Source::Foreign,
    }
}

fn of_fetch(headers: &HeaderMap) -> Source {
    let mut values = headers.get_all(SEC_FETCH_SITE).iter();
    match (values.next().map(HeaderValue::as_bytes), values.next()) {
        (None, _) | (Some(b"none"), None) => Source::Unknown,
        (Some(b"same-origin"), None) => Source::Own,
        _ => Source::Foreign,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use hyper::Request;

    const OWN: (&str, &str) = ("origin", "http://localhost:8000");
    const OTHER_PORT: (&str, &str) = ("origin", "http://localhost:3000");
    const SAME: (&str, &str) = ("sec-fetch-site", "same-origin");

    fn accepts(method: &str, headers: &[(&str, &str)]) -> bool {
        let request = Request::builder().method(method).header("host", "localhost:8000");
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
        accepts_login(&request.body(()).unwrap().into_parts().0, Answer::Whole)
    }

    #[test]
    fn own_page_may_send_everything() {
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            for headers in [&[OWN][..], &[SAME], &[OWN, SAME], &[SAME, ("upgrade", "websocket")]] {
                assert!(accepts(method, headers), "{method} {headers:?}");
            }
        }
        assert!(accepts("GET", &[SAME, ("accept", EVENT_STREAM)]));
    }

    #[test]
    fn foreign_page_may_send_nothing() {
        for headers in [
            &[OTHER_PORT][..],
            &[("origin", "http://127.0.0.1:8000")],
            &[("origin", "null")],
            &[OWN, OTHER_PORT],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "Same-Origin")],
            &[SAME, ("sec-fetch-site", "cross-site")],
            &[OWN, ("sec-fetch-site", "cross-site")],
            &[OTHER_PORT, SAME],
        ] {
            for method in ["GET", "POST"] {
                assert!(!accepts(method, headers), "{method} {headers:?}");
            }
        }
    }

    #[test]
    fn unknown_page_may_read_but_neither_change_nor_stay() {
        for headers in [&[][..], &[("sec-fetch-site", "none")]] {
            assert!(accepts("GET", headers) && accepts("HEAD", headers), "{headers:?}");
            assert!(!accepts("POST", headers) && !accepts("DELETE", headers), "{headers:?}");
            let more = |header| [headers, &[header]].concat();
            assert!(!accepts("GET", &more(("upgrade", "websocket"))), "{headers:?}");
            assert!(!accepts("GET", &more(("accept", "text/html, Text/Event-Stream"))));
        }
    }

    #[test]
    fn unknown_page_gets_no_stream_whatever_it_accepts() {
        let streams = |headers: &[(&str, &str)]| {
            let request = Request::builder().header("host", "localhost:8000");
            let request =
                headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
            accepts_login(&request.body(()).unwrap().into_parts().0, Answer::Stream)
        };
        for headers in [&[][..], &[("accept", "*/*")], &[("sec-fetch-site", "none")]] {
            assert!(!streams(headers), "{headers:?}");
        }
        assert!(streams(&[OWN]) && streams(&[SAME]) && !streams(&[OTHER_PORT]));
    }

    #[test]
    fn page_behind_a_proxy_has_the_port_of_its_scheme() {
        for (host, origin, is_own) in [
            ("tools.example", "https://tools.example", true),
            ("tools.example", "http://tools.example", true),
            ("tools.example:443", "https://tools.example", true),
            ("tools.example:8443", "https://tools.example", false),
            ("tools.example", "https://app.example", false),
        ] {
            let origin = Origin::parse(origin).unwrap();
            assert_eq!(origin.is_of(&HostPort::parse(host).unwrap()), is_own, "{host}");
        }
    }
}
