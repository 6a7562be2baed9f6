//! Grants of calls through the program: the command, the lists, and a call.

use palisade_tests::World;
use palisade_tests::guest::NESTED_CALLS;
use palisade_tests::program::Program;
use serde_json::{Value, json};

fn program(world: &World) -> Program<'_> {
    Program::new(world).args(["--plugins"]).args([NESTED_CALLS.directory()])
}

fn call(world: &World) -> Value {
    let calls = json!([{"tool": "calculate", "input": {"expression": "6 * 7"}}]);
    let input = json!({"calls": calls}).to_string();
    let ran = program(world).args(["call", "nested_run", &input, "--json"]).run();
    serde_json::from_str(ran.json()["output"].as_str().unwrap()).unwrap()
}

#[test]
fn granted_tool_is_called_until_the_grant_is_revoked() {
    let world = World::new();
    assert_eq!(call(&world)[0]["class"], "permission_denied");
    let file = NESTED_CALLS.file().display().to_string();
    let _ = program(&world).args(["grant", &file, "tools", "calculate,read_*"]).run().exits_with(0);
    assert_eq!(call(&world)[0], json!({"class": null, "text": "42"}));
    let listed = program(&world).args(["grant", "list"]).run().exits_with(0);
    assert!(listed.stdout.contains("tools calculate\n  tools read_*"), "{}", listed.stdout);
    let inspected = program(&world).args(["inspect", &file]).run().exits_with(0);
    assert!(inspected.stdout.contains("tools calculate"), "{}", inspected.stdout);
    let _ = program(&world).args(["grant", &file, "revoke", "tools calculate"]).run().exits_with(0);
    assert_eq!(call(&world)[0]["class"], "not_found");
}

#[test]
fn pattern_that_names_no_tools_is_a_usage_error() {
    let world = World::new();
    let file = NESTED_CALLS.file().display().to_string();
    let ran = program(&world).args(["grant", &file, "tools", "*_file"]).run().exits_with(2);
    assert!(ran.stderr.contains("search_*"), "{}", ran.stderr);
}

/// A tool that sees files runs on a thread of its own, whose runtime knows no processes.
#[test]
fn command_runs_whatever_the_class_of_the_tool_that_calls_it() {
    for caller in ["nested_run", "nested_read"] {
        let world = World::new();
        let file = NESTED_CALLS.file().display().to_string();
        let _ = program(&world).args(["grant", &file, "tools", "*"]).run().exits_with(0);
        let calls = json!([{"tool": "shell", "input": {"command": "sleep 0.1; echo done"}}]);
        let input = json!({"calls": calls}).to_string();
        let allowed = ["call", "--allow", "execute", caller, &input, "--json"];
        let ran = program(&world).args(allowed).run();
        let output: Value = serde_json::from_str(ran.json()["output"].as_str().unwrap()).unwrap();
        assert_eq!(output[0]["class"], Value::Null, "{caller}: {output}");
        assert!(output[0]["text"].as_str().unwrap().contains("done"), "{caller}: {output}");
    }
}
