//! Bounds on headers, bodies, time and connections.

use super::server::{Server, Wire, ok};
use super::{Call, grants, local, request, request_with};
use crate::limits;
use bytes::Bytes;
use palisade::SideEffects;
use std::sync::Arc;
use std::time::Duration;
use wasmtime_wasi_http::{Error, RequestOptions};

/// Starts a server with this answer, and returns it with a call that may request it, and its URL.
async fn server(answer: impl Fn(&str) -> Wire + Send + Sync + 'static) -> (Server, Call, String) {
    let server = Server::start(Arc::new(answer)).await;
    let url = format!("http://server.test:{}/", server.port());
    let call = Call::with_rules(&local(), &[&format!("GET,POST {url} private")]);
    (server, call, url)
}

#[tokio::test]
async fn forty_thousand_headers_are_refused() {
    for header in ["a: b\r\n".to_owned(), format!("a: {}\r\n", "b".repeat(4_000))] {
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", header.repeat(40_000));
        let (_server, mut call, url) =
            server(move |_| Wire::Bytes(head.clone().into_bytes())).await;
        let fetched = call.get(&url).await;
        assert!(matches!(fetched, Err(Error::HttpResponseHeaderSectionSize(_))), "{fetched:?}");
    }
}

#[tokio::test]
async fn headers_beyond_their_bound_are_refused_also_if_they_come_at_once() {
    for (count, is_accepted) in [(60, true), (126, false)] {
        let header = format!("a: {}\r\n", "b".repeat(900));
        let head = format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", header.repeat(count));
        let (_server, mut call, url) =
            server(move |_| Wire::Bytes(head.clone().into_bytes())).await;
        let fetched = call.get(&url).await;
        let is_refused = matches!(fetched, Err(Error::HttpResponseHeaderSectionSize(_)));
        assert_eq!((fetched.is_ok(), is_refused), (is_accepted, !is_accepted), "{count}");
    }
}

#[tokio::test]
async fn endless_body_ends_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let (_server, mut call, url) =
        server(move |_| Wire::Endless(head.clone(), vec![b'x'; 1 << 16])).await;
    let fetched = call.get(&url).await;
    assert!(
        matches!(fetched, Err(Error::HttpResponseBodySize(Some(limits::RESPONSE_BODIES)))),
        "{:?}",
        fetched.map(|fetched| fetched.body.len())
    );
    // The limit is that of the call: nothing is left for its next response.
    assert!(matches!(call.get(&url).await, Err(Error::HttpResponseBodySize(_))));
}

#[tokio::test]
async fn endless_chunks_and_head_end_as_well() {
    let head = b"HTTP/1.1 200 OK\r\n".to_vec();
    let (_server, mut call, url) =
        server(move |_| Wire::Endless(head.clone(), b"x-more: and more\r\n".to_vec())).await;
    assert!(matches!(call.get(&url).await, Err(Error::HttpResponseHeaderSectionSize(_))));
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let chunk = [&b"8000\r\n"[..], &[b'x'; 0x8000], b"\r\n"].concat();
    let (_server, mut call, url) =
        server(move |_| Wire::Endless(head.clone(), chunk.clone())).await;
    assert!(matches!(call.get(&url).await, Err(Error::HttpResponseBodySize(_))));
}

#[tokio::test]
async fn endless_interim_responses_end_as_well() {
    let interim = b"HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n".to_vec();
    let few = [interim.repeat(20), ok(b"hello")].concat();
    let (_server, mut call, url) = server(move |_| Wire::Bytes(few.clone())).await;
    assert_eq!(call.get(&url).await.unwrap().body, b"hello");
    let many = [interim.repeat(200), ok(b"hello")].concat();
    let (_server, mut call, url) = server(move |_| Wire::Bytes(many.clone())).await;
    let fetched = call.get(&url).await;
    assert!(matches!(fetched, Err(Error::HttpResponseHeaderSectionSize(_))), "{fetched:?}");
    let (_server, mut call, url) =
        server(move |_| Wire::Endless(Vec::new(), interim.clone())).await;
    let fetched = call.get(&url).await;
    assert!(matches!(fetched, Err(Error::HttpResponseHeaderSectionSize(_))), "{fetched:?}");
}

