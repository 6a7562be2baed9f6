//! The other subcommands: `list`, `export`, `completions`.

use crate::{program, with_guest};
use palisade_tests::{World, guest};
use serde_json::{Value, json};
use std::fs;

/// The shipped tools, in the order of their plugins.
const SHIPPED: [&str; 9] = [
    "calculate",
    "read_file",
    "list_dir",
    "write_file",
    "patch_file",
    "delete_file",
    "find_files",
    "search_files",
    "shell",
];

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["tools"].as_array().expect("a list");
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn missing_option_lists_its_values() {
    let world = World::new();
    for (words, values) in [
        (&["dispatch"][..], "--from <PROVIDER> (openai, openai-responses, anthropic or gemini)"),
        (&["export"], "--format <FORMAT> (openai, openai-responses, anthropic, gemini or mcp)"),
        (&["mcp", "config"], "--client <CLIENT> (claude-code, "),
        (&["new"], "--lang <LANGUAGE> (rust, python, js or c)"),
        (&["completions"], "<SHELL> (bash, elvish, fish, powershell or zsh)"),
    ] {
        let ran = program(&world, words).run().exits_with(2);
        ran.stderr_contains(&["required arguments were not provided:\n", values]);
    }
    // Free text has no list.
    program(&world, &["call"]).run().exits_with(2).stderr_contains(&["\n  <TOOL>\n"]);
}

#[test]
fn missing_tools_message_names_the_disabling_setting() {
    let world = World::new();
    let list = program(&world, &["list", "--no-builtin"]).run().exits_with(0).stdout;
    assert!(list.contains("or leave out --no-builtin"), "{list}");
    world.file("palisade.toml", "[plugins]\nbuiltin = false");
    let told = ["take `plugins.builtin = false` out of ", "/workspace/palisade.toml"];
    let list = program(&world, &["list"]).run().exits_with(0).stdout;
    assert!(
        told.iter().all(|part| list.contains(part)) && !list.contains("--no-builtin"),
        "{list}"
    );
    program(&world, &["call", "read_file"]).run().exits_with(3).stderr_contains(&told);
    let checks = program(&world, &["doctor", "--json"]).run().exits_with(0).json();
    let checks = checks["checks"].as_array().expect("a list");
    let plugins = checks.iter().find(|check| check["name"] == "plugins").expect("the check");
    assert_eq!(plugins["state"], "note", "{plugins}");
    assert!(plugins["found"].as_str().is_some_and(|found| found.contains(told[0])), "{plugins}");
}

#[test]
fn plugin_file_as_directory_is_refused_with_advice() {
    let world = World::new();
    let file = world.plugins().join("greet.wasm");
    fs::write(&file, "").expect("a file can be written");
    let directory =
        format!("a file; give its directory, `{}`, with --plugins", world.plugins().display());
    program(&world, &["list", "--plugins"])
        .args([file])
        .run()
        .exits_with(2)
        .stderr_contains(&[&directory]);
}

#[test]
fn list_json_has_exactly_the_documented_keys() {
    let world = World::new();
    let listed = program(&world, &["list", "--json"]).run().exits_with(0).json();
    assert_eq!(names(&listed), SHIPPED);
    assert_eq!(listed["rejected"], json!([]));
    assert_eq!([&listed["documents"], &listed["templates"], &listed["prompts"]], [&json!([]); 3]);
    assert_eq!(listed.as_object().map(serde_json::Map::len), Some(5));
    for tool in listed["tools"].as_array().expect("a list") {
        let mut keys: Vec<&String> = tool.as_object().expect("an object").keys().collect();
        keys.sort();
        let documented =
            ["approval", "description", "digest", "name", "parameters", "plugin", "side_effects"];
        assert_eq!(keys, documented);
        assert_eq!(tool["parameters"]["type"], "object");
    }
}

