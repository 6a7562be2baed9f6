//! Requests of web pages from other origins (CORS): the answer to a browser's preflight, and the
//! headers by which the browser lets a page read a response.

use super::response_body::Body;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use hyper::{Method, Request, Response, StatusCode};

/// The methods of the transport.
const METHODS: &str = "POST, GET, DELETE";
/// The headers that clients of the transport send. `content-type` and `accept` are sent with values
/// that a browser asks about.
const HEADERS: [&str; 8] = [
    "authorization",
    "content-type",
    "accept",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "last-event-id",
];
/// The prefix of headers that repeat parameters of a tool.
const PARAMETERS: &str = "mcp-param-";
/// The headers of a response that a page needs.
const SHOWN: &str = "mcp-session-id, mcp-protocol-version, retry-after, www-authenticate";
/// The time for which a browser may keep the answer to a preflight, in seconds.
const KEPT: &str = "600";

/// Returns true if a browser asks whether a page may send another request.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    *request.method() == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Builds the answer to a preflight of an allowed origin.
pub(super) fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    if let Ok(allowed) = HeaderValue::try_from(allowed(asked)) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(KEPT));
    headers.append(VARY, HeaderValue::from_static("access-control-request-headers"));
    response
}

/// Returns the allowed headers: those of the transport, and the requested ones for parameters,
/// whose names depend on the tool.
fn allowed(asked: &HeaderMap) -> String {
    let wanted = asked
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let names = wanted
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok());
    let parameters = names
        .filter(|name| name.as_str().starts_with(PARAMETERS))
        .map(|name| name.as_str().to_owned());
    HEADERS.map(str::to_owned).into_iter().chain(parameters).collect::<Vec<_>>().join(", ")
}

/// Lets the pages of an allowed origin read a response. Every response varies by origin, so that no
/// cache gives the response for one origin, such as a refusal, to the pages of another.
pub(super) fn add_headers(headers: &mut HeaderMap, allowed: Option<HeaderValue>) {
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = allowed {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SHOWN));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn preflight_allows_the_headers_of_the_transport_only() {
        let mut asked = HeaderMap::new();
        let wanted =
            "content-type, Mcp-Param-Text, x-evil, mcp-param-a b, cookie, palisade-page-key";
        asked.append(ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static(wanted));
        asked.append(ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static("mcp-param-more"));
        let allowed = allowed(&asked);
        assert!(allowed.ends_with(", last-event-id, mcp-param-text, mcp-param-more"), "{allowed}");
        assert_eq!(allowed.split(", ").count(), HEADERS.len() + 2, "{allowed}");
        assert!(HeaderValue::try_from(allowed).is_ok());
    }

    #[test]
    fn preflight_has_an_origin_and_a_requested_method() {
        let asks = |method: Method, headers: &[HeaderName]| {
            let request = Request::builder().method(method);
            is_preflight(
                &headers.iter().fold(request, |it, name| it.header(name, "POST")).body(()).unwrap(),
            )
        };
        assert!(asks(Method::OPTIONS, &[ORIGIN, ACCESS_CONTROL_REQUEST_METHOD]));
        assert!(!asks(Method::POST, &[ORIGIN, ACCESS_CONTROL_REQUEST_METHOD]));
        assert!(
            !asks(Method::OPTIONS, &[ORIGIN])
                && !asks(Method::OPTIONS, &[ACCESS_CONTROL_REQUEST_METHOD])
        );
    }
}
