//! Reading and writing of OpenAI's Chat Completions.

use crate::tool::Content;
use crate::tool::conversation::Provider::OpenAi;
use crate::tool::conversation::tests::{CANCELLED, answered, every_kind, failed, read, row};
use serde_json::{Value, json};

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "echo", "arguments": arguments}, "index": 0})
}

fn message() -> Value {
    json!({"role": "assistant", "content": "I try.", "tool_calls": [call("a", "{\"n\":1}"), call("b", "")]})
}

#[test]
fn calls_are_read_from_every_chat_shape() {
    let rows = [row("a", "echo", "{\"n\":1}"), row("b", "echo", "{}")];
    assert_eq!(read(OpenAi, &json!({"id": "x", "choices": [{"message": message()}]})), rows);
    assert_eq!(read(OpenAi, &json!({"index": 0, "message": message()})), rows);
    assert_eq!(read(OpenAi, &message()), rows);
    assert_eq!(read(OpenAi, &json!([message()])), rows);
    assert_eq!(read(OpenAi, &message()["tool_calls"]), rows);
    assert_eq!(read(OpenAi, &json!({"tool_calls": call("a", "{\"n\":1}")})), rows[..1]);
}

#[test]
fn first_choice_is_used() {
    let choice = |id: &str| json!({"message": {"role": "assistant", "tool_calls": [call(id, "")]}});
    assert_eq!(
        read(OpenAi, &json!({"choices": [choice("a"), choice("b")]})),
        [row("a", "echo", "{}")]
    );
}

#[test]
fn custom_call_has_text_input() {
    let custom =
        json!({"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}});
    assert_eq!(read(OpenAi, &json!({"tool_calls": [custom]})), [row("a", "sql", "select 1")]);
}

#[test]
fn legacy_call_without_id_is_answered_by_name() {
    let reply = json!({"role": "assistant", "content": null, "function_call": {"name": "echo", "arguments": "{}"}});
    assert_eq!(read(OpenAi, &reply), [row("", "echo", "{}")]);
    let (messages, _) = answered(OpenAi, &reply, vec![vec![Content::Text("hello".into())]]);
    assert_eq!(messages, json!([{"role": "function", "name": "echo", "content": "hello"}]));
    let both = json!({"tool_calls": [call("a", "")], "function_call": {"name": "echo", "arguments": "{}"}});
    assert_eq!(read(OpenAi, &both), [row("a", "echo", "{}")]);
}

#[test]
fn answered_call_is_not_repeated() {
    let done = json!({"role": "tool", "tool_call_id": "a", "content": "done"});
    assert_eq!(read(OpenAi, &json!([message(), done])), [row("b", "echo", "{}")]);
    let legacy = json!({"role": "assistant", "function_call": {"name": "echo", "arguments": "{}"}});
    assert!(
        read(OpenAi, &json!([legacy, {"role": "function", "name": "echo", "content": ""}]))
            .is_empty()
    );
}

#[test]
fn only_the_model_makes_calls() {
    assert!(
        read(OpenAi, &json!([{"role": "user", "content": "", "tool_calls": [call("a", "")]}]))
            .is_empty()
    );
}

#[test]
fn text_reply_has_no_calls() {
    for calls in [json!(null), json!([])] {
        let message =
            json!({"role": "assistant", "content": "Done.", "refusal": null, "tool_calls": calls});
        assert!(read(OpenAi, &json!({"choices": [{"message": message}]})).is_empty());
    }
    assert!(read(OpenAi, &json!({"choices": []})).is_empty());
}

#[test]
fn each_call_is_answered_by_a_text_message() {
    let reply = message();
    let (messages, left_out) = answered(OpenAi, &reply, vec![every_kind(), vec![]]);
    let said = "text\n{\"a\":1}\n[image of type image/PNG, 3 bytes, left out]\n[image of type image/bmp, 2 bytes, left out]\n\
                [audio of type audio/wav, 1 bytes, left out]\ninside\n[resource file:///a.bin of unknown type, 3 bytes, left out]\n\
                [resource file:///a.bin of type image/webp, 3 bytes, left out]\n[b](file:///b)";
    assert_eq!(
        messages,
        json!([{"role": "tool", "tool_call_id": "a", "content": said}, {"role": "tool", "tool_call_id": "b", "content": ""}])
    );
    assert_eq!(left_out.len(), 5);
    assert!(
        left_out[0].starts_with("echo (a): image of type image/PNG, 3 bytes"),
        "{}",
        left_out[0]
    );
    assert_eq!(
        failed(OpenAi, &reply)[1],
        json!({"role": "tool", "tool_call_id": "b", "content": CANCELLED})
    );
}
