//! A call ends at its deadline and at its cancellation, whatever a server does.

use super::Granted;
use super::server::Server;
use palisade::events::Event;
use palisade::{Call, CancellationToken};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

/// Starts a server that begins a response and never ends it.
fn stuck() -> Server {
    Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        let _ = stream.read(&mut [0]);
    })
}

/// The upper bound for a call that is stopped, also on a busy machine. The server never ends by
/// itself before 30 s.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn call_ends_at_its_deadline_while_a_server_is_silent() {
    let server = stuck();
    let rules = [server.rule("GET")];
    let stage = Granted { rules: &[&rules[0]], ..Granted::default() }.stage();
    let begin = Instant::now();
    let call = Call::new("send_read", json!({"authority": server.authority()}).to_string());
    let call = call.with_timeout(Duration::from_millis(200));
    let result = stage.host.dispatch(&stage.session(), call).await.to_json();
    assert_eq!(result["error"]["class"], "timeout", "{result}");
    assert!(begin.elapsed() < SOON);
}

#[tokio::test]
async fn call_ends_when_it_is_cancelled_while_a_server_is_silent() {
    let server = stuck();
    let rules = [server.rule("GET")];
    let stage = Granted { rules: &[&rules[0]], ..Granted::default() }.stage();
    let token = CancellationToken::new();
    let call = Call::new("send_read", json!({"authority": server.authority()}).to_string());
    let running = stage.begin(&stage.session(), call.with_cancellation(token.clone()));
    while server.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    token.cancel();
    let result = running.await.unwrap().to_json();
    assert_eq!(result["error"]["class"], "cancelled", "{result}");
    let ends = stage.recorder.events().iter().filter(|event| Event::is_terminal(event)).count();
    assert_eq!(ends, 1);
}
