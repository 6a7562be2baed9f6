//! HTTP: authentication, request limits, and cancellation of calls whose client disconnects.

use super::token::secret;
use super::{call, serving};
use palisade_tests::guest::{CANCEL_COMPUTE, LOADER_GOOD};
use palisade_tests::mcp::{LEGACY, MODERN, modern};
use palisade_tests::mcp_http::{Answer, Endpoint};
use palisade_tests::{Program, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-that-nobody-guesses";

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Makes a call of the current revision.
fn asked(endpoint: &Endpoint, tool: &str, more: &[(&str, &str)]) -> Answer {
    let headers =
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    let message = request("tools/call", &modern(call(tool, json!({})), &json!({})));
    endpoint.post(&[&headers[..], more].concat(), &message)
}

/// Opens a session of the previous revision.
fn session(endpoint: &Endpoint) -> String {
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "suite", "version": "1"}});
    let answer = endpoint.post(&[], &request("initialize", &params));
    assert_eq!(answer.message()["result"]["protocolVersion"], LEGACY, "{answer:?}");
    let id = answer.header("mcp-session-id").expect("a session").to_owned();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(endpoint.post(&[("Mcp-Session-Id", &id)], &told).status, 202);
    id
}

#[test]
fn both_revisions_are_answered_on_one_endpoint() {
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
fn a_header_that_says_two_things_is_refused() {
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
        "what is no request has no answer"
    );
    assert_eq!(endpoint.send("DELETE", &[own], "").status, 204);
}

#[test]
fn a_request_of_the_previous_revision_belongs_to_a_session() {
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
fn a_page_of_another_origin_and_a_name_of_its_own_are_refused() {
    let world = World::new();
    let endpoint =
        Endpoint::start(serving(&world, LOADER_GOOD), &["--origin", "https://app.example"]);
    let own = format!("http://{}", endpoint.address);
    for (headers, status) in [
        (&[("Host", "evil.example")][..], 403),
        (&[("Host", "evil.example"), ("Origin", "http://evil.example")], 403),
        (&[("Origin", "http://evil.example")], 403),
        (&[("Origin", "null")], 403),
        (&[("Origin", "https://app.example")], 200),
        (&[("Origin", own.as_str())], 200),
    ] {
        assert_eq!(asked(&endpoint, "good", headers).status, status, "{headers:?}");
    }
}

#[test]
fn a_browser_learns_that_the_pages_of_an_allowed_origin_may_ask_and_those_of_no_other() {
    const APP: (&str, &str) = ("Origin", "https://app.example");
    let (world, more) = (World::new(), ["--origin", APP.1]);
    let file = world.home().join("token");
    secret(&file, TOKEN);
    let file = ["--token-file", file.to_str().unwrap()];
    let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &[&more[..], &file].concat());
    let wanted = [
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,content-type,mcp-param-text,x-other"),
    ];
    let asked_first =
        |origin: &[(&str, &str)]| endpoint.send("OPTIONS", &[origin, &wanted].concat(), "");
    // A browser sends no token with this question.
    let answer = asked_first(&[APP]);
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (204, Some(APP.1)),
        "{answer:?}"
    );
    assert_eq!(answer.header("access-control-allow-methods"), Some("post, get, delete"));
    let allowed: Vec<&str> =
        answer.header("access-control-allow-headers").unwrap().split(", ").collect();
    let needed = [
        "authorization",
        "content-type",
        "mcp-session-id",
        "mcp-protocol-version",
        "last-event-id",
    ];
    let needed = needed.iter().chain(&["mcp-method", "mcp-name", "mcp-param-text"]);
    assert!(
        needed.clone().all(|name| allowed.contains(name)) && !allowed.contains(&"x-other"),
        "{allowed:?}"
    );
    for origin in [
        &[("Origin", "https://evil.example")][..],
        &[("Origin", "null")],
        &[APP, ("Host", "evil.example")],
    ] {
        let answer = asked_first(origin);
        assert_eq!(
            (answer.status, answer.header("access-control-allow-methods")),
            (403, None),
            "{answer:?}"
        );
        assert!(
            answer.header("access-control-allow-origin").is_none_or(|shared| shared == APP.1),
            "{answer:?}"
        );
    }
    assert_eq!(asked_first(&[]).status, 401, "no page asks");
    // The page may read the answer, an error as well.
    let right = format!("Bearer {TOKEN}");
    for (headers, status) in [(&[APP, ("Authorization", &right)][..], 200), (&[APP], 401)] {
        let answer = asked(&endpoint, "good", headers);
        assert_eq!(
            (answer.status, answer.header("access-control-allow-origin")),
            (status, Some(APP.1)),
            "{answer:?}"
        );
        assert!(answer.header("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    }
    let answer = asked(&endpoint, "good", &[("Authorization", &right)]);
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, None),
        "{answer:?}"
    );
}

#[test]
fn a_server_on_every_address_tells_a_url_that_it_answers_and_the_names_it_has() {
    let world = World::new();
    let file = world.home().join("token");
    secret(&file, TOKEN);
    let words = ["--token-file", file.to_str().unwrap(), "--host", "tools.example"];
    let endpoint = Endpoint::at("0.0.0.0:0", serving(&world, LOADER_GOOD), &words);
    assert!(endpoint.address.starts_with("127.0.0.1:"), "{}", endpoint.address);
    let right = format!("Bearer {TOKEN}");
    assert_eq!(asked(&endpoint, "good", &[("Authorization", &right)]).status, 200);
    let port = endpoint.address.rsplit(':').next().unwrap();
    let every = format!("0.0.0.0:{port}");
    assert_eq!(
        asked(&endpoint, "good", &[("Authorization", &right), ("Host", &every)]).status,
        403
    );
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be asked to end");
    let told =
        format!("listens on {every}, and answers to 127.0.0.1, [::1], localhost, tools.example");
    endpoint.end().complains(&[&told]);
}

