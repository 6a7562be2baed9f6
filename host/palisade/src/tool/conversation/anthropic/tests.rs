//! Reading and writing of Anthropic's Messages.

use crate::tool::Content;
use crate::tool::conversation::Provider::Anthropic;
use crate::tool::conversation::tests::{CANCELLED, answered, every_kind, failed, read, row};
use serde_json::{Value, json};

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "echo", "input": {"n": 1}, "caller": {"type": "direct"}})
}

fn message() -> Value {
    let others = [
        json!({"type": "thinking", "thinking": "…", "signature": "s"}),
        json!({"type": "text", "text": "I try."}),
    ];
    let theirs = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    json!({"type": "message", "role": "assistant", "content": [others[0], others[1], theirs, call("a"), call("b")]})
}

#[test]
fn calls_are_read_from_every_message_shape() {
    let rows = [row("a", "echo", "{\"n\":1}"), row("b", "echo", "{\"n\":1}")];
    assert_eq!(read(Anthropic, &message()), rows);
    assert_eq!(
        read(Anthropic, &json!({"role": "assistant", "content": message()["content"]})),
        rows
    );
    assert_eq!(read(Anthropic, &json!([{"role": "user", "content": "Try."}, message()])), rows);
    assert_eq!(read(Anthropic, &message()["content"]), rows);
    assert_eq!(read(Anthropic, &call("a")), rows[..1]);
}

#[test]
fn server_side_call_is_ignored() {
    assert!(
        read(
            Anthropic,
            &json!([{"type": "server_tool_use", "id": "s", "name": "echo", "input": {}}])
        )
        .is_empty()
    );
}

#[test]
fn answered_call_is_not_repeated() {
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "done"});
    assert_eq!(
        read(Anthropic, &json!([message(), {"role": "user", "content": [result]}])),
        [row("b", "echo", "{\"n\":1}")]
    );
    assert_eq!(read(Anthropic, &json!([call("a"), result])), []);
}

#[test]
fn only_the_model_makes_calls() {
    assert!(read(Anthropic, &json!([{"role": "user", "content": [call("a")]}])).is_empty());
}

#[test]
fn one_user_message_answers_all_calls() {
    let (messages, _) =
        answered(Anthropic, &message(), vec![vec![Content::Text("hello".into())], vec![]]);
    let result = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": false});
    let content =
        json!([result("a", json!([{"type": "text", "text": "hello"}])), result("b", json!([]))]);
    assert_eq!(messages, json!([{"role": "user", "content": content}]));
}

#[test]
fn failure_is_marked() {
    let result = &failed(Anthropic, &call("a"))[0]["content"][0];
    assert_eq!(result["is_error"], true);
    assert_eq!(result["content"], json!([{"type": "text", "text": CANCELLED}]));
}

#[test]
fn blocks_are_text_and_images_only() {
    let (messages, left_out) = answered(Anthropic, &call("a"), vec![every_kind()]);
    let text = |text: &str| json!({"type": "text", "text": text});
    let picture = |mime: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}});
    let expected = json!([
        text("text"),
        text("{\"a\":1}"),
        picture("image/png", "AQID"),
        text("[image of type image/bmp, 2 bytes, left out]"),
        text("[audio of type audio/wav, 1 bytes, left out]"),
        text("inside"),
        text("[resource file:///a.bin of unknown type, 3 bytes, left out]"),
        picture("image/webp", "AAEC"),
        text("[b](file:///b)"),
    ]);
    assert_eq!(messages[0]["content"][0]["content"], expected);
    assert_eq!(left_out.len(), 3);
}

#[test]
fn blank_text_is_never_a_block() {
    let blank = vec![Content::Text(String::new()), Content::Text(" \n".into())];
    let (messages, _) = answered(Anthropic, &call("a"), vec![blank]);
    assert_eq!(
        messages[0]["content"][0]["content"],
        json!([{"type": "text", "text": "[2 bytes of white space]"}])
    );
}
