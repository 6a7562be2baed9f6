//! A request arrives only where a rule sends it.

use super::server::{Server, Wire};
use super::{Call, grants, local, network, request, request_with};
use bytes::Bytes;
use http::HeaderValue;
use palisade::SideEffects;
use std::sync::Arc;
use wasmtime_wasi_http::Error;

#[tokio::test]
async fn allowed_request_arrives_with_its_host() {
    let server = Server::echo().await;
    let rule = format!("GET http://server.test:{} private", server.port());
    let mut call = Call::with_rules(&local(), &[&rule]);
    let url = format!("http://Server.Test.:{}/a/path?query", server.port());
    let fetched = call.get(&url).await.unwrap();
    assert_eq!((fetched.status, fetched.body.as_slice()), (200, &b"/a/path?query"[..]));
    let heads = server.heads();
    let host = format!("host: server.test:{}\r\n", server.port());
    assert!(heads[0].starts_with("GET /a/path?query HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].to_lowercase().contains(&host), "{heads:?}");
}

#[tokio::test]
async fn nothing_arrives_without_a_rule() {
    let server = Server::echo().await;
    let port = server.port();
    let network = network(&[
        ("server.test", &["127.0.0.1"]),
        ("other.test", &["127.0.0.1"]),
        ("public.test", &["127.0.0.1", "::1"]),
    ]);
    let rules = [
        format!("GET http://server.test:{port} private"),
        format!("GET http://public.test:{port}"),
    ];
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    for (method, url, code) in [
        ("POST", format!("http://server.test:{port}/"), "no_rule"),
        ("GET", format!("https://server.test:{port}/"), "no_rule"),
        ("GET", format!("http://server.test:{}/", port ^ 1), "no_rule"),
        ("GET", format!("http://other.test:{port}/"), "no_rule"),
        ("GET", format!("http://a.server.test:{port}/"), "no_rule"),
        ("GET", format!("http://127.0.0.1:{port}/"), "no_rule"),
        ("GET", format!("http://user@server.test:{port}/"), "url_invalid"),
        ("CONNECT", format!("http://server.test:{port}/"), "method_refused"),
        ("`id`", format!("http://server.test:{port}/"), "method_refused"),
        ("GET", format!("http://public.test:{port}/"), "address_refused"),
    ] {
        let mut call = Call::with_rules(&network, &rules);
        assert!(call.fetch(request(method, &url)).await.is_err(), "{method} {url}");
        assert_eq!(call.refusal(), code, "{method} {url}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn class_bounds_the_methods_whatever_is_granted() {
    let server = Server::echo().await;
    let url = format!("http://server.test:{}/", server.port());
    let rule = format!("GET,HEAD,POST,DELETE {url} private");
    for (class, allowed) in [
        (SideEffects::None, &[][..]),
        (SideEffects::Read, &["GET", "HEAD"][..]),
        (SideEffects::Write, &["GET", "HEAD"][..]),
        (SideEffects::Execute, &["GET", "HEAD"][..]),
        (SideEffects::Network, &["GET", "HEAD", "POST", "DELETE"][..]),
    ] {
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            let before = server.heads().len();
            let mut call = Call::new(&local(), grants(&[&rule]), class);
            let fetched = call.fetch(request(method, &url)).await;
            let arrived = server.heads().len() - before;
            let is_allowed = allowed.contains(&method);
            assert_eq!(
                (fetched.is_ok(), arrived),
                (is_allowed, usize::from(is_allowed)),
                "{class} {method}"
            );
        }
    }
}

#[tokio::test]
async fn body_is_never_a_second_request() {
    let server = Server::echo().await;
    let url = format!("http://server.test:{}/", server.port());
    let rule = format!("GET,HEAD,POST {url} private");
    let smuggled = Bytes::from_static(b"DELETE /all HTTP/1.1\r\nhost: other.test\r\n\r\n");
    for method in ["GET", "HEAD"] {
        let mut call = Call::with_rules(&local(), &[&rule]);
        let mut sent = request_with(method, &url, smuggled.clone());
        sent.headers_mut().insert("content-length", HeaderValue::from_static("42"));
        assert!(call.fetch(sent).await.is_err(), "{method}");
        assert_eq!(call.refusal(), "body_refused");
        // A body of unknown length is not sent.
        call.fetch(request_with(method, &url, smuggled.clone())).await.unwrap();
    }
    let mut call = Call::with_rules(&local(), &[&rule]);
    call.fetch(request_with("POST", &url, smuggled)).await.unwrap();
    let heads = server.heads();
    assert_eq!(heads.len(), 3, "{heads:?}");
    for head in &heads {
        assert!(head.to_lowercase().contains("\r\nconnection: close\r\n"), "{head}");
        let has_body = head.contains("content-length") || head.contains("chunked");
        assert_eq!(has_body, head.starts_with("POST"), "{head}");
    }
}

#[tokio::test]
async fn redirect_is_the_guests_own_new_request() {
    let elsewhere = Server::echo().await;
    let location = format!("http://127.0.0.1:{}/secret", elsewhere.port());
    let answer = format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    let server = Server::start(Arc::new(move |_| Wire::Bytes(answer.clone().into_bytes()))).await;
    let rule = format!("GET http://server.test:{} private", server.port());
    let mut call = Call::with_rules(&local(), &[&rule]);
    let fetched = call.get(&format!("http://server.test:{}/", server.port())).await.unwrap();
    assert_eq!(
        (fetched.status, fetched.headers["location"].to_str().unwrap()),
        (302, location.as_str())
    );
    assert!(matches!(call.get(&location).await, Err(Error::HttpRequestDenied)));
    assert_eq!(elsewhere.heads(), Vec::<String>::new());
}
