//! Secrets: sent to their host, and never seen by the guest.

use super::server::{Server, Wire, ok, with_headers};
use super::{Call, local, network, request, with_secrets};
use crate::{PluginGrants, REDACTED, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use palisade::SideEffects;
use std::sync::Arc;
use wasmtime_wasi_http::{Error, WasiHttpHooks as _};

/// A secret with characters that each form writes in another way.
pub(super) const SECRET: &str = "planted/se\"cret+for the_tests=";

fn key(name: &str) -> Option<String> {
    (name == "KEY").then(|| SECRET.to_owned())
}

pub(super) fn granted(port: u16, scheme: &str) -> PluginGrants {
    let rules = [
        format!("GET {scheme}://server.test:{port} private"),
        format!("GET http://other.test:{port} private"),
    ];
    let secret = Secret::parse("KEY", "server.test", "Authorization: Bearer").unwrap();
    with_secrets(&[&rules[0], &rules[1]], vec![secret], &key)
}

pub(super) fn call(server: &Server) -> Call {
    let network = network(&[("server.test", &["127.0.0.1"]), ("other.test", &["127.0.0.1"])]);
    Call::new(&network, granted(server.port(), "http"), SideEffects::Read)
}

pub(super) fn url(server: &Server) -> String {
    format!("http://server.test:{}/", server.port())
}

#[tokio::test]
async fn secret_goes_to_its_host_alone() {
    let server = Server::echo().await;
    let mut call = call(&server);
    call.get(&url(&server)).await.unwrap();
    call.get(&url(&server).replace("server.test", "other.test")).await.unwrap();
    let heads = server.heads();
    let sent = format!("authorization: Bearer {SECRET}\r\n");
    assert!(
        heads[0].contains(&sent) && heads[0].contains("accept-encoding: identity\r\n"),
        "{heads:?}"
    );
    assert!(!heads[1].contains(SECRET) && !heads[1].contains("authorization"), "{heads:?}");
}

#[tokio::test]
async fn guest_can_neither_set_nor_keep_the_header() {
    let server = Server::echo().await;
    let mut call = call(&server);
    assert!(call.data.hooks.is_forbidden_header(&HeaderName::from_static("authorization")));
    // Also not past the hook that is asked for each header.
    for host in ["server.test", "other.test"] {
        let mut own = request("GET", &url(&server).replace("server.test", host));
        own.headers_mut().insert("authorization", HeaderValue::from_static("of the guest"));
        call.fetch(own).await.unwrap();
    }
    assert!(
        server.heads().iter().all(|head| !head.contains("of the guest")),
        "{:?}",
        server.heads()
    );
}

#[tokio::test]
async fn header_of_the_host_has_no_other_spelling() {
    let server = Server::echo().await;
    let mut call = call(&server);
    let mut is_forbidden =
        |name: &'static str| call.data.hooks.is_forbidden_header(&HeaderName::from_static(name));
    for name in [
        "transfer_encoding",
        "content_length",
        "content.length",
        "x_http_method_override",
        "x.http!method.override",
        "x-method",
    ] {
        assert!(is_forbidden(name), "{name}");
    }
    assert!(!is_forbidden("content-length") && !is_forbidden("content-type"));
    let mut own = request("GET", &url(&server));
    own.headers_mut().insert("accept_encoding", HeaderValue::from_static("gzip"));
    call.fetch(own).await.unwrap();
    assert!(server.heads().iter().all(|head| !head.contains("gzip")), "{:?}", server.heads());
}

#[tokio::test]
async fn repeated_secret_is_redacted_in_every_form() {
    let percent = SECRET
        .replace('/', "%2F")
        .replace('"', "%22")
        .replace('+', "%2B")
        .replace(' ', "%20")
        .replace('=', "%3D");
    let json = SECRET.replace('"', "\\\"");
    let entity = |of: fn(u32) -> String| SECRET.chars().map(|it| of(it.into())).collect();
    let forms: [String; 8] = [
        SECRET.to_owned(),
        percent,
        json,
        entity(|code| format!("&#{code};")),
        entity(|code| format!("&#x{code:x};")),
        entity(|code| format!("&#X{code:04X}")),
        STANDARD.encode(SECRET),
        STANDARD.encode(format!("user:{SECRET}")),
    ];
    for form in forms {
        let header = format!("x-repeated: {form}\r\n");
        let body = format!("before {form} after");
        let answer = with_headers(&header, body.as_bytes());
        let server = Server::start(Arc::new(move |_| Wire::Bytes(answer.clone()))).await;
        let fetched = call(&server).get(&url(&server)).await.unwrap();
        let body = String::from_utf8(fetched.body).unwrap();
        let header = fetched.headers["x-repeated"].to_str().unwrap();
        for text in [body.as_str(), header] {
            assert!(text.contains(REDACTED) && !text.contains(&form), "{form}: {text}");
        }
        assert!(body.starts_with("before ") && body.ends_with(" after"), "{body}");
    }
}

#[tokio::test]
async fn encoded_response_to_a_secret_is_refused() {
    for encoding in ["gzip", "identity, br", "x-unknown"] {
        let answer = with_headers(&format!("content-encoding: {encoding}\r\n"), b"anything");
        let server = Server::start(Arc::new(move |_| Wire::Bytes(answer.clone()))).await;
        let mut call = call(&server);
        let fetched = call.get(&url(&server)).await;
        assert!(matches!(fetched, Err(Error::HttpResponseContentCoding(_))), "{fetched:?}");
        assert_eq!(call.refusal(), "response_encoded");
        let other = url(&server).replace("server.test", "other.test");
        assert!(call.get(&other).await.is_ok(), "without a secret it is the guest's matter");
    }
}

#[tokio::test]
async fn secret_as_an_encoding_or_a_name_is_not_repeated() {
    let header = format!("content-encoding: {SECRET}\r\n");
    let answer = with_headers(&header, b"anything");
    let server = Server::start(Arc::new(move |_| Wire::Bytes(answer.clone()))).await;
    let mut call = call(&server);
    let failed = call.get(&url(&server)).await.unwrap_err();
    let shown = format!("{failed:?} {:?}", call.refusals);
    assert!(!shown.contains(SECRET) && shown.contains("unknown"), "{shown}");
    const NAME: &str = "PlantedKey-of-the-tests";
    let named = |name: &str| (name == "KEY").then(|| NAME.to_owned());
    let answer = with_headers(&format!("{NAME}: 1\r\nx-own: 2\r\n"), b"anything");
    let server = Server::start(Arc::new(move |_| Wire::Bytes(answer.clone()))).await;
    let secret = Secret::parse("KEY", "server.test", "x-key").unwrap();
    let rule = format!("GET {} private", url(&server));
    let granted = with_secrets(&[&rule], vec![secret], &named);
    let fetched = Call::new(&local(), granted, SideEffects::Read).get(&url(&server)).await.unwrap();
    let names: Vec<&str> = fetched.headers.keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["content-length", "x-own"]);
}