#[test]
fn with_a_token_nobody_gets_in_without_it() {
    let world = World::new();
    let file = world.home().join("token");
    secret(&file, TOKEN);
    let endpoint =
        Endpoint::guarded(serving(&world, LOADER_GOOD), &["--token-file", file.to_str().unwrap()]);
    let right = format!("Bearer {TOKEN}");
    assert_eq!(asked(&endpoint, "good", &[]).status, 401);
    assert_eq!(
        asked(&endpoint, "good", &[("Authorization", "Bearer another-token-that-is-long")]).status,
        401
    );
    assert_eq!(asked(&endpoint, "good", &[("Authorization", &right)]).status, 200);
}

#[test]
fn a_server_that_is_to_say_more_says_whom_it_did_not_let_in_and_why() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &["--verbose"]);
    assert_eq!(asked(&endpoint, "good", &[("Host", "evil.example")]).status, 403);
    assert_eq!(endpoint.send("POST", &[], "[]").status, 400);
    assert_eq!(asked(&endpoint, "good", &[]).status, 200);
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be asked to end");
    let said = endpoint.end().stderr;
    for line in [
        "POST /mcp: refused with 403 Forbidden, this server does not",
        "POST /mcp: refused with 400 Bad Request",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(said.matches("refused").count(), 2, "{said}");
}

#[test]
fn an_address_that_others_can_reach_is_refused_without_a_token() {
    let world = World::new();
    let open = ["serve", "--http", "0.0.0.0:0", "--token", "none"];
    let ran = serving(&world, LOADER_GOOD).args(open).run().left_with(2);
    ran.complains(&["can be reached from other machines", "set a token, or serve on 127.0.0.1"]);
    // All missing options are reported at once.
    ran.complains(&["leave out `--token none`", "--token-file FILE", "--host tools.example"]);
    let named = serving(&world, LOADER_GOOD).args(open).args(["--host", "tools.example"]);
    let said = named.run().left_with(2).stderr;
    assert!(said.contains("--token-file FILE") && !said.contains("so give each name"), "{said}");
    let short = serving(&world, LOADER_GOOD).env("PALISADE_SERVE_TOKEN", "short").args([
        "serve",
        "--http",
        "127.0.0.1:0",
    ]);
    let ran = short.run().left_with(2);
    ran.complains(&["PALISADE_SERVE_TOKEN: a token has 16 to 1024 characters"]);
    assert!(!ran.stderr.contains("short"), "{}", ran.stderr);
    // A token is not accepted as an argument, and `none` is valid with HTTP only.
    let _ = serving(&world, LOADER_GOOD)
        .args(["serve", "--http", "127.0.0.1:0", "--token", TOKEN])
        .run()
        .left_with(2);
    let _ = serving(&world, LOADER_GOOD).args(["serve", "--token", "none"]).run().left_with(2);
}

#[test]
fn a_body_beyond_the_bound_is_refused_and_others_are_answered() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &[]);
    let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(3 << 20));
    assert_eq!(endpoint.send("POST", &[], &large).status, 413);
    assert_eq!(endpoint.send("PUT", &[], "").status, 405);
    assert_eq!(endpoint.send("POST", &[], "[]").status, 400);
    assert_eq!(asked(&endpoint, "good", &[]).status, 200);
}

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
        assert!(start.elapsed() < Duration::from_secs(60), "{words:?} is never told: {text}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_client_of_the_current_revision_that_goes_away_takes_its_call_along() {
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
fn a_client_that_goes_away_in_the_middle_of_a_further_request_takes_its_call_along() {
    left_in_the_middle(|socket| {
        drop(socket);
        None
    });
}

#[test]
fn a_client_that_will_send_no_more_is_taken_for_one_that_has_gone() {
    left_in_the_middle(|socket| {
        socket.shutdown(Shutdown::Write).unwrap();
        Some(socket)
    });
}

#[test]
fn two_requests_that_are_sent_at_once_are_both_answered() {
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

#[test]
fn a_call_of_a_session_is_cancelled_by_its_client_and_by_the_end_of_the_session() {
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
fn a_wish_to_end_is_answered_within_seconds_and_whoever_waits_is_told_that_the_call_was_cancelled()
{
    let world = World::new();
    let events = world.home().join("events.jsonl");
    let endpoint = Endpoint::start(telling(&world), &["--events", events.to_str().unwrap()]);
    let headers =
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "compute")];
    let message = request("tools/call", &modern(call("compute", json!({})), &json!({})));
    let modern = endpoint.begin("POST", &headers, &message.to_string());
    wait_for_event(&events, &["tool.called", "mcp-1-1"]);
    let id = session(&endpoint);
    let legacy = request("tools/call", &call("compute", json!({})));
    let legacy = endpoint.begin("POST", &[("Mcp-Session-Id", &id)], &legacy.to_string());
    wait_for_event(&events, &["tool.called", "mcp-2-1"]);
    let start = Instant::now();
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be asked to end");
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
    for call in ["mcp-1-1", "mcp-2-1"] {
        assert!(
            ends.iter().any(|line| line.contains(call) && line.contains("cancelled")),
            "{call}: {told}"
        );
    }
}
