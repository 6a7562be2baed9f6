//! Runs the example `stdio` with a client that calls a tool.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../examples/stdio.rs"]
#[expect(dead_code, reason = "the test calls `serve` with a host of its own, and not `main`")]
mod stdio;

use palisade::CacheMode;
use palisade::Host;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _, pipe};
use std::thread;

#[tokio::test]
async fn a_client_of_the_example_calls_a_tool() {
    let place = tempfile::tempdir().unwrap();
    let host = Host::builder().workspace(place.path()).cache(CacheMode::Off).build().unwrap();
    let (input, mut requests) = pipe().unwrap();
    let (responses, output) = pipe().unwrap();
    let client = thread::spawn(move || {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let arguments = json!({"expression": "6 * 7"});
        let params = json!({"name": "calculate", "arguments": arguments, "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        requests.write_all(format!("{call}\n").as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(responses).read_line(&mut line).unwrap();
        // Returning drops `requests`, which ends the input.
        serde_json::from_str::<Value>(&line).unwrap()
    });
    stdio::serve(host, input, output).await.unwrap();
    let response = client.join().unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "42", "{response}");
}
