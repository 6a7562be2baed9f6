//! The API is described by OpenAPI, and answers are of the described form.

use super::world::{CLIENT, OPERATOR, Sender, World};
use palisade_server::Attached;
use serde_json::{Value, json};
use std::sync::Arc;

async fn description(world: &World) -> Value {
    world.get(&Sender::Nobody, "/openapi.json").await.json()
}

#[tokio::test]
async fn every_operation_is_described() {
    let world = World::new();
    let api = description(&world).await;
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"), "{}", api["openapi"]);
    let mut operations = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push(format!("{method} {path}"));
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path}");
        }
    }
    operations.sort();
    let expected = [
        "get /calls",
        "get /calls/{key}",
        "get /confirmations",
        "get /confirmations/{request_id}",
        "get /events",
        "get /healthz",
        "get /metrics",
        "get /openapi.json",
        "get /plugins",
        "get /readyz",
        "get /sessions",
        "get /sessions/{session_id}",
        "get /sessions/{session_id}/calls/{call_id}",
        "get /sessions/{session_id}/definitions",
        "get /sessions/{session_id}/events",
        "get /summary",
        "get /tools",
        "post /sessions",
        "post /sessions/{session_id}/calls",
        "post /sessions/{session_id}/calls/{call_id}/cancel",
        "post /sessions/{session_id}/cancel",
        "post /sessions/{session_id}/close",
        "post /sessions/{session_id}/replies",
        "post /sessions/{session_id}/turns/{turn_id}/cancel",
        "post /sessions/{session_id}/turns/{turn_id}/confirmations/{request_id}",
    ];
    assert_eq!(operations, expected);
}

/// Returns the schema of a successful answer.
fn schema<'a>(api: &'a Value, method: &str, path: &str, status: &str) -> &'a Value {
    let responses = &api["paths"][path][method]["responses"];
    let content = responses[status]["content"].as_object().unwrap();
    &content.values().next().unwrap()["schema"]
}

/// Checks a value against a schema of the description: types, members, `$ref`, `oneOf`, `allOf`.
fn check(api: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = api.pointer(name.trim_start_matches('#')).ok_or(format!("no {name}"))?;
        return check(api, schema, value, at);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(api, part, value, at)?;
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let errors: Vec<_> =
            choices.iter().filter_map(|choice| check(api, choice, value, at).err()).collect();
        return if errors.len() < choices.len() { Ok(()) } else { Err(errors.join("; ")) };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = |wanted: &&str| *wanted == kind || (*wanted == "number" && kind == "integer");
    if !kinds.is_empty() && !kinds.iter().any(fits) {
        return Err(format!("{at} is {kind}, and {kinds:?} is described"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(name).is_none() {
            return Err(format!("{at} has no `{name}`"));
        }
    }
    let properties = schema["properties"].as_object();
    for (name, member) in value.as_object().into_iter().flatten() {
        if let Some(schema) = properties.and_then(|all| all.get(name)) {
            check(api, schema, member, &format!("{at}/{name}"))?;
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(api, &schema["items"], item, &format!("{at}/{index}"))?;
    }
    Ok(())
}

/// Returns the members that a schema describes, with those of its parts.
fn members(api: &Value, schema: &Value) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return members(api, api.pointer(name.trim_start_matches('#')).unwrap());
    }
    let own = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let parts = schema["allOf"].as_array().into_iter().flatten();
    own.chain(parts.flat_map(|part| members(api, part))).collect()
}

#[tokio::test]
async fn answers_have_the_described_form() {
    let world = Arc::new(World::with(Attached::Always, |host| host, |settings| settings));
    let api = description(&world).await;
    world.session(&CLIENT, "s1").await;
    let write = json!({"id": "w", "tool": "write_file", "input": {"path": "a", "content": "x"}});
    let call = world.begin_call(CLIENT, "s1", write);
    let question = world.question().await;
    world.server.journal().flush().await;
    let page = format!("/confirmations/{}", question["request_id"].as_str().unwrap());
    let gets = [
        ("/confirmations".to_owned(), "/confirmations"),
        (page.clone(), "/confirmations/{request_id}"),
        ("/readyz".to_owned(), "/readyz"),
        ("/plugins".to_owned(), "/plugins"),
        ("/tools".to_owned(), "/tools"),
        ("/sessions".to_owned(), "/sessions"),
        ("/sessions/s1".to_owned(), "/sessions/{session_id}"),
        ("/sessions/s1/definitions".to_owned(), "/sessions/{session_id}/definitions"),
    ];
    for (path, described) in gets {
        let answer = world.get(&OPERATOR, &path).await.json();
        conforms(&api, ("get", described, "200"), &answer);
    }
    let answered = world.answer(&OPERATOR, &question, "allow").await.json();
    let described = "/sessions/{session_id}/turns/{turn_id}/confirmations/{request_id}";
    conforms(&api, ("post", described, "200"), &answered);
    let lost = world.answer(&OPERATOR, &question, "deny").await.json();
    conforms(&api, ("post", described, "409"), &lost);
    let result = call.await.unwrap().json();
    conforms(&api, ("post", "/sessions/{session_id}/calls", "200"), &result);
    world.server.journal().flush().await;
    for (path, described) in [
        (page.as_str(), "/confirmations/{request_id}"),
        ("/calls", "/calls"),
        ("/calls/w", "/calls/{key}"),
        ("/summary", "/summary"),
    ] {
        let answer = world.get(&OPERATOR, path).await.json();
        conforms(&api, ("get", described, "200"), &answer);
    }
    let missing = world.get(&OPERATOR, "/calls/none").await.json();
    conforms(&api, ("get", "/calls/{key}", "404"), &missing);
}

fn conforms(api: &Value, (method, path, status): (&str, &str, &str), answer: &Value) {
    let schema = schema(api, method, path, status);
    let checked = check(api, schema, answer, "");
    assert_eq!(checked, Ok(()), "{method} {path}: {answer}");
    let described = members(api, schema);
    for name in answer.as_object().unwrap().keys() {
        assert!(described.contains(name), "{method} {path}: `{name}` is not described");
    }
}