#[test]
fn offers_of_a_plugin_are_listed() {
    let world = World::new();
    let list = |words: &[&str]| {
        let visitor = guest::MCP_VISITOR.directory();
        program(&world, words).args(["--plugins"]).args([visitor]).run().exits_with(0)
    };
    let ran = list(&["list"]);
    let rows: Vec<Vec<&str>> = ran
        .stdout
        .lines()
        .map(|line| line.split("  ").filter(|it| !it.is_empty()).map(str::trim).collect())
        .collect();
    for row in [
        ["BESIDES TOOLS", "KIND", "PLUGIN", "WHAT IT IS"],
        ["visit://card", "document", "mcp_visitor", "card"],
        ["greet_the_visitor", "prompt", "mcp_visitor", "Greets the visitor."],
    ] {
        assert!(rows.contains(&row.to_vec()), "{row:?}: {ran:?}");
    }
    let listed = list(&["list", "--json"]).json();
    assert_eq!(
        (&listed["documents"][0]["uri"], &listed["documents"][0]["plugin"]),
        (&json!("visit://card"), &json!("mcp_visitor"))
    );
    assert_eq!(listed["prompts"][0]["name"], "greet_the_visitor");
}

#[test]
fn table_has_a_line_for_each_tool() {
    let world = World::new();
    let ran = program(&world, &["list"]).run().exits_with(0);
    let first: Vec<&str> =
        ran.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(first, [&["TOOL"][..], &SHIPPED].concat());
    let none = program(&world, &["list", "--no-builtin"]).run().exits_with(0);
    assert!(none.stdout.starts_with("There are no tools"), "{none:?}");
}

#[test]
fn plugins_only_in_subdirectories_are_reported() {
    let world = World::new();
    let below = world.outer().join("plugins-below/release");
    fs::create_dir_all(&below).expect("a directory can be made");
    fs::copy(guest::LOADER_GOOD.file(), below.join("good.wasm")).expect("a file can be copied");
    let list = |directory: &std::path::Path| {
        program(&world, &["list", "--plugins"]).args([directory]).run().exits_with(0)
    };
    let above = list(below.parent().expect("it has one"));
    above.stderr_contains(&[
        "there is no `.wasm` file in ",
        "plugins-below; directories below it are not looked into",
    ]);
    assert_eq!(list(&below).stderr.matches("there is no").count(), 0);
    let call = |tool| {
        program(&world, &["call", tool, "{}", "--plugins"])
            .args([below.parent().expect("it has one")])
            .run()
    };
    call("good").stderr_contains(&["there is no tool `good`", "there is no `.wasm` file in "]);
    assert_eq!(call("list_dir").stderr, "", "the called tool needs no rejected plugin");
}

