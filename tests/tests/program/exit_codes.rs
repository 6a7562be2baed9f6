//! Every outcome of a run has its own exit code and an explanation on standard error.

use crate::{program, with_guest};
use palisade_tests::api::until;
use palisade_tests::mcp::Client;
use palisade_tests::{World, guest};
use std::fs;

#[test]
fn success_is_0_with_empty_stderr() {
    let world = World::new();
    let ran = program(&world, &["call", "calculate", r#"{"expression": "2 + 3 * 4"}"#])
        .run()
        .exits_with(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("14", ""));
}

#[test]
fn wrong_command_line_is_2() {
    let world = World::new();
    for (words, named) in [
        (&["frobnicate"][..], "frobnicate"),
        (&[], "Usage"),
        (&["list", "--colour"], "--colour"),
        (&["call"], "<TOOL>"),
        (&["call", "calculate", "{}", "more"], "more"),
        (&["call", "calculate", "{}", "--allow", "everything"], "everything"),
        (&["run"], "<PROGRAM>"),
        (&["inspect"], "<SUBJECT>"),
        (&["dispatch"], "--from"),
        (&["policy"], "explain"),
        (&["serve", "--http", "nowhere"], "localhost:8080"),
        (&["watch", "nowhere"], "http://127.0.0.1:PORT"),
        (&["console", "https://tools.example"], "ssh -L"),
        (&["log", "--outcome", "fine"], "`fine` is no outcome"),
        (&["mcp"], "config"),
        (&["new", "greet", "--lang", "cobol"], "python"),
        (&["build", "--lang", "cobol"], "python"),
        (&["dev", "--lang", "cobol"], "python"),
        (&["adapt", "x.wasm"], "--class"),
        (&["check", "x.wasm", "--tool", "x"], "--record"),
        (&["bench"], "<TOOL>"),
        (&["cache"], "clear"),
        (&["add"], "<SOURCE>"),
        (&["add", "http://example.org/git.wasm"], "https://HOST/FILE.wasm"),
        (&["remove"], "<PLUGIN>"),
        (&["update", "--colour"], "--colour"),
        (&["publish", "git.wasm"], "<REFERENCE>"),
        (&["approve", "--yes", "--json"], "cannot be used with"),
        (&["revoke"], "<PLUGIN>"),
        (&["sign"], "FILE"),
        (&["demo"], "escape"),
        (&["doctor", "--colour"], "--colour"),
        (&["export"], "--format"),
        (&["export", "--format", "cobol"], "openai-responses"),
        (&["completions", "tcsh"], "zsh"),
        (&["grant", "x"], "net"),
        (&["config"], "show"),
    ] {
        let ran = program(&world, words).run().exits_with(2);
        assert_eq!(ran.stdout, "", "{words:?}");
        ran.stderr_contains(&[named]);
    }
}

#[test]
fn console_of_no_server_is_2_with_the_servers_that_run() {
    let world = World::new();
    let said = |verb: &str| {
        let ran = program(&world, &[verb, "http://127.0.0.1:1"]).run().exits_with(2);
        assert!(ran.stderr.contains("no server runs at"), "{}", ran.stderr);
        ran.stderr
    };
    assert!(!said("console").contains("may run"));
    let client = Client::start_with(program(&world, &[]), &["--console"]);
    for verb in ["console", "watch"] {
        let listed = "servers of this machine that may run: http://127.0.0.1:";
        until("the server is listed", || said(verb).contains(listed));
    }
    let (ran, _) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!said("console").contains("may run"));
}

#[test]
fn missing_workspace_is_2() {
    for arrange in [
        |_: &World| (),
        |world: &World| fs::write(world.root(), "a file").expect("it can be written"),
    ] {
        let world = World::new();
        fs::remove_dir(world.root()).expect("it can be removed");
        arrange(&world);
        for words in [&["list"][..], &["call", "calculate", "{}"], &["export", "-f", "mcp"]] {
            let ran = program(&world, words).run().exits_with(2);
            assert_eq!(ran.stdout, "");
            ran.stderr_contains(&["error:", "workspace", &*world.root().to_string_lossy()]);
        }
    }
}

#[test]
fn unlistable_plugin_directory_is_2() {
    let world = World::new();
    world.file("file", "").link("loop", "loop");
    for name in ["missing", "file", "loop"] {
        let directory = world.root().join(name);
        let ran = program(&world, &["list", "--plugins"]).args([&directory]).run().exits_with(2);
        ran.stderr_contains(&["error:", &*directory.to_string_lossy()]);
    }
}

#[test]
fn unknown_tool_is_3_with_similar_names() {
    let world = World::new();
    for words in [&["call", "raed_file"][..], &["inspect", "raed_file"]] {
        let ran = program(&world, words).run().exits_with(3);
        ran.stderr_contains(&["raed_file", "read_file"]);
        assert_eq!(ran.stdout, "");
    }
    program(&world, &["call", "zzzzzzzzzzzz"])
        .run()
        .exits_with(3)
        .stderr_contains(&["not_found", "zzzzzzzzzzzz"]);
    let ran = program(&world, &["call", "raed_file", "--json"]).run().exits_with(3);
    assert_eq!(ran.json()["error"]["class"], "not_found");
}

#[test]
fn sandbox_or_policy_refusal_is_4() {
    let world = World::new();
    let ran =
        program(&world, &["call", "read_file", r#"{"path": "../secret.txt"}"#]).run().exits_with(4);
    ran.stderr_contains(&["permission_denied:", "../secret.txt", "escapes the workspace"]);
    let ran = program(&world, &["call", "delete_file", r#"{"path": "x"}"#]).run().exits_with(4);
    ran.stderr_contains(&["permission_denied:"]);
}

#[test]
fn tool_failure_is_5() {
    let world = World::new();
    let words = ["call", "fail", r#"{"with": "failed"}"#];
    let ran = with_guest(&world, guest::CONTRACT_ERRORS, &words).run().exits_with(5);
    assert_eq!((ran.stdout.as_str(), ran.stderr.trim_end()), ("", "execution_error: it broke"));
    let words = ["call", "report", r#"{"fail": true}"#];
    with_guest(&world, guest::CONTRACT_OUTCOME, &words)
        .run()
        .exits_with(5)
        .stderr_contains(&["2 of 3 tests pass"]);
}

#[test]
fn invalid_input_is_6_with_its_place() {
    let world = World::new();
    for (input, said) in [
        ("{nope", "line 1"),
        ("", "line 1"),
        ("[]", "object"),
        ("{}", "expression"),
        (r#"{"expression": 7}"#, "/expression"),
        (r#"{"expression": "1", "expression": "2"}"#, "expression"),
    ] {
        let ran = program(&world, &["call", "calculate", input]).run().exits_with(6);
        ran.stderr_contains(&[
            "validation_error:",
            said,
            "`palisade inspect calculate` shows what it takes",
        ]);
        assert_eq!(ran.stdout, "");
    }
    let words = ["call", "read_file", r#"{"path": "a", "start_line": "x"}"#, "--json"];
    let ran = program(&world, &words).run().exits_with(6);
    assert_eq!(ran.json()["error"]["errors"][0]["pointer"], "/start_line");
}

#[cfg(target_os = "linux")]
#[test]
fn partial_output_of_a_timed_out_command_is_shown() {
    let world = World::new();
    let input = r#"{"command": "echo so far; sleep 60"}"#;
    let ran = program(&world, &["call", "shell", input, "--allow", "execute", "--timeout", "2s"])
        .run()
        .exits_with(7);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("so far\n"), "{ran:?}");
    ran.stderr_contains(&["timeout:", "2s"]);
}

#[test]
fn limit_is_7() {
    let world = World::new();
    let ran = with_guest(&world, guest::CANCEL_SLEEP, &["call", "sleep", "--timeout", "100ms"])
        .run()
        .exits_with(7);
    ran.stderr_contains(&["timeout:", "100ms"]);
    let words = ["call", "text", r#"{"bytes": 5000000}"#];
    with_guest(&world, guest::LIMITS_OUTPUT, &words).run().exits_with(7).stderr_contains(&[
        "resource_exhausted:",
        "`result`",
        "4194304",
    ]);
}

#[test]
fn backtrace_is_never_shown() {
    let world = World::new();
    world.file("bad.wasm", "no component");
    let bad = world.root().join("bad.wasm").to_string_lossy().into_owned();
    for words in [
        &["call", "read_file", r#"{"path": "../x"}"#][..],
        &["call", "nothing"],
        &["call", "calculate", "{"],
        &["call", "calculate", "@missing"],
        &["list", "--plugins", "missing"],
        &["inspect", &bad],
        &["list", "--config", "missing"],
    ] {
        let ran = program(&world, words)
            .env("RUST_BACKTRACE", "1")
            .env("RUST_LIB_BACKTRACE", "full")
            .run();
        assert!(ran.code > 1 && ran.code < 8, "{ran:?}");
        let text = ran.stderr.to_lowercase();
        assert!(!text.contains("backtrace") && !text.contains(".rs:"), "{ran:?}");
    }
    let deep = with_guest(&world, guest::LIMITS_RECURSION, &["call", "recurse"])
        .env("RUST_BACKTRACE", "1")
        .run();
    assert!(!deep.stderr.contains("backtrace"), "{deep:?}");
}
