//! Calls made of a reply, and results written into messages.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use crate::tool::call::Nulls;
use crate::tool::{CallId, CallInput, ErrorKind};
use palisade_formats::{Provider, read_calls, write_results};
use serde_json::{Map, Value, json};

fn tool_use(id: &str, name: &str) -> ToolUse {
    let reply = json!({"type": "tool_use", "id": id, "name": name, "input": {"a": 1}});
    read_calls(Provider::Anthropic, &reply.to_string()).unwrap().remove(0)
}

fn written(result: ToolResult) -> Value {
    write_results(Provider::OpenAi, &[(tool_use("a", "echo"), result)]).0
}

#[test]
fn a_call_has_the_id_the_name_and_the_input_of_its_reply() {
    let tool_use = tool_use("tu_1", "echo");
    let call = Call::from(&tool_use);
    assert_eq!((call.id().as_str(), call.tool()), ("tu_1", "echo"));
    assert!(matches!(call.input(), CallInput::Text(text) if text == "{\"a\":1}"));
    assert_eq!(call.nulls, Nulls::StandForAbsent);
}

#[test]
fn a_call_without_an_id_keeps_the_id_of_its_place() {
    let uses = read_calls(Provider::Gemini, r#"[{"name": "a"}, {"name": "b"}]"#).unwrap();
    assert_eq!(Call::from(&uses[1]).id().as_str(), "call_2");
}

#[test]
fn a_long_id_stays_the_id_of_its_reply() {
    let tool_use = tool_use(&"x".repeat(300), "echo");
    assert_eq!(Call::from(&tool_use).id().as_str(), tool_use.call_id());
}

#[test]
fn a_long_name_is_cut() {
    let tool_use = tool_use("a", &"n".repeat(1_000_000));
    assert_eq!(Call::from(&tool_use).tool().len(), MAX_NAME);
}

#[test]
fn a_failure_carries_its_class_its_message_and_the_output_before_it() {
    let kind = ErrorKind::NotFound {
        tool: "echo".into(),
        nearest: vec!["echoes".into()],
        compiling: Vec::new(),
    };
    let output = vec![Content::Text("half of it".into())];
    let result = ToolResult::failure_with(CallId::new("a"), "echo", kind, output);
    let expected = format!("not_found: {result}\nhalf of it");
    assert_eq!(written(result)[0]["content"], json!(expected));
}

#[test]
fn metadata_is_not_written() {
    let secret = Map::from_iter([("secret".to_owned(), json!("for the program"))]);
    let result = ToolResult::success(CallId::new("a"), "echo", "done").with_metadata(secret);
    let messages = written(result);
    assert_eq!(messages[0]["content"], "done");
    assert!(!messages.to_string().contains("secret"), "{messages}");
}
