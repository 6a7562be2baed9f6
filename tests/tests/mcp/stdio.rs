//! Standard input and output: one message a line, within limits, and a clean exit at the end of
//! input.

use super::{call, plain, serving, text};
use palisade_tests::World;
use palisade_tests::guest::{CANCEL_COMPUTE, LIMITS_OUTPUT, LOADER_GOOD};
use palisade_tests::mcp::{Client, LEGACY, MODERN, modern};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Returns the code of an error.
fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[test]
fn handshake_agrees_on_a_common_revision() {
    for (asked, agreed) in [
        (LEGACY, LEGACY),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", LEGACY),
        (MODERN, LEGACY),
        ("1999-01-01", LEGACY),
    ] {
        let world = World::new();
        let mut client = Client::start(serving(&world, LOADER_GOOD));
        let answer = client.initialize(asked, &json!({}));
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{asked}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "palisade");
        assert!(client.request("tools/list", &json!({}))["result"]["tools"].is_array());
    }
}

#[test]
fn modern_request_needs_no_handshake() {
    let world = World::new();
    let mut client = Client::start(serving(&world, LOADER_GOOD));
    let found = client.request_modern("server/discover", json!({}), &json!({}));
    let versions =
        found["result"]["supportedVersions"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!(LEGACY)), "{found}");
    let listed = client.request_modern("tools/list", json!({}), &json!({}));
    assert_eq!(listed["result"]["resultType"], "complete", "{listed}");
    assert!(
        listed["result"]["ttlMs"].is_u64() && listed["result"]["cacheScope"].is_string(),
        "{listed}"
    );
}

#[test]
fn request_without_handshake_or_revision_is_refused() {
    let world = World::new();
    let mut client = Client::start(serving(&world, LOADER_GOOD));
    let refused = client.request("tools/list", &json!({}));
    assert_eq!(code(&refused), -32600);
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("`initialize` first"),
        "{refused}"
    );
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    client.initialize(LEGACY, &json!({}));
    assert!(client.request("tools/list", &json!({}))["result"].is_object());
}

