//! Converts a plugin's questions into requests of the protocol, and the client's answers back.

#![expect(
    deprecated,
    reason = "what the next revision will not have, the clients of the older ones still expect"
)]

use super::era::can_show_forms;
use super::short::Known;
use palisade::execution::AskFailure;
use palisade::internal::hidden_in;
use palisade::tool::schema::{Schema, Violations};
use palisade::tool::text::{cut, elided, visible};
use palisade::tool::{AskKind, AskKinds, AskRequest};
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, ListRootsRequest, ListRootsResult,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

/// The maximum length of a message shown to the user, in bytes.
const MESSAGE: usize = 4 << 10;
/// Substrings that mark a form field as one for a secret.
const SECRETS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
];

/// Returns the kinds of questions that the client supports.
pub(super) fn kinds(context: &RequestContext<RoleServer>) -> AskKinds {
    match context.extensions.get::<Known>() {
        Some(Known(capabilities)) => kinds_of(capabilities),
        None => kinds_of(&context.client_capabilities().unwrap_or_default()),
    }
}

fn kinds_of(capabilities: &ClientCapabilities) -> AskKinds {
    let can = [
        (AskKind::Elicitation, can_show_forms(capabilities)),
        (AskKind::Sampling, capabilities.sampling.is_some()),
        (AskKind::Roots, capabilities.roots.is_some()),
    ];
    can.into_iter().filter_map(|(kind, can)| can.then_some(kind)).collect()
}

/// Returns the capabilities that a client needs for these kinds of questions.
pub(super) fn capabilities(kinds: &[AskKind]) -> ClientCapabilities {
    let needs = |kind: &AskKind| match kind {
        AskKind::Elicitation => ("elicitation", json!({"form": {}})),
        AskKind::Sampling => ("sampling", json!({})),
        AskKind::Roots => ("roots", json!({})),
    };
    let needed: Map<String, Value> =
        kinds.iter().map(needs).map(|(name, value)| (name.to_owned(), value)).collect();
    serde_json::from_value(Value::Object(needed)).unwrap_or_default()
}

/// Converts a question of the plugin with this name.
pub(super) fn question(plugin: &str, request: &AskRequest) -> Result<InputRequest, AskFailure> {
    let key = &request.key;
    let refused =
        |reason: String| AskFailure::Invalid(format!("`{key}` cannot be asked: {reason}"));
    match request.kind {
        AskKind::Elicitation => form(plugin, &request.params).map(InputRequest::Elicitation),
        AskKind::Sampling => messages(request.params.clone()).map(InputRequest::CreateMessage),
        AskKind::Roots => Ok(InputRequest::ListRoots(ListRootsRequest::default())),
    }
    .map_err(refused)
}

/// Builds a form. The message names the plugin, so that the user knows the author.
fn form(plugin: &str, params: &Map<String, Value>) -> Result<ElicitRequest, String> {
    if params.get("mode").is_some_and(|mode| mode != "form") {
        return Err("a person is asked by forms only".to_owned());
    }
    let text = params.get("message").and_then(Value::as_str).ok_or("there is no `message`")?;
    let schema = params
        .get("requestedSchema")
        .and_then(Value::as_object)
        .ok_or("there is no `requestedSchema`")?;
    if let Some((at, character)) = hidden_in(schema) {
        return Err(format!(
            "the schema hides the character U+{:04X} at `{}`",
            u32::from(character),
            elided(&at, 128)
        ));
    }
    if let Some(field) = secret(schema) {
        return Err(format!(
            "the field `{}` is one for a secret, which no form is for",
            elided(field, 64)
        ));
    }
    let requested_schema = shown(schema)?;
    fields(&requested_schema)?;
    let message = format!("The plugin {plugin} asks: {}", visible(cut(text, MESSAGE)));
    Ok(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    }))
}

/// Returns the first field that asks for a secret, by its name, title or format.
fn secret(schema: &Map<String, Value>) -> Option<&str> {
    let fields = schema.get("properties").and_then(Value::as_object)?;
    let is_secret = |(name, field): &(&String, &Value)| {
        field["format"] == "password"
            || [name.as_str(), field["title"].as_str().unwrap_or("")].into_iter().any(names_secret)
    };
    fields.iter().find(is_secret).map(|(name, _)| name.as_str())
}

fn names_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    plain.ends_with("token") || SECRETS.iter().any(|secret| plain.contains(secret))
}

