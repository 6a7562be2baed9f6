//! The parts of a result besides the model's part leave through every door of the program, and the
//! caller's part reaches the tools.

use crate::{program, with_guest};
use palisade_tests::World;
use palisade_tests::guest::{CONTRACT_CONTEXT, CONTRACT_OUTCOME, Guest};
use palisade_tests::program::Ran;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("the file is there");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON value")).collect()
}

fn file(world: &World) -> PathBuf {
    world.home().join("results.jsonl")
}

/// Returns a reply that asks for these tools with an empty input.
fn asking(tools: &[&str]) -> String {
    let call = |name: &&str| json!({"type": "tool_use", "id": format!("tu_{name}"), "name": name, "input": {}});
    json!({"content": tools.iter().map(call).collect::<Vec<_>>()}).to_string()
}

/// Runs a reply of Anthropic's with a guest's tools; writing tools run unasked.
fn dispatched(world: &World, guest: Guest, tools: &[&str], more: &[&str]) -> Ran {
    let words = [&["dispatch", "--from", "anthropic", "--allow", "write"], more].concat();
    with_guest(world, guest, &words).stdin(asking(tools)).run()
}

#[test]
fn results_file_has_what_the_messages_leave_out() {
    let world = World::new();
    let path = file(&world);
    let tools = ["report", "no_such_tool", "touch", "touch_and_fail"];
    let options = ["--results", path.to_str().unwrap()];
    let ran = dispatched(&world, CONTRACT_OUTCOME, &tools, &options).exits_with(0);
    assert!(!ran.stdout.contains("stop_loop") && !ran.stdout.contains("files_modified"), "{ran:?}");
    let results = lines(&path);
    let of = |key: &str| results.iter().map(|result| result[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("tool"), tools);
    assert_eq!(of("call_id"), tools.map(|tool| format!("tu_{tool}")));
    assert_eq!(of("success"), [true, false, true, false]);
    assert_eq!(results[0]["metadata"]["stop_loop"], true);
    assert_eq!(results[0]["command_executed"], "make test");
    assert_eq!(results[2]["files_modified"], json!(["touched.txt"]));
    assert_eq!(results[3]["files_modified"], json!(["touched.txt"]), "a failure changes files too");
    results.iter().for_each(palisade_tests::uniform::check_shape);
}

#[test]
fn results_replace_results_and_nothing_else() {
    let world = World::new();
    let path = file(&world);
    let options = ["--results", path.to_str().unwrap()];
    for tools in [&["report", "touch"][..], &["report"]] {
        let had = path.exists();
        let ran = dispatched(&world, CONTRACT_OUTCOME, tools, &options).exits_with(0);
        assert_eq!(lines(&path).len(), tools.len());
        let said = format!("the results that `{}` held are replaced", path.display());
        assert_eq!(ran.stderr.contains(&said), had, "{ran:?}");
    }
    std::fs::write(&path, "a diary\n").unwrap();
    dispatched(&world, CONTRACT_OUTCOME, &["touch"], &options).exits_with(2).stderr_contains(&[
        "results",
        "something other than results",
        "new file",
    ]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a diary\n");
    assert_eq!(world.read("touched.txt").as_deref(), Some("12345"), "of the first run");
}

#[test]
fn link_in_the_workspace_is_refused_for_results() {
    let world = World::new();
    world.link("results.jsonl", "@/outside/secret.txt");
    let before = world.outside();
    let path = world.root().join("results.jsonl");
    dispatched(&world, CONTRACT_OUTCOME, &["touch"], &["--results", path.to_str().unwrap()])
        .exits_with(2)
        .stderr_contains(&["symbolic link"]);
    assert_eq!((world.outside(), world.read("touched.txt")), (before, None));
}

#[test]
fn tools_do_not_read_the_results() {
    let world = World::new();
    let path = world.root().join("results.jsonl");
    let reply = json!([{"type": "tool_use", "id": "r", "name": "read_file", "input": {"path": "results.jsonl"}}]);
    let words = ["dispatch", "--from", "anthropic", "--results", path.to_str().unwrap()];
    for _ in 0..2 {
        let ran = program(&world, &words).stdin(reply.to_string()).run().exits_with(0);
        assert!(ran.stdout.contains("permission_denied"), "{ran:?}");
    }
}

#[test]
fn unwritable_results_are_an_error_after_the_messages() {
    let world = World::new();
    let ran = dispatched(&world, CONTRACT_OUTCOME, &["report"], &["--results", "/dev/full"]);
    let ran = ran.exits_with(1);
    ran.stderr_contains(&["the results could not be written to `/dev/full`"]);
    assert!(ran.stdout.contains("2 of 3 tests pass"), "the calls ran, and are answered: {ran:?}");
}

#[test]
fn event_lines_have_what_the_model_does_not_read() {
    let world = World::new();
    let path = file(&world);
    let options = ["--events", path.to_str().unwrap()];
    let tools = ["report", "touch", "touch_and_fail"];
    let _ = dispatched(&world, CONTRACT_OUTCOME, &tools, &options).exits_with(0);
    let all = lines(&path);
    let end = |tool: &str| {
        let ends = |line: &&Value| {
            let event = &line["event"];
            line["tool_name"] == tool && (event == "tool.completed" || event == "tool.failed")
        };
        all.iter().find(ends).cloned().unwrap_or_default()
    };
    let report = end("report");
    assert_eq!(report["metadata"]["stop_loop"], true, "{report}");
    assert_eq!(report["command_executed"], "make test", "{report}");
    assert_eq!(report.get("files_modified"), None, "no key without a value: {report}");
    assert_eq!(end("touch")["files_modified"], json!(["touched.txt"]));
    let failed = end("touch_and_fail");
    assert_eq!(
        (&failed["event"], &failed["files_modified"]),
        (&json!("tool.failed"), &json!(["touched.txt"]))
    );
}

/// Returns what the tool `see` saw, from its text.
fn seen(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn caller_names_session_turn_and_context_of_a_call() {
    let world = World::new();
    let events = file(&world);
    let options = [
        "call",
        "see",
        "{}",
        "--session",
        "s-7",
        "--turn",
        "t-3",
        "--context",
        r#"{"user": {"id": 7}}"#,
        "--events",
        events.to_str().unwrap(),
    ];
    let ran = with_guest(&world, CONTRACT_CONTEXT, &options).run().exits_with(0);
    let see = seen(&ran.stdout);
    assert_eq!((&see["session_id"], &see["turn_id"]), (&json!("s-7"), &json!("t-3")));
    assert_eq!(see["caller"], json!({"user": {"id": 7}}));
    let called = lines(&events).into_iter().find(|line| line["event"] == "tool.called").unwrap();
    assert_eq!((&called["session_id"], &called["turn_id"]), (&json!("s-7"), &json!("t-3")));
    assert!(!std::fs::read_to_string(&events).unwrap().contains("\"user\""), "no event has it");
}

#[test]
fn caller_names_session_turn_and_context_of_a_reply() {
    let world = World::new();
    let context = world.home().join("context.json");
    std::fs::write(&context, "[1, null]").unwrap();
    let at = format!("@{}", context.display());
    let options = ["--session", "s-7", "--turn", "t-3", "--context", &at];
    let ran = dispatched(&world, CONTRACT_CONTEXT, &["see", "see"], &options).exits_with(0);
    for answer in ran.json()[0]["content"].as_array().unwrap() {
        let see = seen(answer["content"][0]["text"].as_str().unwrap());
        assert_eq!((&see["session_id"], &see["turn_id"]), (&json!("s-7"), &json!("t-3")));
        assert_eq!(see["caller"], json!([1, null]));
    }
    let ran = dispatched(&world, CONTRACT_CONTEXT, &["see"], &[]).exits_with(0);
    let see = seen(ran.json()[0]["content"][0]["content"][0]["text"].as_str().unwrap());
    assert_eq!((&see["session_id"], &see["turn_id"]), (&json!("dispatch"), &Value::Null));
    assert_eq!(see["caller"], json!({}));
}

#[test]
fn invalid_caller_options_are_usage_errors() {
    let world = World::new();
    for (option, value, says) in [
        ("--context", "{user: 7}", "--context"),
        ("--context", r#"{"a": 1, "a": 2}"#, "--context"),
        ("--context", "@missing.json", "missing.json"),
        ("--session", "", "--session"),
        ("--turn", "", "--turn"),
    ] {
        let words = ["call", "touch", "{}", "--allow", "write", option, value];
        with_guest(&world, CONTRACT_OUTCOME, &words).run().exits_with(2).stderr_contains(&[says]);
    }
    assert_eq!(world.read("touched.txt"), None, "nothing was run");
}
