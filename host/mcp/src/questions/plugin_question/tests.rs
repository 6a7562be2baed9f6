//! Tests the questions of plugins and their answers.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;

fn request(kind: AskKind, params: &Value) -> AskRequest {
    AskRequest { key: "k".into(), kind, params: params.as_object().unwrap().clone() }
}

fn asking(kind: AskKind, params: &Value) -> Result<Value, AskFailure> {
    input_request("forms", &request(kind, params), Dialect::Current)
        .map(|question| serde_json::to_value(question).unwrap())
}

fn field(name: &str, field: &Value) -> Value {
    json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {name: field}}})
}

#[track_caller]
fn refused(kind: AskKind, params: &Value, why: &str) {
    match asking(kind, params) {
        Err(AskFailure::Invalid(reason)) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{params}: {other:?}"),
    }
}

#[test]
fn form_names_its_plugin_and_is_bounded() {
    let mut params = field("name", &json!({"type": "string"}));
    let form = asking(AskKind::Elicitation, &params).unwrap();
    assert_eq!(form["method"], "elicitation/create");
    assert_eq!(form["params"]["message"], "The plugin forms asks: Who?");
    assert_eq!(form["params"]["requestedSchema"]["properties"]["name"]["type"], "string");
    params["message"] = json!(format!("\u{202e}{}", "x".repeat(5000)));
    let message = asking(AskKind::Elicitation, &params).unwrap()["params"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.len() < 4200 && !message.contains('\u{202e}'), "{message}");
}

#[test]
fn form_refuses_secrets_and_other_modes() {
    let text = json!({"type": "string"});
    for name in ["password", "apiKey", "API_KEY", "github-token", "clientSecret", "token"] {
        refused(AskKind::Elicitation, &field(name, &text), "secret");
    }
    refused(
        AskKind::Elicitation,
        &field("a", &json!({"type": "string", "title": "Your password"})),
        "secret",
    );
    refused(
        AskKind::Elicitation,
        &field("a", &json!({"type": "string", "format": "password"})),
        "secret",
    );
    for name in ["max_tokens", "username", "key"] {
        assert!(asking(AskKind::Elicitation, &field(name, &text)).is_ok(), "{name}");
    }
    let url = json!({"mode": "url", "message": "Who?", "url": "https://example.org", "elicitationId": "1"});
    refused(AskKind::Elicitation, &url, "forms only");
    refused(AskKind::Elicitation, &json!({}), "no `message`");
    refused(AskKind::Elicitation, &json!({"message": "Who?"}), "no `requestedSchema`");
    refused(AskKind::Elicitation, &field("a", &json!({"type": "object"})), "not one of a form");
    refused(
        AskKind::Elicitation,
        &field("a", &json!({"type": "string", "title": "a\u{202e}b"})),
        "U+202E",
    );
}

#[test]
fn sampling_request_excludes_other_context() {
    let message = json!({"role": "user", "content": {"type": "text", "text": "Hi"}});
    let mut params = json!({"messages": [message], "maxTokens": 100});
    let asked = asking(AskKind::Sampling, &params).unwrap();
    assert_eq!(
        (&asked["method"], &asked["params"]["maxTokens"]),
        (&json!("sampling/createMessage"), &json!(100))
    );
    params["includeContext"] = json!("none");
    assert!(asking(AskKind::Sampling, &params).is_ok());
    params["includeContext"] = json!("allServers");
    refused(AskKind::Sampling, &params, "client's context");
    refused(
        AskKind::Sampling,
        &json!({"messages": [], "maxTokens": 1, "tools": []}),
        "without `tools`",
    );
    refused(AskKind::Sampling, &json!({"maxTokens": 1}), "not those of sampling");
    assert_eq!(
        asking(AskKind::Roots, &json!({"any": 1})).unwrap(),
        json!({"method": "roots/list"})
    );
}