#[tokio::test]
async fn plugin_that_holds_connections_leaves_some_to_another() {
    let silence = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n".to_vec();
    let greedy_server = Server::start(Arc::new(move |_| Wire::Silence(silence.clone()))).await;
    let server = Server::start(Arc::new(|_| Wire::Bytes(ok(b"hello")))).await;
    let (greedy_url, url) = (
        format!("http://server.test:{}/", greedy_server.port()),
        format!("http://server.test:{}/", server.port()),
    );
    let network = local();
    let mut held = Vec::new();
    let mut calls = Vec::new();
    // More requests than the process has connections: the last ones wait.
    for _ in 0..=limits::CONNECTIONS as usize / limits::CONNECTIONS_OF_CALL {
        let mut call = Call::with_rules(&network, &[&format!("GET {greedy_url} private")]);
        for _ in 0..limits::CONNECTIONS_OF_CALL {
            let mut sending =
                Box::pin(call.send(request("GET", &greedy_url), RequestOptions::default()));
            let sent = tokio::time::timeout(Duration::from_millis(200), &mut sending).await;
            drop(sending);
            match sent {
                Ok(sent) => held.push(sent.unwrap()),
                Err(_) => break,
            }
        }
        calls.push(call);
        if held.len() < calls.len() * limits::CONNECTIONS_OF_CALL {
            break;
        }
    }
    assert_eq!(held.len(), limits::CONNECTIONS as usize / 2, "one plugin gets half");
    let other = grants(&[&format!("GET {url} private")]);
    let mut other = Call::of(&network, other, SideEffects::Read, b"another plugin");
    assert_eq!(other.get(&url).await.unwrap().body, b"hello");
}

#[tokio::test]
async fn silent_server_is_given_up() {
    let short = Some(Duration::from_millis(20));
    let options = RequestOptions {
        first_byte_timeout: short,
        between_bytes_timeout: short,
        connect_timeout: None,
    };
    let (_server, mut call, url) = server(|_| Wire::Silence(Vec::new())).await;
    let fetched = call.fetch_with(request("GET", &url), options).await;
    assert!(matches!(fetched, Err(Error::HttpResponseTimeout)), "{fetched:?}");
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec();
    let (_server, mut call, url) = server(move |_| Wire::Silence(half.clone())).await;
    let fetched = call.fetch_with(request("GET", &url), options).await;
    assert!(matches!(fetched, Err(Error::ConnectionReadTimeout)), "{fetched:?}");
}

#[tokio::test]
async fn cut_body_is_an_error() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec();
    let (_server, mut call, url) = server(move |_| Wire::Bytes(half.clone())).await;
    assert!(matches!(call.get(&url).await, Err(Error::Hyper(_))));
}

#[tokio::test]
async fn request_body_is_bounded() {
    let (_server, mut call, url) = server(|_| Wire::Silence(Vec::new())).await;
    let body = Bytes::from(vec![0; limits::REQUEST_BODIES as usize + 1]);
    assert!(call.fetch(request_with("POST", &url, body)).await.is_err());
    let long = format!("{url}{}", "x".repeat(limits::PATH));
    assert!(matches!(call.get(&long).await, Err(Error::HttpRequestUriInvalid)));
}

#[tokio::test]
async fn call_has_places_for_its_connections() {
    let (server, mut call, url) =
        server(|_| Wire::Silence(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n".to_vec())).await;
    let mut open = Vec::new();
    for _ in 0..limits::CONNECTIONS_OF_CALL {
        open.push(call.send(request("GET", &url), RequestOptions::default()).await.unwrap());
    }
    assert!(matches!(call.get(&url).await, Err(Error::ConnectionLimitReached)));
    assert_eq!(call.refusal(), "too_many_requests");
    assert_eq!(server.heads().len(), limits::CONNECTIONS_OF_CALL);
}

#[tokio::test]
async fn a_hundred_fetches_at_once_succeed() {
    let server = Server::start(Arc::new(|_| Wire::Bytes(ok(b"hello")))).await;
    let url = format!("http://server.test:{}/", server.port());
    let network = local();
    let fetches: Vec<_> = (0..100)
        .map(|_| {
            let granted = grants(&[&format!("GET {url} private")]);
            let mut call = Call::new(&network, granted, SideEffects::Read);
            let url = url.clone();
            async move { call.get(&url).await.map(|fetched| fetched.body) }
        })
        .map(tokio::spawn)
        .collect();
    for fetch in fetches {
        assert_eq!(fetch.await.unwrap().unwrap(), b"hello");
    }
    assert_eq!(server.heads().len(), 100);
}
