//! Grants that change during a call: they hold for its next request.

use super::secrets::{SECRET, call, granted, url};
use super::server::{Server, Wire, ok};
use super::{Call, grants, local};
use crate::{PluginGrants, REDACTED};
use std::sync::Arc;

#[tokio::test]
async fn revoked_rule_ends_with_the_next_request() {
    let server = Server::echo().await;
    let url = url(&server);
    let mut call = Call::with_rules(&local(), &[&format!("GET {url} private")]);
    call.get(&url).await.unwrap();
    call.grants.replace(PluginGrants::default());
    assert!(call.get(&url).await.is_err());
    assert_eq!((server.heads().len(), call.refusal().as_str()), (1, "no_rule"));
}

#[tokio::test]
async fn added_rule_holds_from_the_next_request_on() {
    let server = Server::echo().await;
    let url = url(&server);
    let mut call = Call::with_rules(&local(), &["GET https://api.example.org"]);
    assert!(call.get(&url).await.is_err());
    call.grants.replace(grants(&[&format!("GET {url} private")]));
    call.get(&url).await.unwrap();
    assert_eq!(server.heads().len(), 1);
}

#[tokio::test]
async fn revoked_secret_is_not_sent_and_stays_redacted() {
    let repeats = Arc::new(|_: &str| Wire::Bytes(ok(format!("it was {SECRET}").as_bytes())));
    let server = Server::start(repeats).await;
    let mut call = call(&server);
    call.get(&url(&server)).await.unwrap();
    for _ in 0..2 {
        call.grants.replace(grants(&[&format!("GET {} private", url(&server))]));
        let body = call.get(&url(&server)).await.unwrap().body;
        assert_eq!(String::from_utf8_lossy(&body), format!("it was {REDACTED}"));
    }
    let heads = server.heads();
    let carries: Vec<bool> = heads.iter().map(|head| head.contains(SECRET)).collect();
    assert_eq!(carries, [true, false, false]);
    call.grants.replace(granted(server.port(), "http"));
    call.get(&url(&server)).await.unwrap();
    assert!(server.heads()[3].contains(SECRET));
}
