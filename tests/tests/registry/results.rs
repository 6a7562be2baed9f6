//! Results as values: two constructors, no mutation, three output forms.

use palisade::ExecutionKind;
use palisade::{CallId, Content, ErrorKind, ToolResult};
use palisade_tests::case::block_on;
use serde_json::{Map, Value, json};

use super::reporting;

fn failed() -> ErrorKind {
    ErrorKind::execution(ExecutionKind::Failed, "it broke")
}

#[test]
fn result_has_either_output_or_error() {
    let done = ToolResult::success(CallId::new("tu_1"), "t", "text");
    assert!(done.is_success() && !done.is_failure());
    assert_eq!((done.output().as_deref(), done.error().is_some()), (Some("text"), false));
    let broken = ToolResult::failure(CallId::new("tu_2"), "t", failed());
    assert!(broken.is_failure() && !broken.is_success());
    assert_eq!((broken.output(), broken.error().unwrap().message()), (None, "it broke".to_owned()));
    let with_blocks = ToolResult::failure_with(
        CallId::new("tu_3"),
        "t",
        failed(),
        vec![Content::Text("left".into())],
    );
    assert_eq!(with_blocks.output(), None);
    for result in [done, broken, with_blocks] {
        palisade_tests::uniform::check_shape(&result.to_json());
    }
}

#[test]
fn metadata_is_empty_by_default_and_hidden_from_the_model() {
    let plain = ToolResult::success(CallId::new("tu_1"), "t", "text");
    assert!(plain.metadata().is_empty());
    let mut metadata = Map::new();
    metadata.insert("stop_loop".to_owned(), Value::Bool(true));
    let stopping = plain.with_metadata(metadata);
    assert_eq!(stopping.metadata()["stop_loop"], true);
    assert!(!stopping.to_string().contains("stop_loop"));
    assert!(!stopping.to_block().to_string().contains("stop_loop"));
    assert_eq!(stopping.to_json()["metadata"], json!({"stop_loop": true}));
}

#[test]
fn plugin_metadata_reaches_the_loop_and_not_the_model() {
    let (_world, host) = reporting();
    let result = block_on(host.call("report", json!({}), json!({})));
    assert_eq!(result.metadata()["stop_loop"], true);
    assert_eq!(result.to_string(), "2 of 3 tests pass");
    assert!(!result.to_block().to_string().contains("stop_loop"));
}

#[test]
fn text_form_is_output_or_error() {
    assert_eq!(ToolResult::success(CallId::new("a"), "t", "text").to_string(), "text");
    assert_eq!(ToolResult::failure(CallId::new("a"), "t", failed()).to_string(), "it broke");
}

#[test]
fn map_form_has_every_field() {
    let (_world, host) = reporting();
    let result = block_on(host.call("report", json!({}), json!({})));
    let map = result.to_json();
    assert_eq!(map["call_id"], result.call_id().as_str());
    assert_eq!(map["tool"], "report");
    assert_eq!(map["output"], "2 of 3 tests pass");
    assert_eq!(map["content"], json!([{"type": "text", "text": "2 of 3 tests pass"}]));
    assert_eq!(map["command_executed"], "make test");
    assert_eq!(map["plugin"], "contract_outcome");
    assert_eq!(map["digest"], result.digest().unwrap().to_string());
    assert_eq!(map["usage"]["peak_memory_bytes"], result.usage().peak_memory_bytes);
    assert!(result.usage().peak_memory_bytes > 0);
    assert_eq!(
        map["duration_ms"],
        (result.duration().as_secs_f64() * 1e6).round() / 1e3,
        "to the microsecond"
    );
}

#[test]
fn block_form_fits_a_models_next_turn() {
    let (_world, host) = reporting();
    let call = palisade::Call::new("report", "{}").with_id("tu_01");
    let block = block_on(host.dispatch(host.session(), call)).to_block();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(
        block,
        json!({"tool_use_id": "tu_01", "content": text("2 of 3 tests pass"), "is_error": false})
    );
    let call = palisade::Call::new("nothing", "{}").with_id("tu_02");
    let block = block_on(host.dispatch(host.session(), call)).to_block();
    assert_eq!((&block["tool_use_id"], &block["is_error"]), (&json!("tu_02"), &json!(true)));
    assert!(block["content"][0]["text"].as_str().unwrap().contains("there is no tool `nothing`"));
}

#[test]
fn call_id_is_printable_and_bounded() {
    let id = CallId::new(&format!("a\n\u{1b}[2J{}", "x".repeat(1000)));
    assert!(!id.as_str().contains('\n') && !id.as_str().contains('\u{1b}'));
    assert!(id.as_str().len() <= 512, "{}", id.as_str().len());
}
