//! Calls of a server's tools: validated, asked about, answered, cancelled, recorded and restarted.

use super::{approved, call, configure, program, serve, starts, text};
use palisade_tests::World;
use palisade_tests::api::Api;
use serde_json::{Value, json};

#[test]
fn tool_of_a_server_is_listed_without_a_start() {
    let world = approved("plain", "");
    let ran = program(&world, &["list", "--json"]).run().exits_with(0);
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let tools = listed["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "scripted_echo").unwrap();
    assert_eq!(echo["side_effects"], "network");
    assert_eq!(echo["description"], "Repeats the text.");
    assert_eq!(starts(&world), 0);
}

#[test]
fn call_is_answered_by_its_server() {
    let world = approved("noisy", "");
    let words = ["call", "scripted_echo", r#"{"text": "hello"}"#, "--allow", "network"];
    assert_eq!(program(&world, &words).run().exits_with(0).stdout, "hello");
    assert_eq!(starts(&world), 1);
}

#[test]
fn call_is_refused_unasked() {
    let world = approved("plain", "");
    let ran = program(&world, &["call", "scripted_echo", r#"{"text": "x"}"#]).run().exits_with(4);
    assert!(ran.stderr.contains("network"), "{}", ran.stderr);
    assert_eq!(starts(&world), 0, "a refused call starts no server");
}

#[test]
fn class_is_the_operators() {
    let world = approved("plain", "class = \"execute\"\nclasses = { echo = \"read\" }");
    let echo = ["call", "scripted_echo", r#"{"text": "x"}"#];
    assert_eq!(program(&world, &echo).run().exits_with(0).stdout, "x");
    let fail = program(&world, &["call", "scripted_fail", "{}"]).run().exits_with(4);
    assert!(fail.stderr.contains("execute"), "{}", fail.stderr);
}

#[test]
fn rule_that_permits_names_the_server() {
    let world = approved("plain", "");
    let echo = ["call", "scripted_echo", r#"{"text": "x"}"#];
    let rule = |name: &str, mode: &str| {
        configure(&world, "plain", &format!("[confirm.tools]\n\"{name}\" = \"{mode}\""));
    };
    // The advice is a rule that works.
    let refused = program(&world, &echo).run().exits_with(4);
    let advised = "\"mcp/scripted/echo\" = \"auto\"";
    assert!(refused.stderr.contains(advised), "{}", refused.stderr);
    rule("mcp/scripted/echo", "auto");
    assert_eq!(program(&world, &echo).run().exits_with(0).stdout, "x");
    for name in [
        "echo",
        "scripted_echo",
        "native/scripted_echo",
        "scripted/scripted_echo",
        "mcp/scripted/scripted_echo",
    ] {
        rule(name, "auto");
        let ran = program(&world, &echo).run().exits_with(4);
        assert!(ran.stderr.contains("mcp/scripted"), "{name}: {}", ran.stderr);
    }
    for name in ["echo", "scripted_echo", "mcp/scripted/echo", "mcp/scripted/scripted_echo"] {
        rule(name, "deny");
        let _ = program(&world, &echo).args(["--allow", "network"]).run().exits_with(4);
    }
}

#[test]
fn question_names_the_server_and_what_its_process_may_do() {
    let world = approved("plain", "");
    let api = Api::start(&world, &["--console"]);
    api.session("s1");
    let listed = api.operator.get("/plugins").message();
    let listed = listed["items"].as_array().unwrap();
    let server = listed.iter().find(|entry| entry["name"] == "mcp/scripted").unwrap();
    let rights = "all of your rights: no sandbox holds the program of the MCP server";
    assert_eq!((&server["file"], &server["tools"][0]["sandbox"]), (&Value::Null, &json!(rights)));
    let native = listed.iter().find(|entry| entry["name"] == "native").unwrap();
    assert!(!native.to_string().contains("scripted"), "{native}");
    let mut events = api.operator.events("/events");
    let call = json!({"tool": "scripted_echo", "id": "c1", "input": {"text": "x"}});
    let call = api.client.begin_call("s1", &call);
    let question = events.of_call("tool.confirmation_requested", "c1");
    let open = api.operator.get("/confirmations").message();
    let shown = &open["items"][0];
    assert_eq!((&shown["plugin"], &shown["grants"]), (&json!("mcp/scripted"), &json!([rights])));
    assert_eq!(api.operator.decide(&question, "allow").status, 200);
    let result = call.join().unwrap();
    assert_eq!((&result["output"], &result["plugin"]), (&json!("x"), &json!("mcp/scripted")));
}

#[test]
fn permission_of_a_tool_is_not_that_of_another_server() {
    let world = World::new();
    let script = super::folder().join("scripted.sh").display().to_string();
    // The tool `b_c` of `a`, and the tool `c` of `a_b`, have one name.
    let table = |server: &str, tool: &str| {
        format!(
            "[mcp.servers.{server}]\ncommand = \"sh\"\nargs = [{script:?}, \"plain\", \"{{workspace}}\", \"{tool}\"]\n"
        )
    };
    let rules = "[confirm.tools]\n\"mcp/a_b/c\" = \"auto\"\n";
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    let write = |text: String| std::fs::write(folder.join("palisade.toml"), text).unwrap();
    write(rules.to_owned() + &table("a_b", "c"));
    let approve = |name: &str| program(&world, &["mcp", "approve", name, "--yes"]).run();
    let _ = approve("a_b").exits_with(0);
    let call = ["call", "a_b_c", r#"{"text": "x"}"#];
    assert_eq!(program(&world, &call).run().exits_with(0).stdout, "x");
    write(rules.to_owned() + &table("a_b", "c") + &table("a", "b_c"));
    let shown = approve("a").exits_with(0).stdout;
    assert!(shown.contains("`a_b` has a tool of this name"), "{shown}");
    let ran = program(&world, &call).run().exits_with(4);
    assert!(ran.stderr.contains("network"), "{}", ran.stderr);
    // A permission of the other server is no slip.
    assert!(!ran.stderr.contains("did you mean"), "{}", ran.stderr);
}

#[test]
fn path_rules_refuse_a_server_on_this_machine() {
    let world = approved("plain", "class = \"read\"\n[paths]\ndeny = [\"secrets/**\"]");
    let echo = ["call", "scripted_echo", r#"{"text": "x"}"#];
    let ran = program(&world, &echo).run().exits_with(4);
    assert!(ran.stderr.contains("path rules"), "{}", ran.stderr);
    assert_eq!(starts(&world), 0);
    configure(
        &world,
        "plain",
        "class = \"read\"\n[paths]\ndeny = [\"secrets/**\"]\ncommands = \"allow\"",
    );
    assert_eq!(program(&world, &echo).run().exits_with(0).stdout, "x");
}

#[test]
fn input_is_validated_before_the_server_gets_it() {
    let world = approved("plain", "");
    let words = ["call", "scripted_echo", r#"{"text": 7}"#, "--allow", "network"];
    let ran = program(&world, &words).run().exits_with(6);
    assert!(ran.stderr.contains("text"), "{}", ran.stderr);
    assert_eq!(starts(&world), 0);
}

#[test]
fn one_process_serves_all_calls() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    for text_of_call in ["a", "b", "c"] {
        let response = call(&mut client, "scripted_echo", text_of_call);
        assert_eq!(text(&response), text_of_call);
    }
    assert_eq!(starts(&world), 1);
}

#[test]
fn server_that_died_is_started_again() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    let died = call(&mut client, "scripted_die", "");
    let words = text(&died);
    assert!(words.contains("exit code 3"), "{words}");
    assert_eq!(text(&call(&mut client, "scripted_echo", "again")), "again");
    assert_eq!(starts(&world), 2);
    // They may hold secrets, and paths of the machine.
    assert!(!died.to_string().contains("out of luck"), "{died}");
    let (ran, _) = client.end();
    ran.stderr_contains(&["it ended with exit code 3, and wrote: out of luck"]);
}

#[test]
fn server_that_dies_in_a_loop_is_left_alone() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    for _ in 0..5 {
        assert!(text(&call(&mut client, "scripted_die", "")).contains("exit code 3"));
    }
    let refused = call(&mut client, "scripted_echo", "x");
    assert!(text(&refused).contains("started 5 times"), "{refused}");
    assert_eq!(starts(&world), 5);
}

#[test]
fn failure_of_the_tool_is_a_failure() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    let failed = call(&mut client, "scripted_fail", "");
    assert_eq!(failed["result"]["isError"], true);
    assert!(text(&failed).contains("it did not work"), "{failed}");
    let refused = call(&mut client, "scripted_refuse", "");
    assert_eq!(refused["result"]["isError"], true);
    let words = text(&refused);
    assert!(words.contains("such thing") && !words.contains('\u{1b}'), "{words:?}");
}

#[test]
fn cancelled_call_is_cancelled_at_the_server() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    let id = client.begin("tools/call", &json!({"name": "scripted_wait", "arguments": {}}));
    world.wait_for("waiting");
    client.notify("notifications/cancelled", &json!({"requestId": id}));
    world.wait_for("cancelled");
    assert_eq!(text(&call(&mut client, "scripted_echo", "next")), "next");
    assert_eq!(starts(&world), 1);
}

#[test]
fn overdue_call_is_cancelled_at_the_server() {
    let world = approved("plain", "");
    let words = ["call", "scripted_wait", "{}", "--allow", "network", "--timeout", "500ms"];
    let ran = program(&world, &words).run().exits_with(7);
    assert!(ran.stderr.contains("500ms"), "{}", ran.stderr);
}

#[test]
fn progress_of_the_server_is_that_of_the_call() {
    let world = approved("plain", "");
    let events = world.outer().join("events");
    let words = ["call", "scripted_step", "{}", "--allow", "network", "--events"];
    let ran = program(&world, &words).args([&events]).run().exits_with(0);
    assert_eq!(ran.stdout, "done");
    let events = std::fs::read_to_string(events).unwrap();
    let step = events.lines().find(|line| line.contains("tool.progress")).unwrap();
    assert!(step.contains("half"), "{step}");
}

#[test]
fn program_calls_the_tools_of_a_server() {
    let world = approved("plain", "");
    world.file("p.js", "return tools.scripted_echo({text: 'from ' + 'a program'});");
    let file = world.root().join("p.js").display().to_string();
    let ran = program(&world, &["run", &file, "--allow", "network"]).run().exits_with(0);
    assert!(ran.stdout.contains("from a program"), "{}", ran.stdout);
}

#[test]
fn server_without_approval_offers_nothing() {
    let world = World::new();
    configure(&world, "plain", "");
    let ran = program(&world, &["list"]).run().exits_with(0);
    assert!(!ran.stdout.contains("scripted"), "{}", ran.stdout);
    assert!(ran.stderr.contains("palisade mcp approve scripted"), "{}", ran.stderr);
    assert_eq!(starts(&world), 0);
}

#[test]
fn project_cannot_name_a_server() {
    let world = World::new();
    world.file("palisade.toml", "[mcp.servers.own]\ncommand = \"sh\"\n");
    let ran = program(&world, &["list"]).run().exits_with(2);
    assert!(ran.stderr.contains("mcp.servers.own"), "{}", ran.stderr);
}

#[test]
fn structured_output_is_a_value_and_is_checked() {
    let world = approved("plain", "");
    let typed =
        |input: &str| program(&world, &["call", "scripted_typed", input, "--allow", "network"]);
    assert_eq!(typed(r#"{"text": "7"}"#).run().exits_with(0).stdout.trim(), r#"{"n":7}"#);
    let wrong = typed(r#"{"text": "true"}"#).run().exits_with(5);
    assert!(wrong.stderr.contains("schema"), "{}", wrong.stderr);
    world.file("p.js", "return tools.scripted_typed({text: '20'}).n + 1;");
    let file = world.root().join("p.js").display().to_string();
    let ran = program(&world, &["run", &file, "--allow", "network"]).run().exits_with(0);
    assert_eq!(ran.stdout.trim(), "21");
}

#[test]
fn class_of_an_unknown_tool_is_told() {
    let world = approved("plain", "classes = { ecko = \"read\" }\npass = [\"NOT_SET\"]");
    let ran = program(&world, &["list"]).run().exits_with(0);
    assert!(ran.stderr.contains("did you mean `echo`?"), "{}", ran.stderr);
    assert!(ran.stderr.contains("NOT_SET"), "{}", ran.stderr);
}
