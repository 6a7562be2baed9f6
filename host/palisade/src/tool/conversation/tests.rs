//! Behaviour common to all providers: names, inputs, results.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod ids;
mod refused;

use super::{Provider, ReplyError, ToolUse, read_calls, write_results};
use crate::tool::{Body, CallInput, Content, ErrorKind, ToolResult};
use serde_json::{Map, Value, json};

/// Reads the calls of a reply.
pub(super) fn uses(provider: Provider, reply: &Value) -> Vec<ToolUse> {
    read_calls(provider, &reply.to_string()).unwrap()
}

/// Reads the calls of a reply, each as the provider's id, the name and the input's text.
pub(super) fn read(provider: Provider, reply: &Value) -> Vec<(Option<String>, String, String)> {
    let row = |one: &ToolUse| (one.id().map(str::to_owned), one.name().to_owned(), text(one));
    uses(provider, reply).iter().map(row).collect()
}

/// Builds one row of [`read`].
pub(super) fn row(id: &str, name: &str, input: &str) -> (Option<String>, String, String) {
    ((!id.is_empty()).then(|| id.to_owned()), name.to_owned(), input.to_owned())
}

fn text(one: &ToolUse) -> String {
    let CallInput::Text(text) = one.input() else { panic!("an input is text") };
    text.clone()
}

/// Answers the calls of a reply with the given contents; returns the messages and the omissions.
pub(super) fn answered(
    provider: Provider,
    reply: &Value,
    contents: Vec<Vec<Content>>,
) -> (Value, Vec<String>) {
    let calls = uses(provider, reply).into_iter().zip(contents);
    let results: Vec<_> = calls
        .map(|(one, content)| {
            let result = ToolResult::success_with(one.call_id().clone(), one.name(), content);
            (
                one,
                result.with_metadata(Map::from_iter([(
                    "secret".to_owned(),
                    json!("for the program"),
                )])),
            )
        })
        .collect();
    let (messages, left_out) = write_results(provider, &results);
    assert!(!messages.to_string().contains("secret"), "metadata is not for the model");
    (messages, left_out.iter().map(ToString::to_string).collect())
}

/// Answers each call of a reply with the same failure.
pub(super) fn failed(provider: Provider, reply: &Value) -> Value {
    let fail = |one: ToolUse| {
        let result = ToolResult::failure(one.call_id().clone(), one.name(), ErrorKind::Cancelled);
        (one, result)
    };
    write_results(provider, &uses(provider, reply).into_iter().map(fail).collect::<Vec<_>>()).0
}

/// The text of a failure of [`failed`].
pub(super) const CANCELLED: &str = "cancelled: the call was cancelled";

/// Returns one block of each kind.
pub(super) fn every_kind() -> Vec<Content> {
    let bytes = |mime: Option<&str>| Content::Resource {
        uri: "file:///a.bin".into(),
        mime: mime.map(str::to_owned),
        body: Body::Bytes(vec![0, 1, 2]),
    };
    vec![
        Content::Text("text".into()),
        Content::Json(json!({"a": 1}).into()),
        Content::Image { mime: "image/PNG".into(), data: vec![1, 2, 3] },
        Content::Image { mime: "image/bmp".into(), data: vec![1, 2] },
        Content::Audio { mime: "audio/wav".into(), data: vec![1] },
        Content::Resource {
            uri: "file:///a".into(),
            mime: None,
            body: Body::Text("inside".into()),
        },
        bytes(None),
        bytes(Some("image/webp")),
        Content::Link { uri: "file:///b".into(), name: "b".into(), mime: None },
    ]
}

/// Builds one call in the form of each provider, under the given id.
fn one_call(provider: Provider, id: &str) -> Value {
    match provider {
        Provider::OpenAi => {
            json!({"id": id, "type": "function", "function": {"name": "echo", "arguments": "{}"}})
        }
        Provider::OpenAiResponses => {
            json!({"type": "function_call", "call_id": id, "name": "echo", "arguments": "{}"})
        }
        Provider::Anthropic => json!({"type": "tool_use", "id": id, "name": "echo", "input": {}}),
        Provider::Gemini => json!({"functionCall": {"id": id, "name": "echo", "args": {}}}),
    }
}

#[test]
fn provider_name_round_trips() {
    for provider in Provider::ALL {
        assert_eq!(provider.to_string().parse::<Provider>(), Ok(provider));
    }
}

#[test]
fn unknown_provider_has_a_suggestion() {
    let error = "OpenAI-Response".parse::<Provider>().unwrap_err();
    assert_eq!(error.nearest, Some(Provider::OpenAiResponses));
    let said = error.to_string();
    assert!(
        said.contains("openai, openai-responses, anthropic and gemini")
            && said.contains("did you mean"),
        "{said}"
    );
    assert_eq!("zzz".parse::<Provider>().unwrap_err().nearest, None);
}

#[test]
fn bare_call_and_list_are_replies() {
    for provider in Provider::ALL {
        let one = one_call(provider, "a");
        assert_eq!(read(provider, &one), [row("a", "echo", "{}")], "{provider}");
        assert_eq!(
            read(provider, &json!([one, 5, {"type": "news"}])),
            [row("a", "echo", "{}")],
            "{provider}"
        );
    }
}