#[tokio::test]
async fn header_that_a_server_takes_for_the_secret_is_removed() {
    let server = Server::echo().await;
    let secret = Secret::parse("KEY", "server.test", "x-key").unwrap();
    let rule = format!("GET {} private", url(&server));
    let mut call =
        Call::new(&local(), with_secrets(&[&rule], vec![secret], &key), SideEffects::Read);
    let mut own = request("GET", &url(&server));
    for name in ["x_key", "x-http-method-override"] {
        assert!(call.data.hooks.is_forbidden_header(&HeaderName::from_static(name)), "{name}");
        own.headers_mut().insert(name, HeaderValue::from_static("of the guest"));
    }
    call.fetch(own).await.unwrap();
    assert!(!server.heads()[0].contains("of the guest"), "{:?}", server.heads());
}

#[tokio::test]
async fn part_of_a_document_is_not_requested_with_a_secret() {
    let server = Server::echo().await;
    let mut call = call(&server);
    for header in ["range", "request-range", "request_range"] {
        let mut part = request("GET", &url(&server));
        part.headers_mut().insert(header, HeaderValue::from_static("bytes=0-5"));
        assert!(call.fetch(part).await.is_err());
        assert_eq!(call.refusal(), "part_of_secret_refused");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn secret_is_not_sent_to_a_public_host_without_encryption() {
    let secret = Secret::parse("KEY", "server.test", "x-key").unwrap();
    let granted = with_secrets(&["GET http://server.test"], vec![secret], &key);
    let mut call = Call::new(&local(), granted, SideEffects::Read);
    assert!(call.get("http://server.test/").await.is_err());
    assert_eq!(call.refusal(), "secret_unencrypted");
}

#[tokio::test]
async fn secret_is_not_sent_to_a_public_address_without_encryption_whatever_the_rule_allows() {
    for host in ["8.8.4.4", "public.test"] {
        let secret = Secret::parse("KEY", host, "x-key").unwrap();
        let rule = format!("GET http://{host} private");
        let granted = with_secrets(&[&rule], vec![secret], &key);
        let network = network(&[("public.test", &["8.8.4.4"])]);
        let mut call = Call::new(&network, granted, SideEffects::Read);
        assert!(call.get(&format!("http://{host}/")).await.is_err());
        assert_eq!(call.refusal(), "secret_unencrypted", "{host}");
    }
}

#[tokio::test]
async fn secret_without_a_value_refuses_the_requests_of_its_host() {
    let server = Server::echo().await;
    let rule = format!("GET {} private", url(&server));
    let secret = Secret::parse("UNSET", "server.test", "x-key").unwrap();
    let granted = with_secrets(&[&rule], vec![secret], &key);
    let mut call = Call::new(&local(), granted, SideEffects::Read);
    assert!(call.get(&url(&server)).await.is_err());
    assert_eq!((call.refusal().as_str(), server.heads().len()), ("secret_unusable", 0));
}

#[tokio::test]
async fn no_error_or_description_shows_a_secret() {
    let server =
        Server::start(Arc::new(|head| Wire::Bytes(format!("{head} is no response").into_bytes())))
            .await;
    let mut call = call(&server);
    let failed = call.get(&url(&server)).await.unwrap_err();
    let grants = granted(server.port(), "http");
    let shown = format!("{failed:?} {failed} {:?} {grants:?} {:?}", call.refusals, grants.lines());
    assert!(!shown.contains("planted"), "{shown}");
    assert!(
        grants
            .lines()
            .iter()
            .any(|line| line == "secret KEY for server.test as authorization: Bearer")
    );
}

#[tokio::test]
async fn page_without_a_secret_is_unchanged() {
    let page = "a page ".repeat(100_000);
    let answer = ok(page.as_bytes());
    let server = Server::start(Arc::new(move |_| Wire::Bytes(answer.clone()))).await;
    let fetched = call(&server).get(&url(&server)).await.unwrap();
    assert_eq!(fetched.body, page.as_bytes());
}
