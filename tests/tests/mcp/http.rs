//! HTTP: sessions, requests of both revisions, and their limits.

use super::{call, serving};
use palisade_tests::World;
use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::mcp::{LEGACY, MODERN, modern};
use palisade_tests::mcp_http::{Answer, Endpoint};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Builds a request.
pub(super) fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Makes a call of the current revision.
pub(super) fn asked(endpoint: &Endpoint, tool: &str, more: &[(&str, &str)]) -> Answer {
    let headers =
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    let message = request("tools/call", &modern(call(tool, json!({})), &json!({})));
    endpoint.post(&[&headers[..], more].concat(), &message)
}

/// Opens a session of the previous revision.
pub(super) fn session(endpoint: &Endpoint) -> String {
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "suite", "version": "1"}});
    let answer = endpoint.post(&[], &request("initialize", &params));
    assert_eq!(answer.message()["result"]["protocolVersion"], LEGACY, "{answer:?}");
    let id = answer.header("mcp-session-id").expect("a session").to_owned();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(endpoint.post(&[("Mcp-Session-Id", &id)], &told).status, 202);
    id
}

#[test]
fn both_revisions_share_one_endpoint() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &[]);
    assert_eq!(asked(&endpoint, "good", &[]).message()["result"]["content"][0]["text"], "good");
    let id = session(&endpoint);
    let answer = endpoint
        .post(&[("Mcp-Session-Id", &id)], &request("tools/call", &call("better", json!({}))));
    assert_eq!(answer.message()["result"]["content"][0]["text"], "better");
    assert_eq!(endpoint.send("DELETE", &[("Mcp-Session-Id", &id)], "").status, 204);
    let gone = endpoint.post(&[("Mcp-Session-Id", &id)], &request("ping", &json!({})));
    assert_eq!(gone.status, 404);
}

#[test]
fn refused_session_is_told_when_to_come_again_and_is_logged() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &[]);
    let _sessions: Vec<String> = (0..64).map(|_| session(&endpoint)).collect();
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "suite", "version": "1"}});
    let refused = endpoint.post(&[], &request("initialize", &params));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).unwrap();
    let why = refused.message()["error"]["message"].as_str().unwrap().to_owned();
    endpoint.end().stderr_contains(&[&format!("turned away a request from 127.0.0.1: {why}")]);
}

#[test]
fn contradictory_header_is_refused() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &[]);
    for header in
        [("MCP-Protocol-Version", LEGACY), ("Mcp-Method", "tools/list"), ("Mcp-Name", "better")]
    {
        let answer = asked(&endpoint, "good", &[header]);
        let error = &answer.message()["error"];
        assert_eq!(
            (answer.status, &error["code"], &answer.message()["id"]),
            (400, &json!(-32020), &json!(1))
        );
        let name = header.0.to_ascii_lowercase();
        assert!(
            error["message"].as_str().is_some_and(|text| text.to_ascii_lowercase().contains(&name)),
            "{answer:?}"
        );
    }
    let id = session(&endpoint);
    let (own, other) = (("Mcp-Session-Id", id.as_str()), ("Mcp-Session-Id", "another"));
    assert_eq!(endpoint.send("DELETE", &[own, other], "").status, 400);
    let response = json!({"jsonrpc": "2.0", "id": 3, "result": {}});
    let answer = endpoint.post(&[own, other], &response);
    assert_eq!(
        (answer.status, answer.message().get("id")),
        (400, None),
        "a message other than a request has no answer"
    );
    assert_eq!(endpoint.send("DELETE", &[own], "").status, 204);
}

#[test]
fn legacy_request_requires_its_session() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &[]);
    let mut params = modern(call("good", json!({})), &json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(LEGACY);
    for headers in [&[][..], &[("MCP-Protocol-Version", LEGACY)]] {
        let answer = endpoint.post(headers, &request("tools/call", &params));
        assert_eq!(
            (answer.status, answer.message()["error"]["code"].as_i64()),
            (400, Some(-32600)),
            "{answer:?}"
        );
        assert!(answer.body.contains("initialize first"), "{answer:?}");
    }
}

#[test]
fn oversized_body_is_refused_and_others_answered() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &[]);
    let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(3 << 20));
    assert_eq!(endpoint.send("POST", &[], &large).status, 413);
    assert_eq!(endpoint.send("PUT", &[], "").status, 405);
    assert_eq!(endpoint.send("POST", &[], "[]").status, 400);
    assert_eq!(asked(&endpoint, "good", &[]).status, 200);
}

#[test]
fn pipelined_requests_are_both_answered() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &[]);
    let message = request("tools/call", &modern(call("good", json!({})), &json!({}))).to_string();
    let one = |more: &str| {
        let headers = format!(
            "MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: good\r\n{more}"
        );
        let kinds =
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let (host, length) = (&endpoint.address, message.len());
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{kinds}{headers}Content-Length: {length}\r\n\r\n{message}"
        )
    };
    let mut socket = TcpStream::connect(&endpoint.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.write_all((one("") + &one("Connection: close\r\n")).as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
}