#[test]
fn alternative_keys_of_id_and_input_are_read() {
    for provider in Provider::ALL {
        for id in ["id", "call_id", "tool_call_id", "tool_use_id"] {
            assert_eq!(
                read(provider, &json!({id: "a", "name": "echo"})),
                [row("a", "echo", "{}")],
                "{provider} {id}"
            );
        }
        for key in ["arguments", "input", "args"] {
            for input in [json!({"a": [1]}), json!("{\"a\":[1]}")] {
                let direct = json!({"name": "echo", key: input});
                assert_eq!(
                    read(provider, &direct),
                    [row("", "echo", "{\"a\":[1]}")],
                    "{provider} {key}"
                );
                let within = json!({"id": "b", "function": direct});
                assert_eq!(
                    read(provider, &within),
                    [row("b", "echo", "{\"a\":[1]}")],
                    "{provider} {key}"
                );
            }
        }
    }
}

#[test]
fn missing_input_is_an_empty_object() {
    for empty in [json!(null), json!(""), json!(" \n"), json!({})] {
        let reply = json!({"name": "echo", "arguments": empty});
        assert_eq!(read(Provider::OpenAi, &reply), [row("", "echo", "{}")]);
    }
}

#[test]
fn invalid_input_affects_only_its_call() {
    let call = |input: Value| json!({"type": "function_call", "call_id": "a", "name": "echo", "arguments": input});
    let reply =
        json!([call(json!("{\"a\":")), call(json!(5)), call(json!([1])), call(json!({"a": 1}))]);
    let inputs: Vec<String> = uses(Provider::OpenAiResponses, &reply).iter().map(text).collect();
    assert_eq!(inputs, ["{\"a\":", "5", "[1]", "{\"a\":1}"]);
}

#[test]
fn oversized_number_affects_only_its_call() {
    for provider in Provider::ALL {
        let bad =
            one_call(provider, "bad").to_string().replacen("{}", r#"{"n": [1e400, "1e400"]}"#, 1);
        let bad = bad.replace(r#""{"n": [1e400, "1e400"]}""#, r#""{\"n\":[1e400,\"1e400\"]}""#);
        let reply = format!("[{bad},{}]", one_call(provider, "good"));
        let uses = read_calls(provider, &reply).unwrap();
        assert_eq!(
            uses.iter().map(text).collect::<Vec<_>>(),
            [r#"{"n":[1e400,"1e400"]}"#, "{}"],
            "{provider}"
        );
    }
    let refused = read_calls(Provider::Anthropic, "[1e400, }").unwrap_err();
    assert!(matches!(refused, ReplyError::Json(_)));
}

#[test]
fn typed_call_uses_its_documented_fields() {
    let other = json!({"name": "other", "arguments": {"o": 1}, "input": {"o": 1}, "args": {"o": 1}, "id": "o"});
    for provider in Provider::ALL {
        let mut call = one_call(provider, "a");
        let inner =
            if provider == Provider::Gemini { &mut call["functionCall"] } else { &mut call };
        for key in [
            "function",
            "custom",
            "functionCall",
            "function_call",
            "arguments",
            "input",
            "args",
            "tool_use_id",
        ] {
            if inner.get(key).is_none() {
                inner[key] = if key == "tool_use_id" { json!("o") } else { other.clone() };
            }
        }
        assert_eq!(read(provider, &json!([call])), [row("a", "echo", "{}")], "{provider}: {call}");
    }
}

#[test]
fn call_without_a_name_is_kept() {
    assert_eq!(read(Provider::OpenAi, &json!({"tool_calls": [{"id": "a"}]})), [row("a", "", "{}")]);
    assert_eq!(
        read(Provider::Anthropic, &json!({"type": "tool_use", "id": "a", "name": 5})),
        [row("a", "", "{}")]
    );
}

#[test]
fn reply_without_calls_is_valid() {
    for provider in Provider::ALL {
        assert!(read(provider, &json!([])).is_empty());
        assert!(read(provider, &json!([{"type": "news"}])).is_empty());
        assert!(
            read(provider, &json!({"role": "assistant", "content": "Done."})).is_empty(),
            "{provider}"
        );
        assert_eq!(write_results(provider, &[]), (json!([]), vec![]));
    }
}

#[test]
fn long_name_and_input_are_kept_until_dispatch() {
    let name = "n".repeat(1_000_000);
    let input = "i".repeat(2_000_000);
    let uses = uses(
        Provider::Anthropic,
        &json!({"type": "tool_use", "id": "a", "name": name, "input": input}),
    );
    assert_eq!(uses[0].to_call().tool().len(), 256);
    assert_eq!(text(&uses[0]).len(), 2_000_000);
}

#[test]
fn failure_has_class_message_and_partial_output() {
    let uses = uses(Provider::OpenAi, &one_call(Provider::OpenAi, "a"));
    let kind = ErrorKind::NotFound {
        tool: "echo".into(),
        nearest: vec!["echoes".into()],
        compiling: Vec::new(),
    };
    let result = ToolResult::failure_with(
        uses[0].call_id().clone(),
        "echo",
        kind,
        vec![Content::Text("half of it".into())],
    );
    let said = format!("not_found: {result}\nhalf of it");
    let (messages, _) = write_results(Provider::OpenAi, &[(uses[0].clone(), result)]);
    assert_eq!(messages[0]["content"], json!(said));
}
