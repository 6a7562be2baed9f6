//! `call --json`: the whole result in its documented shape, for successes and failures.

use crate::{program, with_guest};
use palisade_tests::{World, guest, uniform};
use serde_json::{Value, json};

/// Checks and removes the fields that differ from run to run.
#[track_caller]
fn settled(mut result: Value) -> Value {
    uniform::check_shape(&result);
    assert!(
        result["digest"]
            .as_str()
            .is_some_and(|digest| digest.len() == 71 && digest.starts_with("sha256:")),
        "{result}"
    );
    assert!(result["duration_ms"].as_f64().is_some_and(|ms| ms >= 0.0), "{result}");
    for key in ["call_id", "duration_ms", "digest", "usage"] {
        result[key] = Value::Null;
    }
    result
}

#[test]
fn success_has_exactly_the_documented_keys() {
    let world = World::new();
    let ran = program(&world, &["call", "calculate", r#"{"expression": "6 * 7"}"#, "--json"])
        .run()
        .exits_with(0);
    assert_eq!(ran.stderr, "");
    let wanted = json!({
        "call_id": null, "tool": "calculate", "success": true, "output": "42", "content": [{"type": "text", "text": "42"}],
        "error": null, "metadata": {}, "files_modified": [], "command_executed": null, "duration_ms": null,
        "usage": null, "plugin": "calculate", "digest": null,
    });
    assert_eq!(settled(ran.json()), wanted);
}

#[test]
fn input_failure_has_exactly_the_documented_keys() {
    let world = World::new();
    let ran = program(&world, &["call", "calculate", r#"{"expression": 6}"#, "--json"])
        .run()
        .exits_with(6);
    assert_eq!(ran.stderr, "", "the error is in the result, and nowhere else");
    let result = settled(ran.json());
    assert_eq!(
        (&result["success"], &result["output"], &result["content"]),
        (&json!(false), &Value::Null, &json!([]))
    );
    let errors = &result["error"]["errors"];
    assert_eq!(errors.as_array().map(Vec::len), Some(1), "{result:#}");
    assert_eq!(errors[0]["pointer"], "/expression");
    assert!(
        errors[0]["reason"].as_str().is_some_and(|reason| reason.contains("string")),
        "{result:#}"
    );
    assert_eq!(errors[0].as_object().map(serde_json::Map::len), Some(2), "{result:#}");
    assert_eq!(result["error"]["class"], "validation_error");
}

#[test]
fn tool_failure_has_its_kind_and_output() {
    let world = World::new();
    let words = ["call", "report", r#"{"fail": true}"#, "--json"];
    let result =
        settled(with_guest(&world, guest::CONTRACT_OUTCOME, &words).run().exits_with(5).json());
    assert_eq!(result["error"]["detail"]["kind"], "unsuccessful");
    assert_eq!(result["error"]["message"], "2 of 3 tests pass");
    assert_eq!(result["metadata"]["stop_loop"], true);
    assert_eq!(result["command_executed"], "make test");
}

#[test]
fn at_most_ten_errors_are_listed() {
    let world = World::new();
    let words =
        ["call", "give", &format!(r#"{{"blocks": [{}]}}"#, vec!["1"; 30].join(",")), "--json"];
    let result = with_guest(&world, guest::CONTRACT_CONTENT, &words).run().exits_with(6).json();
    assert_eq!(result["error"]["errors"].as_array().map(Vec::len), Some(10), "{result:#}");
}

#[test]
fn accepted_timeouts_match_the_help() {
    let world = World::new();
    for time in ["500ms", "30s", "1m", "600s", "10m", "1m 30s"] {
        let _ =
            program(&world, &["call", "calculate", r#"{"expression": "1"}"#, "--timeout", time])
                .run()
                .exits_with(0);
    }
    for (time, said) in [
        ("0s", "at least 1ms"),
        ("601s", "600s"),
        ("11m", "600s"),
        ("-1s", "30s"),
        ("5", "30s"),
        ("soon", "30s"),
        ("", "30s"),
    ] {
        let ran = program(&world, &["call", "calculate", "{}", &format!("--timeout={time}")])
            .run()
            .exits_with(2);
        ran.stderr_contains(&["--timeout", said]);
    }
}

#[test]
fn call_beyond_its_timeout_is_stopped_in_any_state() {
    let world = World::new();
    for (guest, tool) in [(guest::CANCEL_SLEEP, "sleep"), (guest::CANCEL_COMPUTE, "compute")] {
        let words = ["call", tool, "--timeout", "50ms", "--json"];
        let result = with_guest(&world, guest, &words).run().exits_with(7).json();
        assert_eq!(result["error"]["class"], "timeout");
        assert!(
            result["duration_ms"].as_f64().is_some_and(|ms| (50.0..5_000.0).contains(&ms)),
            "{result:#}"
        );
    }
}

#[test]
fn unknown_input_key_is_accepted_and_reported() {
    let world = World::new();
    world.file("x", "text");
    let ran =
        program(&world, &["call", "read_file", r#"{"path": "x", "Limit": 3}"#]).run().exits_with(0);
    assert_eq!(ran.stdout, "text", "an additional key fails no call");
    assert_eq!(
        ran.stderr,
        "`read_file` names no key `Limit`, and ignores it; did you mean `limit`?\n"
    );
    let input = r#"{"path": "x", "a\u001b[2J": 3}"#;
    let ran = program(&world, &["call", "read_file", input]).run().exits_with(0);
    assert!(
        ran.stderr.contains("no key `a\\u{1b}[2J`") && !ran.stderr.contains('\u{1b}'),
        "{ran:?}"
    );
}

#[test]
fn duration_has_at_most_microsecond_digits() {
    let result = program(&World::new(), &["call", "list_dir", "--json"]).run().exits_with(0).json();
    let text = result["duration_ms"].as_f64().expect("a number").to_string();
    assert!(text.split_once('.').is_none_or(|(_, digits)| digits.len() <= 3), "{text}");
}

#[test]
fn non_object_input_is_refused_with_an_example() {
    for input in ["README.md", "path=README.md", "[]"] {
        let ran = program(&World::new(), &["call", "read_file", input]).run().exits_with(6);
        assert!(
            ran.stderr.ends_with("'{…}'; `palisade inspect read_file` shows what it takes\n"),
            "{ran:?}"
        );
    }
}

#[test]
fn protected_path_refusal_starts_with_the_reason() {
    let world = World::new();
    world.folder(".git");
    let input = r#"{"path": ".git/config", "content": "x"}"#;
    let ran =
        program(&world, &["call", "write_file", input, "--allow", "write"]).run().exits_with(4);
    assert!(
        ran.stderr
            .starts_with("permission_denied: `.git` is protected, and nothing is changed there"),
        "{ran:?}"
    );
}

#[test]
fn write_file_output_is_escaped() {
    let input = r#"{"path": "a\u001b[2J\u202eb", "content": "x"}"#;
    let ran = program(&World::new(), &["call", "write_file", input, "--allow", "write"])
        .run()
        .exits_with(0);
    assert_eq!(ran.stdout, "Created `a\\u{1b}[2J\\u{202e}b` (1 byte).");
}