/// Builds a sampling request. Tools and the context of other servers are rejected: a plugin must
/// not reach them through the client's model.
fn messages(mut params: Map<String, Value>) -> Result<CreateMessageRequest, String> {
    params.remove("_meta");
    if params.get("includeContext").is_some_and(|context| context != "none") {
        return Err("a plugin gets none of the client's context".to_owned());
    }
    if let Some(more) = ["tools", "toolChoice"].into_iter().find(|name| params.contains_key(*name))
    {
        return Err(format!("a plugin's messages come without `{more}`"));
    }
    let params = serde_json::from_value::<CreateMessageRequestParams>(Value::Object(params));
    params
        .map(CreateMessageRequest::new)
        .map_err(|error| format!("the parameters are not those of sampling: {error}"))
}

/// Converts the answer to a question for the plugin. `None` if it does not match the kind of
/// question.
pub(super) fn told(request: &AskRequest, answer: &Value) -> Option<Result<String, AskFailure>> {
    let is_right = match request.kind {
        AskKind::Elicitation => {
            return filled(request, serde_json::from_value(answer.clone()).ok()?);
        }
        AskKind::Sampling => serde_json::from_value::<CreateMessageResult>(answer.clone()).is_ok(),
        AskKind::Roots => serde_json::from_value::<ListRootsResult>(answer.clone()).is_ok(),
    };
    is_right.then(|| Ok(answer.to_string()))
}

fn filled(request: &AskRequest, form: ElicitResult) -> Option<Result<String, AskFailure>> {
    let content = match (form.action, form.content) {
        (ElicitationAction::Accept, content) => content.unwrap_or_else(|| json!({})),
        _ => return Some(Err(AskFailure::Declined)),
    };
    let schema = shown(request.params.get("requestedSchema")?.as_object()?)
        .and_then(|form| fields(&form))
        .ok()?;
    let misfit = |why: Violations| {
        AskFailure::Invalid(format!(
            "the client's answer to `{}` is not what its form asks for: {why}",
            request.key
        ))
    };
    content
        .is_object()
        .then(|| schema.validate(&content).map(|()| content.to_string()).map_err(misfit))
}

/// Returns the form as the client sees it: the protocol knows few keywords, and others are dropped.
fn shown(schema: &Map<String, Value>) -> Result<ElicitationSchema, String> {
    serde_json::from_value(Value::Object(schema.clone())).map_err(|error| no_form(&error))
}

/// Returns the schema that the content of a form must match. It has the form's keywords alone,
/// which are cheap to compile and to check: a plugin's patterns would delay other calls.
fn fields(form: &ElicitationSchema) -> Result<Schema, String> {
    let schema = serde_json::to_value(form).map_err(|error| no_form(&error))?;
    Schema::input(schema).map_err(|error| no_form(&error))
}

fn no_form(error: &dyn std::fmt::Display) -> String {
    format!("the schema is not one of a form: {error}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn request(kind: AskKind, params: &Value) -> AskRequest {
        AskRequest { key: "k".into(), kind, params: params.as_object().unwrap().clone() }
    }

    fn asking(kind: AskKind, params: &Value) -> Result<Value, AskFailure> {
        question("forms", &request(kind, params))
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
        let said =
            |kind, text: &str| told(&request(kind, &asked), &serde_json::from_str(text).unwrap());
        let form = |text: &str| said(AskKind::Elicitation, text);
        assert_eq!(
            form(r#"{"action":"accept","content":{"n":1}}"#),
            Some(Ok(r#"{"n":1}"#.to_owned()))
        );
        assert_eq!(form(r#"{"action":"accept"}"#), Some(Ok("{}".to_owned())));
        for no in [r#"{"action":"decline"}"#, r#"{"action":"cancel","content":{"n":1}}"#] {
            assert_eq!(form(no), Some(Err(AskFailure::Declined)));
        }
        for none in
            ["12345", "null", "{}", r#"{"action":"yes"}"#, r#"{"action":"accept","content":3}"#]
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
            let answer = content.map_or(
                json!({"action": "accept"}),
                |it| json!({"action": "accept", "content": it}),
            );
            told(&request(AskKind::Elicitation, &asked), &answer).unwrap()
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
            told(
                &request(AskKind::Elicitation, &asked),
                &json!({"action": "accept", "content": {"a": text}}),
            )
            .unwrap()
        };
        assert!(said("x").is_ok() && said("four").is_err());
    }

    #[test]
    fn missing_capabilities_have_protocol_names() {
        let named = |kinds: &[AskKind]| serde_json::to_value(capabilities(kinds)).unwrap();
        assert_eq!(named(&[AskKind::Sampling]), json!({"sampling": {}}));
        assert_eq!(
            named(&[AskKind::Elicitation, AskKind::Roots]),
            json!({"elicitation": {"form": {}}, "roots": {}})
        );
    }
}