#[test]
fn rejected_plugin_is_reported_and_the_others_work() {
    let world = World::new();
    fs::write(world.plugins().join("bad.wasm"), "nothing").expect("a file can be written");
    fs::copy(guest::LOADER_GOOD.file(), world.plugins().join("good.wasm"))
        .expect("a file can be copied");
    let list = |words: &[&str]| {
        program(&world, words)
            .args(["--no-builtin", "--plugins"])
            .args([world.plugins()])
            .run()
            .exits_with(0)
    };
    let ran = list(&["list", "--json"]);
    ran.stderr_contains(&["rejected ", "bad.wasm: "]);
    let listed = ran.json();
    assert_eq!(listed["rejected"].as_array().map(Vec::len), Some(1));
    assert!(
        listed["rejected"][0]["file"].as_str().is_some_and(|file| file.ends_with("bad.wasm")),
        "{listed:#}"
    );
    assert!(
        listed["rejected"][0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
        "{listed:#}"
    );
    assert_eq!(listed["tools"][0]["plugin"], "good");
    list(&["list"]).stderr_contains(&["rejected "]);
    for words in [&["list", "--strict"][..], &["list", "--strict", "--json"]] {
        let strict = program(&world, words).args(["--plugins"]).args([world.plugins()]);
        let ran = strict.run().exits_with(6);
        assert!(ran.stdout.contains("good"), "the others are listed: {ran:?}");
    }
    list(&["export", "--format", "openai"]).stderr_contains(&["rejected "]);
}

#[test]
fn strict_list_without_rejects_is_0() {
    let world = World::new();
    let _ = program(&world, &["list", "--strict"]).run().exits_with(0);
}

#[test]
fn list_says_that_all_files_were_rejected() {
    let world = World::new();
    let list = || {
        let words = ["list", "--no-builtin", "--plugins"];
        program(&world, &words).args([world.plugins()]).run().exits_with(0).stdout
    };
    fs::write(world.plugins().join("bad.wasm"), "nothing").expect("a file can be written");
    assert_eq!(list(), "There are no tools: the only plugin file was rejected.\n");
    fs::write(world.plugins().join("worse.wasm"), "nothing").expect("a file can be written");
    assert_eq!(list(), "There are no tools: all 2 plugin files were rejected.\n");
}

#[test]
fn hints_repeat_the_options_of_the_run() {
    let world = World::new();
    let plugins = world.plugins();
    let options = format!("--plugins {} --no-builtin", plugins.display());
    fs::copy(guest::CONTRACT_HOST.file(), plugins.join("host.wasm")).expect("it can be copied");
    let run = |words: &[&str]| {
        program(&world, words).args(["--no-builtin", "--plugins"]).args([&plugins]).run()
    };
    let hint = |words: &str| format!("`palisade {words} {options}` shows");
    run(&["call", "speak", "[]"]).stderr_contains(&[&hint("inspect speak")]);
    run(&["call", "zzzzzzzzzzzz"]).stderr_contains(&[&hint("list")]);
    run(&["inspect", "zzzzzzzzzzzz"]).stderr_contains(&[&hint("list")]);
}

#[test]
fn syntax_errors_of_an_input_have_a_hint() {
    let world = World::new();
    for (input, hint) in [
        ("{'expression': '1'}", "JSON writes \"…\" around keys and texts, and never '…'"),
        ("{expression: 1}", "a shell takes them away"),
        (r#"{"expression": "1",}"#, "JSON has no comma after the last member"),
        (r#"{"expression": "1""#, "the input ends too early"),
        ("1 + 1", "`@FILE` reads an input from a file"),
    ] {
        let ran = program(&world, &["call", "calculate", input]).run().exits_with(6);
        ran.stderr_contains(&[hint, "`palisade inspect calculate` shows what it takes"]);
    }
}

#[test]
fn unknown_tool_error_lists_rejected_plugins() {
    let world = World::new();
    fs::write(world.plugins().join("bad.wasm"), "nothing").expect("a file can be written");
    let ran = program(&world, &["call", "from_bad", "--plugins"])
        .args([world.plugins()])
        .run()
        .exits_with(3);
    ran.stderr_contains(&["rejected ", "bad.wasm: ", "not_found:"]);
}

#[test]
fn each_format_is_one_json_value_with_every_tool() {
    let world = World::new();
    for (format, pointer) in [
        ("openai", "/7/function/name"),
        ("openai-responses", "/7/name"),
        ("anthropic", "/7/name"),
        ("mcp", "/tools/7/name"),
    ] {
        let exported = program(&world, &["export", "--format", format]).run().exits_with(0).json();
        assert_eq!(
            exported.pointer(pointer),
            Some(&json!("search_files")),
            "{format}: {exported:#}"
        );
    }
    let gemini = program(&world, &["export", "--format", "gemini"]).run().exits_with(0).stdout;
    assert!(
        SHIPPED.iter().all(|name| gemini.contains(&format!("\"name\": \"{name}\""))),
        "{gemini}"
    );
}

#[test]
fn format_limitations_are_reported_on_stderr() {
    let world = World::new();
    let words = ["export", "--format", "openai", "--strict"];
    let ran = program(&world, &words).run().exits_with(0);
    ran.stderr_contains(&["read_file: `required` at `/properties/limit` becomes required"]);
    assert!(
        !ran.stderr.contains("title") && !ran.stderr.contains("``"),
        "a title is for people: {}",
        ran.stderr
    );
    for format in ["openai", "openai-responses", "gemini", "mcp"] {
        let plain = program(&world, &["export", "--format", format]).run().exits_with(0);
        assert_eq!(
            plain.stderr, "",
            "{format}: the shipped tools are portable as they are written"
        );
        for word in ["\"format\"", "workspace-path", "x-access", "null"] {
            assert!(!plain.stdout.contains(word), "{format}: {word}: {}", plain.stdout);
        }
    }
}

#[test]
fn strict_closes_schemas_and_requires_all_properties() {
    let world = World::new();
    let exported =
        program(&world, &["export", "--format", "openai", "--strict"]).run().exits_with(0).json();
    for tool in exported.as_array().expect("a list") {
        let parameters = &tool["function"]["parameters"];
        assert_eq!(
            (&tool["function"]["strict"], &parameters["additionalProperties"]),
            (&json!(true), &json!(false)),
            "{tool:#}"
        );
        let properties = parameters["properties"].as_object().map(serde_json::Map::len);
        assert_eq!(parameters["required"].as_array().map(Vec::len), properties, "{tool:#}");
    }
}

#[test]
fn completions_exist_for_each_shell_in_any_directory() {
    let world = World::new();
    fs::remove_dir(world.root()).expect("it can be removed");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = program(&world, &["completions", shell]).run().exits_with(0);
        assert!(
            ran.stdout.contains("palisade")
                && ran.stdout.contains("doctor")
                && ran.stderr.is_empty(),
            "{shell}"
        );
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    let world = World::new();
    let help = program(&world, &["--help"]).run().exits_with(0);
    assert!(help.stdout.contains("Exit codes: 0 ok") && help.stderr.is_empty(), "{help:?}");
    for verb in [
        "list",
        "inspect",
        "call",
        "run",
        "dispatch",
        "policy",
        "grant",
        "export",
        "serve",
        "watch",
        "console",
        "log",
        "mcp",
        "new",
        "build",
        "dev",
        "add",
        "remove",
        "update",
        "publish",
        "approve",
        "revoke",
        "sign",
        "adapt",
        "check",
        "bench",
        "config",
        "cache",
        "demo",
        "doctor",
        "completions",
    ] {
        assert!(help.stdout.contains(verb), "{verb}");
        assert_ne!(program(&world, &[verb, "--help"]).run().exits_with(0).stdout, "");
    }
    assert!(program(&world, &["--version"]).run().exits_with(0).stdout.starts_with("palisade 0."));
}

#[test]
fn every_json_verb_prints_one_json_value() {
    let world = World::new();
    for words in [
        &["list", "--json"][..],
        &["inspect", "speak", "--json"],
        &["call", "speak", "--json"],
        &["dispatch", "--from", "openai", "--json"],
        &["policy", "explain", "speak", "--json"],
        &["bench", "speak", "--json", "--calls", "2"],
        &["export", "-f", "mcp", "--json"],
        &["new", "json-project", "--lang", "rust", "--json"],
        &["grant", "list", "--json"],
        &["config", "show", "--json"],
        &["approve", "--json"],
        &["mcp", "list", "--json"],
        &["cache", "show", "--json"],
        &["demo", "escape", "--json"],
        &["doctor", "--json"],
    ] {
        // Only `dispatch` reads standard input.
        let program = with_guest(&world, guest::CONTRACT_HOST, words).args(["--verbose"]);
        let ran = program.stdin("[]").run().exits_with(0);
        assert!(ran.json().is_object() || ran.json().is_array(), "{words:?}: {ran:?}");
    }
}
