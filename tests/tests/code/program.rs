//! `palisade run`.

use palisade_tests::guest::NET_FETCH;
use palisade_tests::{Program, World};
use serde_json::json;

fn run<'w>(world: &'w World, code: &str) -> Program<'w> {
    std::fs::write(world.outer().join("program.js"), code).unwrap();
    Program::new(world).args(["run"]).args([world.outer().join("program.js")])
}

#[test]
fn program_is_run_against_the_workspace() {
    let world = World::new();
    world.file("a.txt", "of the workspace");
    let ran = run(&world, "console.log('read'); return tools.read_file({path: 'a.txt'})").run();
    assert_eq!(ran.exits_with(0).stdout, "read\n\nof the workspace");
    let ran = Program::new(&world).args(["run", "-", "--json"]).stdin("return [1]").run();
    let result = ran.exits_with(0).json();
    assert_eq!((&result["tool"], &result["output"]), (&json!("run_js"), &json!("[1]")));
}

#[test]
fn write_of_a_program_needs_an_answer_or_a_permission() {
    let world = World::new();
    let code = "tools.write_file({path: 'x.txt', content: 'x'}); return 'done'";
    let refused = run(&world, code).run().exits_with(5);
    refused.stderr_contains(&["permission_denied", "write_file", "(line 1)", "--allow write"]);
    assert!(world.read("x.txt").is_none());
    let allowed = run(&world, code).args(["--allow", "write"]).run().exits_with(0);
    assert_eq!((allowed.stdout.as_str(), world.read("x.txt").as_deref()), ("done", Some("x")));
}

#[test]
fn command_of_a_program_ends_with_it() {
    let world = World::new();
    let code = "tools.shell({command: 'sleep 30; touch late'})";
    let ran = run(&world, code).args(["--allow", "execute", "--timeout", "1s"]).run();
    let ran = ran.exits_with(7);
    assert!(ran.stderr.starts_with("timeout: ") && !ran.stderr.contains("panicked"), "{ran:?}");
}

#[test]
fn plugin_of_a_directory_is_called_by_a_program() {
    let world = World::new();
    let ran = run(&world, "return tools.search('send').includes('send_read')")
        .args(["--plugins"])
        .args([NET_FETCH.directory()])
        .run();
    // Without a network grant the plugin is refused, so that no program calls it.
    assert_eq!(ran.exits_with(0).stdout, "false");
}

#[test]
fn call_of_a_program_without_a_grant_names_the_ways() {
    let world = World::new();
    let ran = Program::new(&world).args(["call", "run_js", r#"{"code": "1"}"#]).run().exits_with(3);
    ran.stderr_contains(&["palisade grant code tools"]);
    Program::new(&world)
        .args(["grant", "code", "tools", "calculate"])
        .run()
        .exits_with(0)
        .stderr_contains(&["granted to code (shipped): tools calculate"]);
    let input = json!({"code": "return tools.calculate({expression: '6 * 7'})"}).to_string();
    let ran = Program::new(&world).args(["call", "run_js", &input]).run();
    assert_eq!(ran.exits_with(0).stdout, "42");
    let input = json!({"code": "return tools.read_file({path: 'a'})"}).to_string();
    let ran = Program::new(&world).args(["call", "run_js", &input]).run().exits_with(5);
    ran.stderr_contains(&["not_found"]);
}

#[test]
fn missing_program_is_a_usage_error() {
    let world = World::new();
    Program::new(&world)
        .args(["run", "nothing.js"])
        .run()
        .exits_with(2)
        .stderr_contains(&["nothing.js"]);
    let broken = run(&world, "let = 1").run().exits_with(5);
    broken.stderr_contains(&["SyntaxError"]);
}
