//! Content blocks of each kind, as the model and as a program read them.

use palisade_tests::guest::CONTRACT_CONTENT;
use palisade_tests::{Case, Observed};
use serde_json::{Value, json};

fn give(blocks: &[&str]) -> Observed {
    Case::new(CONTRACT_CONTENT, "give").input(json!({"blocks": blocks})).check()
}

#[track_caller]
fn is(block: &str, text: &str, json: Value) {
    let seen = give(&[block]);
    assert_eq!(seen.output(), text);
    assert_eq!(seen.result["content"], json!([json]));
}

#[test]
fn text_block_is_the_verbatim_output() {
    is("text", "plain", json!({"type": "text", "text": "plain"}));
}

#[test]
fn json_block_is_printed_in_canonical_form() {
    is(
        "json",
        r#"{"a":"ü","b":[1,2.5,null]}"#,
        json!({"type": "json", "json": {"a": "ü", "b": [1, 2.5, null]}}),
    );
}

#[test]
fn image_is_text_for_the_model_and_base64_in_json() {
    is(
        "image",
        "[image image/png, 4 bytes]",
        json!({"type": "image", "mime": "image/png", "data": "iVBORw=="}),
    );
}

#[test]
fn audio_is_a_note_to_the_model_and_bytes_to_the_program() {
    is(
        "audio",
        "[audio audio/wav, 4 bytes]",
        json!({"type": "audio", "mime": "audio/wav", "data": "UklGRg=="}),
    );
}

#[test]
fn text_resource_is_included_in_the_output() {
    let block = json!({"type": "resource", "uri": "note:1", "mime": "text/plain", "text": "whole"});
    is("resource-text", "whole", block);
}

#[test]
fn binary_resource_is_a_note_to_the_model() {
    let block = json!({"type": "resource", "uri": "blob:1", "mime": null, "data": "AP8="});
    is("resource-bytes", "[resource blob:1, 2 bytes]", block);
}

#[test]
fn link_is_shown_and_never_followed() {
    let block = json!({"type": "link", "uri": "note:2", "name": "x", "mime": "text/markdown"});
    is("link", "[x](note:2)", block);
}

#[test]
fn blocks_keep_their_order_joined_by_line_feeds() {
    let seen = give(&["link", "text", "json"]);
    assert_eq!(seen.output(), "[x](note:2)\nplain\n{\"a\":\"ü\",\"b\":[1,2.5,null]}");
    let kinds: Vec<&str> = seen.result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["link", "text", "json"]);
}

#[test]
fn output_without_blocks_is_an_empty_text() {
    let seen = give(&[]);
    assert_eq!(seen.output(), "");
    assert_eq!(seen.result["content"], json!([]));
}

#[test]
fn invalid_json_block_breaks_the_contract() {
    let seen = give(&["text", "not-json"]);
    assert_eq!(seen.kind(), "contract");
    assert!(seen.message("execution_error").contains("not valid JSON"), "{:#}", seen.result);
    assert_eq!(seen.result["error"]["is_recoverable"], false);
}

#[test]
fn json_block_with_a_duplicate_key_breaks_the_contract() {
    let seen = give(&["twice-json"]);
    assert_eq!(seen.kind(), "contract");
    assert!(seen.message("execution_error").contains("twice"), "{:#}", seen.result);
}
