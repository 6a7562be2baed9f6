//! The context of a call: ids, time left, and the caller's own data.

use std::time::Duration;

use palisade::{Session, ToolResult, policy::Policy};
use palisade_tests::case::block_on;
use palisade_tests::guest::CONTRACT_CONTEXT;
use palisade_tests::{Case, Observed};
use serde_json::{Map, Value, json};

fn see() -> Case {
    Case::new(CONTRACT_CONTEXT, "see")
        .timeout(Duration::from_secs(9))
        .input(json!({"at_most_ms": 9000}))
}

fn seen(seen: &Observed) -> Value {
    serde_json::from_str(seen.output()).unwrap()
}

#[test]
fn plain_call_has_no_ids_and_an_empty_context() {
    let expected = json!({
        "call_id": null, "session_id": null, "turn_id": null, "caller": {}, "metadata": {},
        "time_is_left": true, "time_is_bounded": true,
    });
    assert_eq!(seen(&see().check()), expected);
}

#[test]
fn callers_context_reaches_the_tool_unchanged() {
    let context = json!({"user": {"name": "Ada"}, "list": [1, "zwei", null], "tool_use": 3.5});
    let call = see().check_library(|call| call.with_context(context.clone()));
    assert_eq!(seen(&call)["caller"], context);
    let no_object = see().check_library(|call| call.with_context(json!(["not", "an", "object"])));
    assert_eq!(seen(&no_object)["caller"], json!(["not", "an", "object"]));
}

#[test]
fn call_metadata_reaches_the_tool_unchanged() {
    let metadata: Map<String, Value> = json!({"trace": "00-1"}).as_object().unwrap().clone();
    let call = see().check_library(|call| call.with_metadata(metadata));
    assert_eq!(seen(&call)["metadata"], json!({"trace": "00-1"}));
}

#[test]
fn call_session_and_turn_ids_reach_tool_and_result() {
    let case = see().input(json!({"with_id": true}));
    let world = case.world();
    let host = case.builder(&world).build().unwrap();
    let session = Session::new("conversation-7", host.workspace().clone(), Policy::default());
    let call = case.to_call(&world).with_id("tu_01").with_turn("turn-3");
    let result: ToolResult = block_on(host.dispatch(&session, call));
    assert_eq!(result.call_id().as_str(), "tu_01");
    let seen: Value = serde_json::from_str(&result.output().unwrap()).unwrap();
    assert_eq!(seen["call_id"], "tu_01");
    assert_eq!(seen["session_id"], "conversation-7");
    assert_eq!(seen["turn_id"], "turn-3");
}

#[test]
fn calls_without_ids_get_distinct_ones() {
    let id = |seen: &Observed| seen.result["call_id"].as_str().unwrap().to_owned();
    let (one, other) = (see().check_library(|call| call), see().check_library(|call| call));
    assert_ne!(id(&one), id(&other));
}

#[test]
fn remaining_time_is_at_most_the_calls_timeout() {
    let expected = |bound: u64| json!({"time_is_left": true, "time_is_bounded": bound >= 9000});
    for bound in [9000, 1] {
        let seen = seen(&see().input(json!({"at_most_ms": bound})).check());
        assert_eq!(
            json!({"time_is_left": seen["time_is_left"], "time_is_bounded": seen["time_is_bounded"]}),
            expected(bound)
        );
    }
}

#[test]
fn input_arrives_in_canonical_form() {
    let seen = Case::new(CONTRACT_CONTEXT, "input")
        .text(" {\"b\" : 1.0, \"c\": 0.5,\n\"a\":[ ] , \"ü\": \"\\u00fc\"} ")
        .check();
    assert_eq!(seen.output(), r#"{"a":[],"b":1,"c":0.5,"ü":"ü"}"#);
}
