//! Behaviour common to all providers: names, inputs, results.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod ids;
mod refused;

use super::{Block, Outcome, Provider, ReplyError, ToolUse, read_calls, write_results};
use palisade_schema::json::Json;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::LazyLock;

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
    one.input().to_owned()
}

/// A finished call with blocks of any kind.
struct Finished {
    error: Option<&'static str>,
    blocks: Vec<Block<'static>>,
}

impl Outcome for Finished {
    fn error_message(&self) -> Option<Cow<'_, str>> {
        self.error.map(Cow::Borrowed)
    }

    fn content_blocks(&self) -> impl Iterator<Item = Block<'_>> {
        self.blocks.iter().cloned()
    }
}

/// Answers the calls of a reply with the given contents; returns the messages and the omissions.
pub(super) fn answered(
    provider: Provider,
    reply: &Value,
    contents: Vec<Vec<Block<'static>>>,
) -> (Value, Vec<String>) {
    let calls = uses(provider, reply).into_iter().zip(contents);
    let results: Vec<_> =
        calls.map(|(one, blocks)| (one, Finished { error: None, blocks })).collect();
    let (messages, left_out) = write_results(provider, &results);
    (messages, left_out.iter().map(ToString::to_string).collect())
}

/// Answers each call of a reply with the same failure.
pub(super) fn failed(provider: Provider, reply: &Value) -> Value {
    let fail = |one: ToolUse| (one, Err::<String, _>(CANCELLED));
    write_results(provider, &uses(provider, reply).into_iter().map(fail).collect::<Vec<_>>()).0
}

/// The text of a failure of [`failed`].
pub(super) const CANCELLED: &str = "cancelled: the call was cancelled";

/// Returns a block of text.
pub(super) fn text_block(text: &'static str) -> Block<'static> {
    Block::Text(text.into())
}

/// Returns one block of each kind.
pub(super) fn every_kind() -> Vec<Block<'static>> {
    static JSON: LazyLock<Json> = LazyLock::new(|| json!({"a": 1}).into());
    let bytes = |mime| Block::Resource { uri: "file:///a.bin", mime, data: &[0, 1, 2] };
    vec![
        text_block("text"),
        Block::Json(&JSON),
        Block::Image { mime: "image/PNG", data: &[1, 2, 3] },
        Block::Image { mime: "image/bmp", data: &[1, 2] },
        Block::Audio { mime: "audio/wav", data: &[1] },
        text_block("inside"),
        bytes(None),
        bytes(Some("image/webp")),
        text_block("[b](file:///b)"),
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
fn provider_names_round_trip() {
    for provider in Provider::ALL {
        assert_eq!(provider.to_string().parse::<Provider>(), Ok(provider));
    }
}

#[test]
fn unknown_provider_lists_known_and_nearest() {
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
fn lists_of_calls_and_single_calls_are_replies() {
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
fn untyped_calls_may_use_any_key_for_id_and_input() {
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
                let within = |wrapper: &str| json!({"id": "b", wrapper: direct});
                let of_openai = read_calls(provider, &within("function").to_string());
                if provider == Provider::OpenAi {
                    let calls = read(provider, &within("function"));
                    assert_eq!(calls, [row("b", "echo", "{\"a\":[1]}")], "{key}");
                } else {
                    let found = Provider::OpenAi;
                    let refused = ReplyError::OtherProvider { expected: provider, found };
                    assert_eq!(of_openai.unwrap_err(), refused, "{key}");
                }
                if provider == Provider::Gemini {
                    let calls = read(provider, &within("functionCall"));
                    assert_eq!(calls, [row("", "echo", "{\"a\":[1]}")], "{key}");
                }
            }
        }
    }
}

#[test]
fn missing_input_is_the_empty_object() {
    for empty in [json!(null), json!(""), json!(" \n"), json!({})] {
        let reply = json!({"name": "echo", "arguments": empty});
        assert_eq!(read(Provider::OpenAi, &reply), [row("", "echo", "{}")]);
    }
}

#[test]
fn bad_input_affects_only_its_call() {
    let call = |input: Value| json!({"type": "function_call", "call_id": "a", "name": "echo", "arguments": input});
    let reply =
        json!([call(json!("{\"a\":")), call(json!(5)), call(json!([1])), call(json!({"a": 1}))]);
    let inputs: Vec<String> = uses(Provider::OpenAiResponses, &reply).iter().map(text).collect();
    assert_eq!(inputs, ["{\"a\":", "5", "[1]", "{\"a\":1}"]);
}

#[test]
fn number_out_of_range_affects_only_its_call() {
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
fn typed_calls_use_documented_fields_only() {
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
fn calls_without_a_name_are_read() {
    assert_eq!(read(Provider::OpenAi, &json!({"tool_calls": [{"id": "a"}]})), [row("a", "", "{}")]);
    assert_eq!(
        read(Provider::Anthropic, &json!({"type": "tool_use", "id": "a", "name": 5})),
        [row("a", "", "{}")]
    );
}

#[test]
fn replies_may_have_no_calls() {
    for provider in Provider::ALL {
        assert!(read(provider, &json!([])).is_empty());
        assert!(read(provider, &json!([{"type": "news"}])).is_empty());
        assert!(
            read(provider, &json!({"role": "assistant", "content": "Done."})).is_empty(),
            "{provider}"
        );
        assert_eq!(write_results::<Finished>(provider, &[]), (json!([]), vec![]));
    }
}

#[test]
fn long_names_and_inputs_are_kept_whole() {
    let name = "n".repeat(1_000_000);
    let input = "i".repeat(2_000_000);
    let uses = uses(
        Provider::Anthropic,
        &json!({"type": "tool_use", "id": "a", "name": name, "input": input}),
    );
    assert_eq!(uses[0].name().len(), 1_000_000);
    assert_eq!(text(&uses[0]).len(), 2_000_000);
}

#[test]
fn failure_has_its_message_before_its_output() {
    let uses = uses(Provider::OpenAi, &one_call(Provider::OpenAi, "a"));
    let failure = Finished { error: Some("it ended"), blocks: vec![text_block("half of it")] };
    let (messages, _) = write_results(Provider::OpenAi, &[(uses[0].clone(), failure)]);
    assert_eq!(messages[0]["content"], json!("it ended\nhalf of it"));
}

#[test]
fn std_result_is_an_outcome() {
    let uses = uses(Provider::Anthropic, &one_call(Provider::Anthropic, "a"));
    let results = [Ok("42"), Err("no")].map(|result| (uses[0].clone(), result));
    let (messages, _) = write_results(Provider::Anthropic, &results);
    let blocks = &messages[0]["content"];
    assert_eq!(
        (&blocks[0]["content"][0]["text"], &blocks[0]["is_error"]),
        (&json!("42"), &json!(false))
    );
    assert_eq!(
        (&blocks[1]["content"][0]["text"], &blocks[1]["is_error"]),
        (&json!("no"), &json!(true))
    );
}
