//! Checks of the protocol's HTTP headers.

use crate::protocol::methods::TOOLS_CALL;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use rmcp::model::ProtocolVersion;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_MCP_METHOD, HEADER_MCP_NAME, HEADER_MCP_PROTOCOL_VERSION,
    HEADER_SESSION_ID, JSON_MIME_TYPE,
};

/// The prefix of headers that repeat parameters.
const PARAMETERS: &str = "mcp-param-";

/// Returns true if the headers are those of a simple call of this tool: each occurs once, and none
/// needs further checks.
pub(super) fn are_of_simple_call(headers: &HeaderMap, tool: &str) -> bool {
    let is = |name: &str, value: &str| only(headers, name) == Some(value);
    is(HEADER_MCP_PROTOCOL_VERSION, ProtocolVersion::V_2026_07_28.as_str())
        && is(HEADER_MCP_METHOD, TOOLS_CALL)
        && is(HEADER_MCP_NAME, tool)
        && only(headers, CONTENT_TYPE.as_str()).is_some_and(|sent| is_media(sent, JSON_MIME_TYPE))
        && only(headers, ACCEPT.as_str()).is_some_and(|accepted| {
            [JSON_MIME_TYPE, EVENT_STREAM_MIME_TYPE]
                .iter()
                .all(|kind| accepted.split(',').any(|accepted| is_media(accepted, kind)))
        })
        && !headers.contains_key(HEADER_SESSION_ID)
        && !headers.keys().any(|name| name.as_str().starts_with(PARAMETERS))
}

/// Returns a protocol header that occurs more than once. Proxies and servers could disagree about
/// which value counts.
pub(super) fn repeated(headers: &HeaderMap) -> Option<&'static str> {
    [HEADER_MCP_PROTOCOL_VERSION, HEADER_MCP_METHOD, HEADER_MCP_NAME, HEADER_SESSION_ID]
        .into_iter()
        .find(|name| headers.get_all(*name).iter().nth(1).is_some())
}

/// Returns true if the body of a request is named JSON, as `rmcp` checks it.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| is_media(kind, JSON_MIME_TYPE))
}

/// Returns the id of the session that a request belongs to.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER_SESSION_ID)?.to_str().ok()
}

/// Returns the revision that a request names in its headers.
pub(super) fn version(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER_MCP_PROTOCOL_VERSION)?.to_str().ok()
}

fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

fn is_media(text: &str, kind: &str) -> bool {
    text.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    #[test]
    fn plain_call_headers_match_the_body() {
        let fields = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
            ("content-type", "application/json; charset=utf-8"),
            ("accept", "text/event-stream, application/json"),
        ];
        let taken = |sent: &[(&'static str, &'static str)]| {
            let headers: HeaderMap = sent
                .iter()
                .map(|(name, value)| {
                    (HeaderName::from_static(name), HeaderValue::from_static(value))
                })
                .collect();
            are_of_simple_call(&headers, "echo")
        };
        assert!(taken(&fields));
        for left_out in 0..fields.len() {
            let rest: Vec<_> = (0..fields.len())
                .filter(|field| *field != left_out)
                .map(|field| fields[field])
                .collect();
            assert!(!taken(&rest), "without {}", fields[left_out].0);
        }
        for (name, value) in [
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-method", "tools/list"),
            ("mcp-name", "other"),
            ("content-type", "text/plain"),
            ("accept", "application/json"),
        ] {
            let other: Vec<_> = fields
                .iter()
                .map(|field| if field.0 == name { (name, value) } else { *field })
                .collect();
            assert!(!taken(&other), "{name}: {value}");
        }
        assert!(!taken(&[&fields[..], &[("mcp-session-id", "s")]].concat()));
        assert!(!taken(&[&fields[..], &[("mcp-param-text", "hello")]].concat()));
    }

    #[test]
    fn repeated_header_takes_the_slow_path() {
        let mut headers = HeaderMap::new();
        headers.append("mcp-name", HeaderValue::from_static("echo"));
        assert_eq!(only(&headers, "mcp-name"), Some("echo"));
        headers.append("mcp-name", HeaderValue::from_static("echo"));
        assert_eq!(only(&headers, "mcp-name"), None);
    }
}
