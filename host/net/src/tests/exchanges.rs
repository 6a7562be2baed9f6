//! Exchanges of the host itself: this machine without encryption, others with, and bounds.

use super::server::{Server, Wire, ok, with_headers};
use super::{local, network};
use crate::{Answer, Exchange, ExchangeError, Network, Reach, limits};
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::sync::Arc;

fn get(url: String, reach: Reach) -> Exchange {
    let headers = HeaderMap::new();
    Exchange { method: Method::GET, url, headers, body: Bytes::new(), reach, most: 1_000 }
}

/// Exchanges on a thread that may block.
async fn exchange(network: &Network, exchange: Exchange) -> Result<Answer, ExchangeError> {
    let network = network.clone();
    tokio::task::spawn_blocking(move || network.exchange(exchange)).await.unwrap()
}

#[tokio::test]
async fn this_machine_is_reached_without_encryption_and_no_other() {
    let server = Server::echo().await;
    // The resolver of the test knows no `localhost`, and need not.
    let network = local();
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("http://{host}:{}/a?b", server.port());
        let answer = exchange(&network, get(url, Reach::Public)).await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.body.as_slice()), (200, &b"/a?b"[..]));
    }
    assert!(server.heads()[0].contains(&format!("host: localhost:{}", server.port())));
    for host in ["server.test", "10.0.0.1", "localhost.test"] {
        let url = format!("http://{host}:{}/", server.port());
        let refused = exchange(&network, get(url, Reach::Private)).await;
        assert!(matches!(refused, Err(ExchangeError::Unencrypted { .. })), "{host}: {refused:?}");
    }
    assert_eq!(server.heads().len(), 2);
}

#[tokio::test]
async fn private_address_of_a_name_is_reached_only_on_purpose() {
    let network = network(&[("server.test", &["127.0.0.1"]), ("meta.test", &["169.254.169.254"])]);
    for (host, reach) in
        [("server.test", Reach::Public), ("meta.test", Reach::Private), ("[::1]", Reach::Public)]
    {
        let refused = exchange(&network, get(format!("https://{host}/"), reach)).await;
        assert!(matches!(refused, Err(ExchangeError::Address { .. })), "{host}: {refused:?}");
    }
}

#[tokio::test]
async fn name_of_another_machine_never_means_this_one() {
    let server = Server::echo().await;
    let network = network(&[("a.test", &["127.0.0.2"]), ("b.test", &["::1", "::ffff:127.0.0.1"])]);
    for host in ["a.test", "b.test"] {
        let url = format!("https://{host}:{}/", server.port());
        let refused = exchange(&network, get(url, Reach::Private)).await;
        assert!(matches!(refused, Err(ExchangeError::Address { .. })), "{host}: {refused:?}");
    }
    assert_eq!(server.heads().len(), 0);
}

#[tokio::test]
async fn body_of_the_limit_is_read_and_a_longer_one_refused() {
    for (length, is_read) in [(1_000, true), (1_001, false)] {
        let body = vec![b'x'; length];
        let whole = Server::start(Arc::new({
            let body = body.clone();
            move |_: &str| Wire::Bytes(ok(&body))
        }));
        let chunked = Server::start(Arc::new(move |_: &str| {
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            let head = format!("{head}{:x}\r\n", body.len());
            Wire::Bytes([head.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat())
        }));
        for server in [whole.await, chunked.await] {
            let url = format!("http://127.0.0.1:{}/", server.port());
            let answer = exchange(&local(), get(url, Reach::Public)).await;
            match answer {
                Ok(answer) => assert!(is_read && answer.body.len() == length),
                Err(error) => {
                    assert!(!is_read && matches!(error, ExchangeError::TooLarge { most: 1_000 }));
                }
            }
        }
    }
}

#[tokio::test]
async fn failure_is_an_answer_with_the_beginning_of_its_body() {
    let endless = Server::start(Arc::new(|_: &str| {
        let head = "HTTP/1.1 500 x\r\ntransfer-encoding: chunked\r\n\r\n";
        Wire::Endless(head.as_bytes().to_vec(), b"5\r\nabcde\r\n".to_vec())
    }))
    .await;
    let url = format!("http://127.0.0.1:{}/", endless.port());
    let answer = exchange(&local(), get(url, Reach::Public)).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.body.len()), (500, limits::ERROR_BODY));
}

#[tokio::test]
async fn redirect_and_endless_headers_are_not_followed() {
    let moved = Server::start(Arc::new(|_: &str| {
        let text = String::from_utf8(with_headers("location: /b\r\n", b"")).unwrap();
        Wire::Bytes(text.replace("200 OK", "302 x").into_bytes())
    }))
    .await;
    let url = format!("http://127.0.0.1:{}/a", moved.port());
    let answer = exchange(&local(), get(url, Reach::Public)).await.unwrap();
    assert_eq!((answer.status.as_u16(), moved.heads().len()), (302, 1));
    for (head, more) in [
        ("HTTP/1.1 200 OK\r\n", "x-a: b\r\n"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"),
    ] {
        let endless = Server::start(Arc::new(move |_: &str| {
            Wire::Endless(head.as_bytes().to_vec(), more.as_bytes().to_vec())
        }))
        .await;
        let url = format!("http://127.0.0.1:{}/", endless.port());
        let refused = exchange(&local(), get(url, Reach::Public)).await;
        assert!(matches!(refused, Err(ExchangeError::HeadTooLong)), "{refused:?}");
    }
}
