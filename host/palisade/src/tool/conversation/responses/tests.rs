//! Reading and writing of OpenAI's Responses.

use crate::tool::Content;
use crate::tool::conversation::Provider::OpenAiResponses;
use crate::tool::conversation::tests::{CANCELLED, answered, every_kind, failed, read, row};
use serde_json::{Value, json};

fn call(id: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "echo", "arguments": "{}", "status": "completed"})
}

fn output() -> Value {
    let message = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I try."}]});
    json!([{"type": "reasoning", "id": "rs_1", "summary": []}, message, call("a"), {"type": "web_search_call", "id": "ws_1"}])
}

#[test]
fn calls_are_read_from_every_item_shape() {
    let rows = [row("a", "echo", "{}")];
    let body = json!({"object": "response", "error": null, "output": output()});
    assert_eq!(read(OpenAiResponses, &body), rows);
    assert_eq!(
        read(OpenAiResponses, &json!({"type": "response.completed", "response": body})),
        rows
    );
    assert_eq!(read(OpenAiResponses, &output()), rows);
    assert_eq!(read(OpenAiResponses, &call("a")), rows);
}

#[test]
fn custom_call_is_answered_as_custom() {
    let reply = json!([{"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "sql", "input": "select 1"}]);
    assert_eq!(read(OpenAiResponses, &reply), [row("a", "sql", "select 1")]);
    let (items, _) = answered(OpenAiResponses, &reply, vec![vec![Content::Text("1".into())]]);
    assert_eq!(items, json!([{"type": "custom_tool_call_output", "call_id": "a", "output": "1"}]));
}

#[test]
fn answered_call_is_not_repeated() {
    let done = json!({"type": "function_call_output", "call_id": "a", "output": "done"});
    assert_eq!(
        read(OpenAiResponses, &json!([call("a"), call("b"), done])),
        [row("b", "echo", "{}")]
    );
}

#[test]
fn each_call_is_answered_by_an_item() {
    let reply = json!([call("a"), call("b")]);
    let (items, left_out) =
        answered(OpenAiResponses, &reply, vec![vec![Content::Json(json!([1]).into())], vec![]]);
    assert_eq!(items[0], json!({"type": "function_call_output", "call_id": "a", "output": "[1]"}));
    assert_eq!(items[1], json!({"type": "function_call_output", "call_id": "b", "output": ""}));
    assert!(left_out.is_empty());
    assert_eq!(failed(OpenAiResponses, &reply)[1]["output"], CANCELLED);
}

#[test]
fn images_make_the_output_a_list() {
    let (items, left_out) = answered(OpenAiResponses, &call("a"), vec![every_kind()]);
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let picture = |url: &str| json!({"type": "input_image", "image_url": url});
    let expected = json!([
        text("text"),
        text("{\"a\":1}"),
        picture("data:image/png;base64,AQID"),
        text("[image of type image/bmp, 2 bytes, left out]"),
        text("[audio of type audio/wav, 1 bytes, left out]"),
        text("inside"),
        text("[resource file:///a.bin of unknown type, 3 bytes, left out]"),
        picture("data:image/webp;base64,AAEC"),
        text("[b](file:///b)"),
    ]);
    assert_eq!(items[0]["output"], expected);
    assert_eq!(left_out.len(), 3);
}
