//! HTTP: calls are cancelled by their client, by its disconnection, and by the end of the session
//! or of the server.

use super::http::{asked, request, session};
use super::{call, serving};
use palisade_tests::guest::{CANCEL_COMPUTE, LOADER_GOOD};
use palisade_tests::mcp::{MODERN, modern};
use palisade_tests::mcp_http::Endpoint;
use palisade_tests::{Program, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Returns a program with a tool that never ends and one that does.
fn telling(world: &World) -> Program<'_> {
    serving(world, CANCEL_COMPUTE).args(["--plugins"]).args([LOADER_GOOD.directory()])
}

/// Waits until an event contains all of these words.
fn wait_for_event(file: &std::path::Path, words: &[&str]) {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.lines().any(|line| words.iter().all(|word| line.contains(word))) {
            return;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{words:?} is not in the output: {text}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn modern_disconnect_cancels_the_call() {
    let world = World::new();
    let events = world.home().join("events.jsonl");
    let endpoint = Endpoint::start(telling(&world), &["--events", events.to_str().unwrap()]);
    let headers =
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "compute")];
    let message = request("tools/call", &modern(call("compute", json!({})), &json!({})));
    let socket = endpoint.begin("POST", &headers, &message.to_string());
    wait_for_event(&events, &["tool.called", "compute"]);
    drop(socket);
    wait_for_event(&events, &["tool.failed", "cancelled"]);
    assert_eq!(asked(&endpoint, "good", &[]).status, 200);
}

/// Disconnects with `leave` in the middle of a pipelined request.
fn left_in_the_middle(leave: fn(TcpStream) -> Option<TcpStream>) {
    let world = World::new();
    let events = world.home().join("events.jsonl");
    let endpoint = Endpoint::start(telling(&world), &["--events", events.to_str().unwrap()]);
    let headers =
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "compute")];
    let message = request("tools/call", &modern(call("compute", json!({})), &json!({})));
    let mut socket = endpoint.begin("POST", &headers, &message.to_string());
    wait_for_event(&events, &["tool.called", "compute"]);
    socket.write_all(b"POST /mcp HTTP/1.1\r\nHost: ").unwrap();
    // A later request on another connection is answered, so the server has read this one.
    assert_eq!(asked(&endpoint, "good", &[]).status, 200);
    let (_left, start) = (leave(socket), Instant::now());
    wait_for_event(&events, &["tool.failed", "cancelled"]);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn disconnect_during_a_further_request_cancels_the_call() {
    left_in_the_middle(|socket| {
        drop(socket);
        None
    });
}

#[test]
fn half_closed_connection_counts_as_disconnect() {
    left_in_the_middle(|socket| {
        socket.shutdown(Shutdown::Write).unwrap();
        Some(socket)
    });
}

#[test]
fn session_call_is_cancelled_by_client_and_session_end() {
    let world = World::new();
    let events = world.home().join("events.jsonl");
    let endpoint = Endpoint::start(telling(&world), &["--events", events.to_str().unwrap()]);
    let id = session(&endpoint);
    let own = [("Mcp-Session-Id", id.as_str())];
    let mut first = endpoint.begin(
        "POST",
        &own,
        &request("tools/call", &call("compute", json!({}))).to_string(),
    );
    wait_for_event(&events, &["tool.called", "compute"]);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(endpoint.post(&own, &cancel).status, 202);
    wait_for_event(&events, &["tool.failed", "cancelled"]);
    let mut answer = String::new();
    first.read_to_string(&mut answer).unwrap();
    assert!(!answer.contains("\"result\""), "a cancelled request has no result: {answer}");
    let second = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call("compute", json!({}))});
    let _open = endpoint.begin("POST", &own, &second.to_string());
    wait_for_event(&events, &["tool.called", "-2\""]);
    assert_eq!(endpoint.send("DELETE", &own, "").status, 204);
    wait_for_event(&events, &["tool.failed", "cancelled", "-2\""]);
}

#[test]
fn shutdown_takes_seconds_and_reports_cancelled_calls() {
    let world = World::new();
    let events = world.home().join("events.jsonl");
    let endpoint = Endpoint::start(telling(&world), &["--events", events.to_str().unwrap()]);
    let headers =
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "compute")];
    let message = request("tools/call", &modern(call("compute", json!({})), &json!({})));
    let modern = endpoint.begin("POST", &headers, &message.to_string());
    wait_for_event(&events, &["tool.called", "-1-1\""]);
    let id = session(&endpoint);
    let legacy = request("tools/call", &call("compute", json!({})));
    let legacy = endpoint.begin("POST", &[("Mcp-Session-Id", &id)], &legacy.to_string());
    wait_for_event(&events, &["tool.called", "-2-1\""]);
    let start = Instant::now();
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be terminated");
    for answer in [modern, legacy].map(palisade_tests::mcp_http::answer) {
        assert_eq!(answer.status, 200, "{answer:?}");
        let result = answer.message()["result"].clone();
        assert_eq!(result["_meta"]["dev.palisade/error"]["class"], "cancelled", "{answer:?}");
    }
    assert_eq!(endpoint.end().code, 130);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    // The program has ended: no line can follow.
    let told = std::fs::read_to_string(&events).unwrap();
    let ends: Vec<&str> = told.lines().filter(|line| line.contains("tool.failed")).collect();
    assert_eq!(ends.len(), 2, "{told}");
    for call in ["-1-1\"", "-2-1\""] {
        assert!(
            ends.iter().any(|line| line.contains(call) && line.contains("cancelled")),
            "{call}: {told}"
        );
    }
}
