//! Nobody gets in without a token, from another page, or by another name, and a client sees nothing
//! but its own.

use crate::served;
use palisade_tests::World;
use palisade_tests::api::{Sender, write};
use palisade_tests::mcp_http::Answer;
use serde_json::json;

/// The paths that only the operator may read.
const OPERATORS: [&str; 5] =
    ["/confirmations", "/confirmations/cr_1", "/calls", "/calls/1", "/summary"];

#[track_caller]
fn is_refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, &answer.message()["code"]), (status, &json!(code)), "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
}

#[test]
fn every_path_but_the_public_ones_needs_a_token() {
    let world = World::new();
    let api = served(&world, &[]);
    let nobody = Sender::new(&api.endpoint.address);
    let guess = nobody.clone().bearer("a-token-that-is-not-the-right-one");
    for path in OPERATORS.iter().chain(&[
        "/sessions",
        "/sessions/s1",
        "/sessions/s1/events",
        "/sessions/s1/definitions",
        "/events",
        "/plugins",
        "/tools",
        "/metrics",
        "/nothing",
    ]) {
        for sender in [&nobody, &guess] {
            assert_eq!(sender.get(path).status, 401, "{path}");
        }
    }
    let tries =
        [("POST", "/sessions"), ("POST", "/sessions/s1/calls"), ("POST", "/sessions/s1/close")];
    for (method, path) in tries.into_iter().chain([("POST", "/logins")]) {
        assert_eq!(nobody.send(method, path, "{}").status, 401, "{method} {path}");
    }
    for path in ["/", "/healthz", "/readyz", "/openapi.json", "/console/style.css"] {
        assert_eq!(nobody.get(path).status, 200, "{path}");
    }
}

#[test]
fn other_origins_and_host_names_are_refused_with_the_right_token_too() {
    let world = World::new();
    let api = served(&world, &[]);
    for path in ["/sessions", "/confirmations", "/events", "/", "/healthz"] {
        let from = |name, value| api.operator.clone().with(name, value).get(path);
        is_refused(&from("Origin", "http://evil.example"), 403, "origin_refused");
        is_refused(&from("Origin", "null"), 403, "origin_refused");
        let named = from("Host", "evil.example");
        assert_eq!(named.status, 403, "{named:?}");
    }
}

#[test]
fn form_of_another_page_cannot_log_a_browser_in() {
    let world = World::new();
    let api = served(&world, &[]);
    let issued = api.operator.post("/logins", &json!({})).message();
    let code = issued["code"].as_str().unwrap();
    let page = Sender::new(&api.endpoint.address);
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let body = json!({"code": code}).to_string();
    let tries = [
        (page.clone().with("Origin", "http://evil.example"), 403),
        (page.clone().with("Sec-Fetch-Site", "cross-site"), 403),
        (page.clone().with("Sec-Fetch-Site", "same-site"), 403),
        (page.clone().with(form.0, form.1), 415),
        (page.clone().with("Content-Type", "text/plain"), 415),
    ];
    for (sender, status) in tries {
        let answer = sender.send("POST", "/login", &body);
        assert_eq!(answer.status, status, "{sender:?} {answer:?}");
        assert_eq!(answer.header("set-cookie"), None, "{answer:?}");
    }
    let own = page.with("Origin", &format!("http://{}", api.endpoint.address));
    assert_eq!(own.send("POST", "/login", &body).status, 200, "no try has used the code up");
}

#[test]
fn client_is_refused_what_is_the_operators() {
    let world = World::new();
    let api = served(&world, &[]);
    for path in OPERATORS {
        is_refused(&api.client.get(path), 403, "operator_only");
    }
    let plugins = api.client.get("/plugins").message();
    assert!(plugins["rejected"].is_null(), "{plugins}");
    assert_eq!(api.client.get("/metrics").status, 403);
    assert_ne!(api.client.post("/logins", &json!({})).status, 200);
}

#[test]
fn client_cannot_answer_its_own_question() {
    let world = World::new();
    let api = served(&world, &["--console"]);
    let mut events = api.client.events("/events?after=0");
    let call = api.client.begin_call("s1", &write("c1", "a.txt"));
    let question = events.of_call("tool.confirmation_requested", "c1");
    for decision in ["allow", "always", "deny"] {
        is_refused(&api.client.decide(&question, decision), 403, "operator_only");
    }
    assert_eq!(api.operator.decide(&question, "deny").status, 200);
    assert_eq!(call.join().unwrap()["error"]["class"], "user_denied");
    assert_eq!(world.read("a.txt"), None);
}

/// Every sender learns the methods of a path, because they are in the public description.
#[test]
fn method_that_a_path_does_not_have_is_refused_with_those_that_it_has() {
    let world = World::new();
    let api = served(&world, &[]);
    for (path, allowed) in [
        ("/sessions", "GET,HEAD,POST"),
        ("/sessions/s1", "GET,HEAD"),
        ("/sessions/s1/close", "POST"),
        ("/openapi.json", "GET,HEAD"),
    ] {
        for method in ["DELETE", "PUT", "PATCH", "TRACE", "OPTIONS"] {
            let refused = api.client.send(method, path, "");
            is_refused(&refused, 405, "method_not_allowed");
            let mut methods: Vec<&str> = refused.header("allow").unwrap().split(',').collect();
            methods.sort_unstable();
            assert_eq!(methods.join(","), allowed.to_lowercase(), "{method} {path}");
        }
    }
}

#[test]
fn refusal_without_a_token_has_the_same_body_at_every_path() {
    let world = World::new();
    let api = served(&world, &[]);
    let nobody = Sender::new(&api.endpoint.address);
    let of_the_api = nobody.post("/sessions", &json!({}));
    is_refused(&of_the_api, 401, "token_needed");
    for path in ["/mcp", "/events", "/nowhere"] {
        let refused = nobody.post(path, &json!({}));
        is_refused(&refused, 401, "token_needed");
        assert_eq!(refused.body, of_the_api.body, "{path}");
    }
}

#[test]
fn session_of_another_is_as_if_it_did_not_exist() {
    let world = World::new();
    let api = served(&world, &[]);
    let opened = api.operator.post("/sessions", &json!({"id": "others"}));
    assert_eq!(opened.status, 201, "{opened:?}");
    let tries = [
        ("GET", "", ""),
        ("GET", "/events", ""),
        ("GET", "/definitions", ""),
        ("POST", "/calls", r#"{"tool": "read_file", "input": {"path": "a"}}"#),
        ("POST", "/replies", r#"{"reply": {"choices": []}}"#),
        ("POST", "/cancel", ""),
        ("POST", "/turns/t1/cancel", ""),
        ("POST", "/calls/c1/cancel", ""),
        ("GET", "/calls/c1", ""),
        ("POST", "/close", ""),
    ];
    for (method, path, body) in tries {
        let of = |id: &str| api.client.send(method, &format!("/sessions/{id}{path}"), body);
        let (others, none) = (of("others"), of("none"));
        assert_eq!((others.status, others.body), (404, none.body), "{method} {path}");
    }
    let listed = api.client.get("/sessions").body;
    assert!(listed.contains("\"s1\"") && !listed.contains("others"), "{listed}");
    assert_eq!(api.operator.get("/sessions/s1").status, 200, "the operator sees all");
    assert_eq!(api.operator.get("/sessions/others").message()["state"], "open");
}
