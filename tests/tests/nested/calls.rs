//! The stages of a nested call: look-up, validation, paths, policy, events.

use super::{granting, making, results};
use palisade::events::Event;
use palisade::policy::{Mode, Policy};
use palisade::{Advertised, Call, SideEffects, json};
use palisade_tests::Stage;
use palisade_tests::guest::NESTED_CALLS;

#[tokio::test]
async fn nested_call_runs_in_a_sandbox_of_its_own() {
    let stage = granting(&["read_file", "calculate"], |builder| builder);
    stage.world.file("a.txt", "of the workspace");
    let calls = json!([
        {"tool": "read_file", "input": {"path": "a.txt"}},
        {"tool": "calculate", "input": {"expression": "6 * 7"}},
    ]);
    let result = stage.host.dispatch(&stage.session(), making(&calls)).await;
    let results = results(&result);
    assert!(results[0].1.contains("of the workspace"), "{results:?}");
    assert_eq!(results[1], (String::new(), "42".to_owned()));
}

#[tokio::test]
async fn events_of_a_nested_call_name_the_call_that_makes_it() {
    let stage = granting(&["calculate"], |builder| builder);
    let calls = json!([{"tool": "calculate", "input": {"expression": "1"}}]);
    let _ = stage.host.dispatch(&stage.session(), making(&calls)).await;
    assert_eq!(stage.recorder.names_of("outer.1"), ["tool.called", "tool.completed"]);
    let parent = |event: &Event| event.subject().unwrap().parent.clone();
    let of_inner = stage.recorder.events_of("outer.1");
    assert!(of_inner.iter().all(|event| parent(event).unwrap().as_str() == "outer"));
    assert!(stage.recorder.events_of("outer").iter().all(|event| parent(event).is_none()));
    let all = stage.recorder.events();
    let calls: Vec<_> =
        all.iter().map(|event| event.subject().unwrap().call_id.to_string()).collect();
    assert_eq!(calls, ["outer", "outer.1", "outer.1", "outer"]);
}

#[tokio::test]
async fn tool_without_a_grant_calls_nothing() {
    let stage = Stage::new(&[NESTED_CALLS], |builder| builder);
    let calls = json!([{"tool": "calculate", "input": {"expression": "1"}}]);
    let result = stage.host.dispatch(&stage.session(), making(&calls)).await;
    assert_eq!(results(&result)[0].0, "permission_denied");
    let listed = stage.host.call("nested_list", json!({}), json!({})).await;
    assert_eq!(listed.output().as_deref(), Some("[]"));
    assert!(stage.recorder.events_of("outer.1").is_empty());
}

#[tokio::test]
async fn tools_beside_the_grant_hidden_or_denied_are_not_found() {
    let stage = granting(&["read_*", "calculate", "write_file", "find_files"], |builder| {
        builder.policy(Policy::default().with_tool("find_files", Mode::Deny))
    });
    let shown = ["calculate", "read_file", "find_files", "nested_run", "nested_list", "list_files"];
    let shown = Advertised::Only(shown.map(str::to_owned).into());
    let session = stage.host.new_session("shown").advertise(shown).build();
    let named = ["list_files", "write_file", "find_files", "nothing_like_it"];
    let calls: Vec<_> = named.iter().map(|tool| json!({"tool": tool, "input": {}})).collect();
    let result = stage.host.dispatch(&session, making(&json!(calls))).await;
    for (tool, (class, text)) in named.iter().zip(results(&result)) {
        assert_eq!(class, "not_found", "{tool}: {text}");
        assert!(!text.contains("write_file`?"), "a hidden name is suggested: {text}");
    }
    let listed = stage.host.dispatch(&session, Call::new("nested_list", json!({}))).await;
    assert_eq!(listed.output().as_deref(), Some(r#"["calculate","read_file"]"#));
}

#[tokio::test]
async fn invalid_input_and_outside_path_are_refused() {
    let stage = granting(&["*"], |builder| builder);
    let calls = json!([
        {"tool": "calculate", "input": {"expression": 7}},
        {"tool": "read_file", "input": {"path": "../outside/secret.txt"}},
        {"tool": "calculate", "input": "no object"},
    ]);
    let result = stage.host.dispatch(&stage.session(), making(&calls)).await;
    let classes: Vec<String> = results(&result).into_iter().map(|(class, _)| class).collect();
    assert_eq!(classes, ["validation_error", "permission_denied", "validation_error"]);
}

#[tokio::test]
async fn called_tool_cannot_call_others() {
    let stage = granting(&["*"], |builder| builder);
    let inner = json!({"calls": [{"tool": "calculate", "input": {"expression": "1"}}]});
    let calls = json!([
        {"tool": "nested_run", "input": inner},
        {"tool": "nested_list", "input": {}},
    ]);
    let result = stage.host.dispatch(&stage.session(), making(&calls)).await;
    let results = results(&result);
    assert!(results[0].1.contains("permission_denied"), "{results:?}");
    assert_eq!(results[1].1, "[]");
    assert!(stage.recorder.events_of("outer.1.1").is_empty());
}

#[tokio::test]
async fn renamed_and_granted_names_are_those_that_sessions_see() {
    let stage = granting(&["search_*"], |builder| builder);
    let listed = stage.host.call("nested_list", json!({}), json!({})).await;
    assert_eq!(listed.output().as_deref(), Some(r#"["search_files"]"#));
}

#[tokio::test]
async fn changed_files_and_usage_of_nested_calls_are_in_the_result() {
    let stage = granting(&["write_file"], |builder| {
        builder.policy(Policy::default().allowing(SideEffects::Write))
    });
    let write = |path: &str| json!({"tool": "write_file", "input": {"path": path, "content": "x"}});
    let calls = json!([write("a.txt"), write("b.txt"), write("a.txt")]);
    let result = stage.host.dispatch(&stage.session(), making(&calls)).await;
    let files: Vec<_> = result.files_modified().iter().map(|file| file.to_str().unwrap()).collect();
    assert_eq!(files, ["a.txt", "b.txt"]);
    assert_eq!(result.usage().bytes_written, 3);
    assert_eq!(stage.world.read("b.txt").as_deref(), Some("x"));
}