#[test]
fn invalid_message_is_answered_and_the_next_line_read() {
    let world = World::new();
    let mut client = plain(&world, LOADER_GOOD);
    let no_id = Value::Null;
    for (line, expected, id) in [
        (&b"nonsense"[..], -32700, &no_id),
        (b"\xff\xfe", -32700, &no_id),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9", -32700, &no_id),
        (b"[]", -32600, &no_id),
        (b"42", -32600, &no_id),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\",\"method\":\"ping\"}",
            -32600,
            &json!(9),
        ),
        (b"{\"id\":9}", -32600, &json!(9)),
    ] {
        client.write(&[line, b"\n"].concat());
        let refused = client.receive();
        assert_eq!(
            (code(&refused), &refused["id"]),
            (expected, id),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
    client.write(b"\n\r\n  \n");
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn unacceptable_request_is_refused_under_its_id() {
    let world = World::new();
    let mut client = plain(&world, LOADER_GOOD);
    let deep = format!("\"a\":{}{}", "[".repeat(100), "]".repeat(100));
    for (params, expected) in [
        (r#""a":1,"a":1"#, -32600),
        (deep.as_str(), -32600),
        (r#""a":"\ud800""#, -32700),
        (r#""a":1e400"#, -32700),
    ] {
        for id in ["9", r#""nine""#] {
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\",\"params\":{{{params}}}}}\n"
            );
            client.write(line.as_bytes());
            let refused = client.receive();
            assert_eq!(
                (code(&refused), refused["id"].to_string().as_str()),
                (expected, id),
                "{line}"
            );
        }
    }
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn oversized_line_is_refused_and_not_stored() {
    let world = World::new();
    let mut client = plain(&world, LOADER_GOOD);
    let before = client.memory_kib("VmRSS:");
    let part = vec![b'x'; 1 << 20];
    for _ in 0..256 {
        client.write(&part);
    }
    client.write(b"\n");
    let refused = client.receive();
    assert_eq!(code(&refused), -32600);
    assert!(refused["error"]["message"].as_str().unwrap().contains("2097152 bytes"), "{refused}");
    let grown = client.memory_kib("VmRSS:").saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more than before");
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn unknown_method_and_invalid_parameters_differ() {
    let world = World::new();
    let mut client = plain(&world, LOADER_GOOD);
    assert_eq!(code(&client.request("no/such", &json!({}))), -32601);
    assert_eq!(code(&client.request("tools/call", &json!({"name": 3}))), -32602);
    let nameless = client.request("tools/call", &json!({"arguments": {}}));
    assert_eq!(
        (code(&nameless), &nameless["error"]["message"]),
        (-32602, &json!("`tools/call` needs `name`, the name of the tool"))
    );
    assert_eq!(code(&client.request_modern("tools/call", json!({"name": 3}), &json!({}))), -32602);
    assert_eq!(code(&client.request_modern("ping", json!({}), &json!({}))), -32601);
    assert_eq!(
        code(&client.request_modern("logging/setLevel", json!({"level": "info"}), &json!({}))),
        -32601
    );
}

#[test]
fn duplicate_id_and_excess_request_are_refused() {
    let world = World::new();
    let mut client = plain(&world, CANCEL_COMPUTE);
    let first = client.begin("tools/call", &call("compute", json!({})));
    client.send(&json!({"jsonrpc": "2.0", "id": first, "method": "ping"}));
    let refused = client.answer(first);
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("still being answered"),
        "{refused}"
    );
    let more: Vec<u64> =
        (1..64).map(|_| client.begin("tools/call", &call("compute", json!({})))).collect();
    let refused = client.request("tools/call", &call("compute", json!({})));
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("64 requests"), "{refused}");
    client.notify("notifications/cancelled", &json!({"requestId": more[0]}));
    let again = client.begin("tools/call", &call("compute", json!({})));
    client.notify("notifications/cancelled", &json!({"requestId": again}));
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    let (ran, _) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn ping_and_list_are_answered_beside_the_maximum_of_calls() {
    let world = World::new();
    let mut client = plain(&world, CANCEL_COMPUTE);
    for _ in 0..64 {
        client.begin("tools/call", &call("compute", json!({})));
    }
    // Four calls run, the limit of a session; the others are queued.
    for _ in 0..4 {
        client.receive_method("notifications/message");
    }
    for _ in 0..100 {
        assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    }
    assert!(client.request("tools/list", &json!({}))["result"]["tools"].is_array());
    let (ran, _) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn cancelled_endless_call_gets_no_answer() {
    let world = World::new();
    let mut client = plain(&world, CANCEL_COMPUTE);
    let ids: Vec<u64> =
        (0..8).map(|_| client.begin("tools/call", &call("compute", json!({})))).collect();
    // Four calls run, the limit of a session; the others are queued.
    for _ in 0..4 {
        client.receive_method("notifications/message");
    }
    for id in &ids {
        client.notify("notifications/cancelled", &json!({"requestId": id, "reason": "enough"}));
    }
    let next = client.begin("tools/call", &call("compute", json!({})));
    client.receive_method("notifications/message");
    client.notify("notifications/cancelled", &json!({"requestId": next}));
    let (ran, rest) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(rest.iter().all(|message| message.get("id").is_none()), "{rest:?}");
}

#[test]
fn end_of_input_ends_the_program_and_its_calls() {
    let world = World::new();
    let mut client = plain(&world, CANCEL_COMPUTE);
    for _ in 0..8 {
        client.begin("tools/call", &call("compute", json!({})));
    }
    client.receive_method("notifications/message");
    let start = Instant::now();
    let (ran, _) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn plugin_output_is_never_a_protocol_line() {
    let world = World::new();
    let mut client = plain(&world, LIMITS_OUTPUT);
    let listed = client.request("tools/list", &json!({}));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|t| t["name"].as_str())
        .collect();
    assert!(names.contains(&"print"), "{names:?}");
    // The test client checks that every line is a message.
    let answer = client.request("tools/call", &call("print", json!({"bytes": 100_000})));
    assert!(answer["result"].is_object(), "{}", text(&answer));
}

#[test]
fn id_of_a_cancelled_request_cannot_be_reused() {
    let world = World::new();
    let mut client = plain(&world, CANCEL_COMPUTE);
    let id = client.begin("tools/call", &call("compute", json!({})));
    client.receive_method("notifications/message");
    client.notify("notifications/cancelled", &json!({"requestId": id}));
    client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    let refused = client.answer(id);
    assert_eq!(code(&refused), -32600);
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("no id may be used twice"),
        "{refused}"
    );
    let (_, rest) = client.end();
    assert!(rest.iter().all(|message| message["id"] != id), "{rest:?}");
}

/// Returns a call of the current revision without further options.
fn nothing_but_a_call(id: u64, (tool, arguments): (&str, Value)) -> Value {
    let params = modern(call(tool, arguments), &json!({}));
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[test]
fn id_of_an_answered_request_can_be_reused_at_once() {
    let world = World::new();
    let mut client = Client::start(serving(&world, LIMITS_OUTPUT));
    // Answers that fit into the pipe at once, and answers that wait for room.
    for bytes in [10, 8192] {
        for _ in 0..150 {
            client.send(&nothing_but_a_call(7, ("text", json!({"bytes": bytes}))));
            let answer = client.receive();
            assert_eq!(text(&answer).len(), bytes, "{answer}");
        }
    }
}

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let world = World::new();
    for _ in 0..5 {
        let mut client = Client::start(serving(&world, LOADER_GOOD));
        client.request_modern("tools/list", json!({}), &json!({}));
        (100..140).for_each(|id| client.send(&nothing_but_a_call(id, ("good", json!({})))));
        let (ran, answers) = client.end();
        let mut answered: Vec<u64> =
            answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
        answered.sort_unstable();
        assert_eq!(
            (ran.code, answered),
            (0, (100..140).collect()),
            "by its result, or as cancelled"
        );
    }
}

#[test]
fn input_has_the_bounds_of_the_command_line() {
    let world = World::new();
    let mut client = Client::start(serving(&world, LOADER_GOOD));
    let deep = (0..65).fold(json!(1), |inner, _| json!([inner]));
    for (arguments, said) in [
        (json!({"text": "x".repeat(1 << 20)}), "1048576 bytes"),
        (json!({"text": deep}), "64 levels"),
    ] {
        client.send(&nothing_but_a_call(1, ("good", arguments)));
        let answer = client.receive();
        assert!(text(&answer).contains(said), "{answer}");
    }
}
