//! `palisade dispatch`: reads a model's reply, runs its tools, and prints the messages to send
//! back.

use crate::{program, user_file};
use palisade_tests::World;
use serde_json::{Value, json};

/// Reads a provider's recorded reply, with calls that succeed and calls that fail.
fn reply(provider: &str) -> String {
    let file = format!("{}/replies/{provider}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn furnished() -> World {
    let world = World::new();
    world.file("notes.txt", "remember the milk\nOPEN: buy it\n");
    world
}

#[track_caller]
fn dispatched(world: &World, provider: &str) -> Value {
    program(world, &["dispatch", "--from", provider])
        .stdin(reply(provider))
        .run()
        .exits_with(0)
        .json()
}

/// Returns the id and the text of each answer, in any provider's format.
fn answers(provider: &str, messages: &Value) -> Vec<(Value, String)> {
    let list = |value: &Value| {
        value.as_array().cloned().unwrap_or_else(|| panic!("no list: {messages:#}"))
    };
    match provider {
        "openai" => list(messages)
            .iter()
            .map(|m| (m["tool_call_id"].clone(), m["content"].to_string()))
            .collect(),
        "openai-responses" => {
            list(messages).iter().map(|m| (m["call_id"].clone(), m["output"].to_string())).collect()
        }
        "anthropic" => list(&messages[0]["content"])
            .iter()
            .map(|m| (m["tool_use_id"].clone(), m["content"].to_string()))
            .collect(),
        _ => list(&messages[0]["parts"])
            .iter()
            .map(|m| (m["functionResponse"]["id"].clone(), m.to_string()))
            .collect(),
    }
}

#[test]
fn recorded_reply_of_each_provider_runs() {
    for provider in ["openai", "openai-responses", "anthropic", "gemini"] {
        let world = furnished();
        let answers = answers(provider, &dispatched(&world, provider));
        let said: Vec<&str> = answers.iter().map(|(_, text)| text.as_str()).collect();
        let has = |part: &str| said.iter().any(|text| text.contains(part));
        assert!(has("remember the milk") && has("42") && has("OPEN"), "{provider}: {said:#?}");
        assert!(
            has("there is no tool `web_fetch`") && has("the input is not valid"),
            "{provider}: {said:#?}"
        );
        assert_eq!(answers.len(), 5, "{provider}: one answer for each call");
    }
}

#[test]
fn each_answer_has_the_id_of_its_call() {
    let messages = dispatched(&furnished(), "anthropic");
    let reply: Value = serde_json::from_str(&reply("anthropic")).unwrap();
    let asked: Vec<&Value> = reply["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "tool_use")
        .map(|b| &b["id"])
        .collect();
    let answered: Vec<Value> =
        answers("anthropic", &messages).into_iter().map(|(id, _)| id).collect();
    assert_eq!(answered.iter().collect::<Vec<_>>(), asked);
}

#[test]
fn failed_calls_are_answered_and_reported() {
    let ran = program(&furnished(), &["dispatch", "--from", "openai"])
        .stdin(reply("openai"))
        .run()
        .exits_with(0);
    ran.stderr_contains(&["web_fetch", "not_found", "read_file", "validation_error"]);
}

#[test]
fn confirmable_calls_run_only_if_allowed() {
    let call = json!([{"type": "function", "id": "c", "function": {"name": "write_file", "arguments": "{\"path\": \"made.txt\", \"content\": \"x\"}"}}]);
    let world = World::new();
    let run = |words: &[&str]| {
        program(&world, &[&["dispatch", "--from", "openai"], words].concat())
            .stdin(call.to_string())
            .run()
    };
    let refused = run(&[]).exits_with(0).json();
    assert!(refused[0]["content"].as_str().unwrap().contains("needs a confirmation"), "{refused}");
    assert_eq!(world.read("made.txt"), None);
    let _ = run(&["--allow", "write"]).exits_with(0);
    assert_eq!(world.read("made.txt").as_deref(), Some("x"));
}

#[test]
fn model_reads_the_refusal_and_the_operator_the_setting() {
    let world = World::new();
    world.file("palisade.toml", "[confirm]\nread = \"deny\"");
    let call = |name: &str, input: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": input}});
    let calls = json!([
        call("write_file", r#"{"path": "made.txt", "content": "x"}"#),
        call("list_dir", "{}"),
        call("zzz", "{}")
    ]);
    let ran = program(&world, &["dispatch", "--from", "openai"])
        .stdin(calls.to_string())
        .run()
        .exits_with(0);
    for advice in ["--allow", "palisade.toml", "confirm.", "palisade list", "auto"] {
        assert!(
            !ran.stdout.contains(advice),
            "the model gets the operator's advice {advice:?}: {}",
            ran.stdout
        );
    }
    let answers = ran.json();
    let said = |index: usize| answers[index]["content"].as_str().unwrap().to_owned();
    assert!(said(0).starts_with(
        "permission_denied: `write_file` is of class write, which needs a confirmation"
    ));
    assert_eq!(said(1), "permission_denied: the policy denies `list_dir` (class read)");
    assert_eq!(said(2), "not_found: there is no tool `zzz`");
    ran.stderr_contains(&[
        "--allow write",
        "in ~/.config/palisade/palisade.toml",
        "`confirm.read = \"deny\"`",
        "`palisade list`",
    ]);
}

#[test]
fn unknown_input_key_is_reported() {
    let call = json!([{"type": "function", "id": "c", "function": {"name": "read_file", "arguments": "{\"path\": \"notes.txt\", \"Limit\": 3}"}}]);
    let ran = program(&furnished(), &["dispatch", "--from", "openai"])
        .stdin(call.to_string())
        .run()
        .exits_with(0);
    ran.stderr_contains(&[
        "`read_file` names no key `Limit`, and ignores it; did you mean `limit`?",
    ]);
}

#[test]
fn strict_schema_nulls_are_accepted() {
    let world = furnished();
    let arguments =
        json!({"path": "notes.txt", "start_line": null, "end_line": null, "limit": null})
            .to_string();
    let call = json!([{"type": "function_call", "call_id": "c", "name": "read_file", "arguments": arguments}]);
    let ran = program(&world, &["dispatch", "--from", "openai-responses"])
        .stdin(call.to_string())
        .run()
        .exits_with(0);
    assert!(ran.json()[0]["output"].as_str().unwrap().starts_with("remember the milk"), "{ran:?}");
}

#[test]
fn tool_name_of_a_model_is_escaped() {
    let name = "x\u{1b}]0;owned\u{7}\u{1b}[2J\nread_file: all went well";
    let call = json!({"tool_calls": [{"id": "a\u{1b}[2J", "function": {"name": name, "arguments": "{}"}}]});
    let ran = program(&World::new(), &["dispatch", "--from", "openai"])
        .stdin(call.to_string())
        .run()
        .exits_with(0);
    assert!(
        !ran.stderr.contains(['\u{1b}', '\u{7}']) && ran.stderr.lines().count() == 1,
        "{:?}",
        ran.stderr
    );
}

#[test]
fn reply_without_calls_returns_nothing() {
    let text =
        json!({"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}).to_string();
    let ran =
        program(&World::new(), &["dispatch", "--from", "openai"]).stdin(text).run().exits_with(0);
    assert_eq!(ran.json(), json!([]));
}

#[test]
fn reply_of_another_provider_is_refused_before_any_call_runs() {
    let input = json!({"path": "made.txt", "content": "x"});
    let forms = [
        ("anthropic", json!({"type": "tool_use", "id": "a", "name": "write_file", "input": input})),
        (
            "openai",
            json!({"type": "function", "id": "a", "function": {"name": "write_file", "arguments": input.to_string()}}),
        ),
        (
            "openai-responses",
            json!({"type": "function_call", "call_id": "a", "name": "write_file", "arguments": input.to_string()}),
        ),
        ("gemini", json!({"functionCall": {"name": "write_file", "args": input}})),
    ];
    for (expected, _) in &forms {
        for (found, call) in forms.iter().filter(|(found, _)| found != expected) {
            for reply in [call.clone(), json!([call])] {
                let world = World::new();
                let words = ["dispatch", "--from", expected, "--allow", "write"];
                let ran = program(&world, &words).stdin(reply.to_string()).run().exits_with(6);
                assert_eq!((ran.stdout.as_str(), world.read("made.txt")), ("", None));
                ran.stderr_contains(&[
                    &format!("not a reply of {expected}"),
                    &format!("the form of {found}"),
                    &format!("`--from {found}`"),
                ]);
            }
        }
    }
}

#[test]
fn invalid_reply_is_refused_with_accepted_forms() {
    for text in ["", "not JSON", "7", r#"{"error": {"message": "quota"}}"#] {
        let ran = program(&World::new(), &["dispatch", "--from", "openai"])
            .stdin(text)
            .run()
            .exits_with(6);
        assert!(ran.stdout.is_empty() && ran.stderr.starts_with("error:"), "{text}: {ran:?}");
    }
    program(&World::new(), &["dispatch", "--from", "opnai"])
        .run()
        .exits_with(2)
        .stderr_contains(&["openai"]);
}

#[test]
fn reply_can_come_from_a_file() {
    let world = furnished();
    let file = world.outer().join("outside/reply.json");
    std::fs::write(&file, reply("gemini")).unwrap();
    let words = ["dispatch", "--from", "gemini", file.to_str().unwrap()];
    assert_eq!(
        program(&world, &words).run().exits_with(0).json(),
        dispatched(&furnished(), "gemini")
    );
}

#[test]
fn calls_of_one_reply_run_under_the_configured_cap() {
    let world = furnished();
    user_file(&world, "[limits]\nconcurrency = 1\n[limits.tool_concurrency]\nread_file = 1");
    let events = world.outer().join("outside/events.jsonl");
    let words = ["dispatch", "--from", "openai", "--events", events.to_str().unwrap()];
    let _ = program(&world, &words).stdin(reply("openai")).run().exits_with(0);
    let lines: Vec<Value> = std::fs::read_to_string(&events)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut running = 0_i32;
    for line in &lines {
        running += i32::from(line["event"] == "tool.called");
        assert!(running <= 1, "{lines:#?}");
        running -= i32::from(line["event"] == "tool.completed");
    }
    assert_eq!(lines.iter().filter(|line| line["session_id"] == "dispatch").count(), 8);
}