#[test]
fn answer_is_checked_against_its_kind() {
    let asked = field("n", &json!({"type": "integer"}));
    let said = |kind, text: &str| {
        convert_answer(&request(kind, &asked), &serde_json::from_str(text).unwrap())
    };
    let form = |text: &str| said(AskKind::Elicitation, text);
    assert_eq!(form(r#"{"action":"accept","content":{"n":1}}"#), Some(Ok(r#"{"n":1}"#.to_owned())));
    assert_eq!(form(r#"{"action":"accept"}"#), Some(Ok("{}".to_owned())));
    for no in [r#"{"action":"decline"}"#, r#"{"action":"cancel","content":{"n":1}}"#] {
        assert_eq!(form(no), Some(Err(AskFailure::Declined)));
    }
    for none in ["12345", "null", "{}", r#"{"action":"yes"}"#, r#"{"action":"accept","content":3}"#]
    {
        assert_eq!(form(none), None, "{none}");
        assert_eq!(said(AskKind::Sampling, none), None, "{none}");
        assert_eq!(said(AskKind::Roots, none), None, "{none}");
    }
    let model = r#"{"content":{"text":"Paris","type":"text"},"model":"m","role":"assistant"}"#;
    assert_eq!(said(AskKind::Sampling, model), Some(Ok(model.to_owned())));
    let roots = r#"{"roots":[{"uri":"file:///a"}]}"#;
    assert_eq!(said(AskKind::Roots, roots), Some(Ok(roots.to_owned())));
}

#[test]
fn form_content_that_breaks_its_schema_is_refused() {
    let schema = json!({
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 18, "default": 30},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
            "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
            "kinds": {"type": "array", "maxItems": 2, "items": {"anyOf": [{"const": "a", "title": "A"}]}},
            "mail": {"type": "string", "format": "email", "maxLength": 9},
        },
        "required": ["age"],
    });
    let asked = json!({"message": "Who?", "requestedSchema": schema});
    assert!(asking(AskKind::Elicitation, &asked).is_ok());
    let said = |content: Option<Value>| {
        let answer = content
            .map_or(json!({"action": "accept"}), |it| json!({"action": "accept", "content": it}));
        convert_answer(&request(AskKind::Elicitation, &asked), &answer).unwrap()
    };
    for right in [
        json!({"age": 18}),
        json!({"age": 40, "colour": "g", "size": "s", "kinds": ["a"], "mail": "a@b.c"}),
        json!({"age": 18, "more": 1}),
    ] {
        assert_eq!(said(Some(right.clone())), Ok(right.to_string()));
    }
    for (wrong, at) in [
        (json!({"age": 17}), "`/age`"),
        (json!({"age": "18"}), "`/age`"),
        (json!({"age": 18, "colour": "blue"}), "`/colour`"),
        (json!({"age": 18, "size": "l"}), "`/size`"),
        (json!({"age": 18, "kinds": ["b"]}), "`/kinds"),
        (json!({"age": 18, "mail": "0123456789"}), "`/mail`"),
        (json!({}), "age"),
    ] {
        match said(Some(wrong.clone())) {
            Err(AskFailure::Invalid(why)) => {
                assert!(why.contains("answer to `k`") && why.contains(at), "{why}");
            }
            other => panic!("{wrong}: {other:?}"),
        }
    }
    assert!(matches!(said(None), Err(AskFailure::Invalid(_))), "nothing is filled in");
}

#[test]
fn hidden_pattern_is_neither_compiled_nor_checked() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(", "maxLength": 3}}});
    let asked = json!({"message": "Who?", "requestedSchema": schema});
    let form = asking(AskKind::Elicitation, &asked).unwrap();
    assert!(
        form["params"]["requestedSchema"]["properties"]["a"].get("pattern").is_none(),
        "{form}"
    );
    let said = |text: &str| {
        convert_answer(
            &request(AskKind::Elicitation, &asked),
            &json!({"action": "accept", "content": {"a": text}}),
        )
        .unwrap()
    };
    assert!(said("x").is_ok() && said("four").is_err());
}

#[test]
fn missing_capabilities_have_protocol_names() {
    let named = |kinds: &[AskKind]| serde_json::to_value(required_capabilities(kinds)).unwrap();
    assert_eq!(named(&[AskKind::Sampling]), json!({"sampling": {}}));
    assert_eq!(
        named(&[AskKind::Elicitation, AskKind::Roots]),
        json!({"elicitation": {"form": {}}, "roots": {}})
    );
}
