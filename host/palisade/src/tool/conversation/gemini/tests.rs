//! Reading and writing of Gemini's contents.

use crate::tool::conversation::Provider::Gemini;
use crate::tool::conversation::tests::{CANCELLED, answered, every_kind, failed, read, row};
use crate::tool::{Body, Content};
use serde_json::{Value, json};

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {"n": 1}}, "thoughtSignature": "c2ln"})
}

fn content() -> Value {
    json!({"role": "model", "parts": [{"text": "I try.", "thought": true}, call("a"), {"executableCode": {}}, call("b")]})
}

#[test]
fn calls_are_read_from_every_content_shape() {
    let rows = [row("", "a", "{\"n\":1}"), row("", "b", "{\"n\":1}")];
    let body = json!({"candidates": [{"content": content(), "finishReason": "STOP"}], "modelVersion": "gemini-3-pro"});
    for reply in [
        &body,
        &json!([body]),
        &body["candidates"][0],
        &content(),
        &json!([content()]),
        &content()["parts"],
    ] {
        assert_eq!(read(Gemini, reply), rows, "{reply}");
    }
    assert_eq!(read(Gemini, &call("a")), rows[..1]);
    assert_eq!(read(Gemini, &call("a")["functionCall"]), rows[..1]);
    assert_eq!(read(Gemini, &json!({"function_call": {"name": "a", "args": {"n": 1}}})), rows[..1]);
}

#[test]
fn first_candidate_is_used() {
    let candidate = |name: &str| json!({"content": {"role": "model", "parts": [call(name)]}});
    let reply = json!({"candidates": [candidate("a"), candidate("b")]});
    assert_eq!(read(Gemini, &reply), [row("", "a", "{\"n\":1}")]);
}

#[test]
fn blocked_or_text_reply_has_no_calls() {
    let replies = [
        json!({"promptFeedback": {"blockReason": "SAFETY"}}),
        json!({"candidates": [{"finishReason": "SAFETY"}]}),
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}}]}),
        json!({"candidates": []}),
    ];
    for reply in replies {
        assert!(read(Gemini, &reply).is_empty(), "{reply}");
    }
}

#[test]
fn answered_call_is_not_repeated() {
    let done = json!({"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"output": 1}}}]});
    assert_eq!(read(Gemini, &json!([content(), done])), [row("", "b", "{\"n\":1}")]);
    let under_an_id = json!({"functionResponse": {"id": "call_1", "name": "a", "response": {}}});
    assert!(read(Gemini, &json!([call("a"), under_an_id])).is_empty());
}

#[test]
fn only_the_model_makes_calls() {
    assert!(read(Gemini, &json!([{"role": "user", "parts": [call("a")]}])).is_empty());
}

#[test]
fn one_content_answers_all_calls_with_their_ids() {
    let reply = json!([{"functionCall": {"id": "x", "name": "a"}}, call("b")]);
    let output = vec![
        vec![Content::Json(json!({"sum": 42}).into())],
        vec![Content::Text("one".into()), Content::Json(json!(2).into())],
    ];
    let (messages, _) = answered(Gemini, &reply, output);
    let parts = json!([
        {"functionResponse": {"id": "x", "name": "a", "response": {"output": {"sum": 42}}}},
        {"functionResponse": {"name": "b", "response": {"output": "one\n2"}}},
    ]);
    assert_eq!(messages, json!([{"role": "user", "parts": parts}]));
}

#[test]
fn failure_is_under_error() {
    let response = &failed(Gemini, &call("a"))[0]["parts"][0]["functionResponse"]["response"];
    assert_eq!(response, &json!({"error": CANCELLED}));
}

#[test]
fn images_and_documents_are_response_parts() {
    let mut blocks = every_kind();
    let mime = Some("application/pdf".to_owned());
    let body = Body::Bytes(vec![7]);
    blocks.push(Content::Resource { uri: "file:///c.pdf".into(), mime, body });
    let (messages, left_out) = answered(Gemini, &call("a"), vec![blocks]);
    let response = &messages[0]["parts"][0]["functionResponse"];
    let media = |mime: &str, data: &str| json!({"inlineData": {"mimeType": mime, "data": data}});
    assert_eq!(
        response["parts"],
        json!([
            media("image/png", "AQID"),
            media("image/webp", "AAEC"),
            media("application/pdf", "Bw==")
        ])
    );
    let said = "text\n{\"a\":1}\n[image of type image/bmp, 2 bytes, left out]\n[audio of type audio/wav, 1 bytes, left out]\ninside\n\
                [resource file:///a.bin of unknown type, 3 bytes, left out]\n[b](file:///b)";
    assert_eq!(response["response"], json!({"output": said}));
    assert_eq!(left_out.len(), 3);
}
