//! Tests that a provider's recorded reply is parsed in full and its calls are answered in that
//! provider's format.
//!
//! `cargo xtask providers` checks the replies in `replies` and the answers in `golden/conversation`
//! against the providers' own types. After an intended change, `UPDATE_GOLDEN=1 cargo test -p
//! palisade-tests --test conversation` rewrites the answers.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use palisade::formats::{Provider, ToolUse, read_calls, write_results};
use palisade::tool::Body;
use palisade::{CallId, Content, ErrorKind, ToolResult};
use serde_json::{Value, json};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Reads the calls of the recorded reply.
fn recorded(provider: Provider) -> Vec<ToolUse> {
    read_calls(provider, &fs::read_to_string(file(&format!("replies/{provider}.json"))).unwrap())
        .unwrap()
}

fn asked(one: &ToolUse) -> (String, Value) {
    (one.name().to_owned(), serde_json::from_str(one.input()).unwrap())
}

/// Returns a block of each kind, so that the provider's types see every possible part of a message.
fn every_kind() -> Vec<Content> {
    let bytes = |mime: &str| Content::Resource {
        uri: "file:///a".into(),
        mime: Some(mime.into()),
        body: Body::Bytes(b"bytes".to_vec()),
    };
    vec![
        Content::Text("text".into()),
        Content::Json(json!({"sum": 42}).into()),
        Content::Image { mime: "image/png".into(), data: b"png".to_vec() },
        Content::Image { mime: "image/tiff".into(), data: b"tiff".to_vec() },
        Content::Audio { mime: "audio/wav".into(), data: b"wav".to_vec() },
        Content::Resource {
            uri: "file:///b".into(),
            mime: None,
            body: Body::Text("inside".into()),
        },
        bytes("application/pdf"),
        bytes("application/zip"),
        Content::Link { uri: "file:///c".into(), name: "c".into(), mime: None },
    ]
}

/// Pairs each recorded call with a result: blocks of every kind, one value, white space, no blocks,
/// a failure.
fn results(uses: Vec<ToolUse>) -> Vec<(ToolUse, ToolResult)> {
    let outputs = [
        every_kind(),
        vec![Content::Json(json!({"sum": 42}).into())],
        vec![Content::Text(" \n".into())],
        vec![],
    ];
    let mut outputs = outputs.into_iter();
    let result = |one: &ToolUse| {
        let id = CallId::new(one.call_id());
        match outputs.next() {
            Some(blocks) => ToolResult::success_with(id, one.name(), blocks),
            None => ToolResult::failure(id, one.name(), ErrorKind::UserDenied),
        }
    };
    let results: Vec<ToolResult> = uses.iter().map(result).collect();
    uses.into_iter().zip(results).collect()
}

#[test]
fn calls_of_a_recorded_reply_are_read_in_order() {
    let expected = [
        ("read_file", json!({"path": "notes.txt"})),
        ("search_files", json!({"pattern": "OPEN"})),
        ("calculate", json!({"expression": "6 * 7"})),
        ("web_fetch", json!({"url": "https://example.org/"})),
        ("read_file", json!({})),
    ];
    let expected = expected.map(|(name, input)| (name.to_owned(), input));
    for provider in Provider::ALL {
        assert_eq!(
            recorded(provider).iter().map(asked).collect::<Vec<_>>(),
            expected,
            "{provider}"
        );
    }
}

#[test]
fn provider_ids_are_kept_and_missing_ones_generated() {
    let ids = |provider| {
        recorded(provider).iter().map(|one| one.call_id().to_string()).collect::<Vec<_>>()
    };
    let plain = ["call_notes", "call_search", "call_calculate", "call_unknown", "call_invalid"];
    assert_eq!(ids(Provider::OpenAi), plain);
    assert_eq!(ids(Provider::OpenAiResponses), plain);
    assert_eq!(ids(Provider::Anthropic), plain.map(|id| id.replace("call_", "toolu_")));
    assert_eq!(ids(Provider::Gemini), ["fn_notes", "fn_search", "call_3", "call_4", "call_5"]);
    let given = |provider| recorded(provider).iter().filter_map(ToolUse::id).count();
    assert_eq!(Provider::ALL.map(given), [5, 5, 5, 2]);
}

#[test]
fn written_answers_match_the_golden_files() {
    for provider in Provider::ALL {
        let (messages, left_out) = write_results(provider, &results(recorded(provider)));
        let written = json!({"messages": messages, "left_out": left_out.iter().map(ToString::to_string).collect::<Vec<_>>()});
        let path = file(&format!("golden/conversation/{provider}.json"));
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("{written:#}\n")).unwrap();
        }
        let golden: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert!(written == golden, "{} differs; got:\n{written:#}", path.display());
    }
}
