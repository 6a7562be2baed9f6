//! Requests of another form are refused, and say what would be accepted.

use super::world::{CLIENT, OPERATOR, Sender, World};
use axum::body::Body;
use serde_json::json;

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn unknown_member_is_refused_by_name() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    for (path, body) in [
        ("/sessions", json!({"idd": "x"})),
        ("/sessions", json!({"policy": {"wirte": "deny"}})),
        ("/sessions/s1/calls", json!({"tool": "t", "input": {}, "timeout": 1})),
        ("/sessions/s1/replies", json!({"reply": {}, "model": "m"})),
    ] {
        let answer = world.post(&CLIENT, path, body).await;
        assert_eq!(answer.problem(), (422, "body_invalid".to_owned()), "{path}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("unknown field"), "{answer:?}");
    }
    for path in ["/sessions?page=2", "/calls?tools=x", "/events?since=1", "/tools?class=read"] {
        let answer = world.get(&OPERATOR, path).await;
        assert_eq!(answer.problem(), (400, "query_invalid".to_owned()), "{path}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("unknown field"), "{answer:?}");
    }
}

#[tokio::test]
async fn body_that_is_not_json_is_refused() {
    let world = World::new();
    let post = async |headers: &[(&'static str, &str)], body: &str| {
        world.send(&CLIENT, "POST", "/sessions", headers, body.to_owned()).await.problem()
    };
    assert_eq!(post(&[], "{}").await, (415, "media_type".to_owned()));
    assert_eq!(post(&[("content-type", "text/plain")], "{}").await.0, 415);
    assert_eq!(post(&[JSON], "").await, (400, "json_invalid".to_owned()));
    assert_eq!(
        post(&[JSON], "{\"id\":\"a\",\"id\":\"b\"}").await,
        (400, "json_invalid".to_owned())
    );
    assert_eq!(post(&[JSON], &"[".repeat(200)).await, (400, "json_invalid".to_owned()));
    assert_eq!(post(&[JSON], "[]").await, (422, "body_invalid".to_owned()));
    let bytes = Body::from(vec![b'"', 0xff, b'"']);
    let answer = world.send(&CLIENT, "POST", "/sessions", &[JSON], bytes).await;
    assert_eq!(answer.problem(), (422, "body_invalid".to_owned()));
}

#[tokio::test]
async fn long_body_is_refused() {
    let world = World::new();
    let too_large = (413, "body_too_large".to_owned());
    let long = format!("\"{}\"", "x".repeat(4 << 20));
    let answer = world.send(&CLIENT, "POST", "/sessions", &[JSON], long.clone()).await;
    assert_eq!(answer.problem(), too_large);
    let headers = [JSON, ("content-length", "99999999999999999999")];
    let answer = world.send(&CLIENT, "POST", "/sessions", &headers, long).await;
    assert_eq!(answer.problem().0, 413);
}

#[tokio::test]
async fn ids_and_times_have_bounds() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let long = "x".repeat(129);
    for id in ["", "-", "mcp-1", "a/b", "a b", "é", ".a", "a\u{202e}", &long] {
        let answer = world.post(&CLIENT, "/sessions", json!({"id": id})).await;
        assert_eq!(answer.problem(), (422, "body_invalid".to_owned()), "{id:?}");
    }
    let call = |more: serde_json::Value| {
        let mut call = json!({"tool": "calculate", "input": {"expression": "1"}});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    for more in [
        json!({"id": ""}),
        json!({"id": "a\nb"}),
        json!({"id": "a\u{202e}"}),
        json!({"turn_id": "-"}),
        json!({"timeout_ms": 0}),
        json!({"timeout_ms": 600_001}),
        json!({"timeout_ms": -1}),
        json!({"timeout_ms": 1.5}),
        json!({"id": "é"}),
        json!({"id": "x".repeat(257)}),
    ] {
        let answer = world.post(&CLIENT, "/sessions/s1/calls", call(more.clone())).await;
        assert_eq!(answer.problem(), (422, "body_invalid".to_owned()), "{more}");
    }
    for more in [
        json!({"timeout_ms": 60_000.0}),
        json!({"timeout_ms": null}),
        json!({"id": "~ a", "turn_id": " "}),
        json!({"id": "x".repeat(256)}),
    ] {
        let answer = world.post(&CLIENT, "/sessions/s1/calls", call(more.clone())).await;
        assert_eq!(answer.status, 200, "{more}");
    }
    for path in [
        "/sessions?limit=0",
        "/sessions?limit=201",
        "/sessions?cursor=x",
        "/sessions?cursor=%2B1",
        "/tools?limit=x",
    ] {
        assert_eq!(world.get(&OPERATOR, path).await.problem().1, "query_invalid", "{path}");
    }
}

#[tokio::test]
async fn unknown_path_or_method_is_a_problem() {
    let world = World::new();
    assert_eq!(world.get(&CLIENT, "/nothing").await.problem(), (404, "not_found".to_owned()));
    let answer = world.send(&CLIENT, "PUT", "/sessions", &[], "").await;
    assert_eq!(answer.problem(), (405, "method_not_allowed".to_owned()));
    assert!(answer.header("allow").unwrap().contains("POST"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn console_is_served_with_a_strict_policy() {
    let world = World::new();
    let page = world.get(&Sender::Nobody, "/").await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    let script = world.get(&Sender::Nobody, "/console/js/main.js").await;
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(script.header("x-content-type-options"), Some("nosniff"));
    let tag = [("if-none-match", script.header("etag").unwrap())];
    let again = world.send(&Sender::Nobody, "GET", "/console/js/main.js", &tag, "").await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    for path in ["/console/", "/console/index", "/console/..%2fCargo.toml", "/console/js"] {
        assert_eq!(world.get(&Sender::Nobody, path).await.problem().0, 404, "{path}");
    }
}
