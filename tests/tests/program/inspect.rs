//! `inspect`: shows a tool, or a file before it is used.

use crate::program;
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World, guest};
use serde_json::json;

#[test]
fn tool_is_shown_with_class_sandbox_input_and_imports() {
    let world = World::new();
    let text = program(&world, &["inspect", "write_file"]).run().exits_with(0).stdout;
    for part in [
        "write_file  Write a file",
        "class    write",
        "the workspace, read-write; no network",
        "\"content\"",
        "digest   sha256:",
        "wasi:filesystem/types@",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn inspect_json_extends_the_list_with_the_definition() {
    let world = World::new();
    let shown = program(&world, &["inspect", "calculate", "--json"]).run().exits_with(0).json();
    let listed = program(&world, &["list", "--json"]).run().exits_with(0).json();
    let entry = listed["tools"]
        .as_array()
        .and_then(|tools| tools.iter().find(|tool| tool["name"] == "calculate"));
    for (key, value) in entry.and_then(|entry| entry.as_object()).expect("it is listed") {
        assert_eq!(&shown[key], value, "{key}");
    }
    assert_eq!(
        (&shown["title"], &shown["idempotent"], &shown["output_schema"]),
        (&json!("Calculate"), &json!(true), &json!(null))
    );
    assert!(
        shown["imports"].as_array().is_some_and(|list| list
            .iter()
            .all(|import| import["name"].is_string() && import["gets"].is_string())),
        "{shown:#}"
    );
}

#[test]
fn plugin_is_shown_by_its_name_with_all_its_tools() {
    let world = World::new();
    let text = program(&world, &["inspect", "files"]).run().exits_with(0).stdout;
    for part in ["read_file", "write_file", "digest   sha256:", "approval shipped"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let shown = program(&world, &["inspect", "files", "--json"]).run().exits_with(0).json();
    assert_eq!((&shown["plugin"], &shown["approval"]), (&json!("files"), &json!("shipped")));
    let tools = shown["tools"].as_array().unwrap();
    assert!(tools.len() > 2 && tools.iter().all(|tool| tool["plugin"] == "files"), "{shown:#}");
    let _ = program(&world, &["inspect", "filse"]).run().exits_with(3);
}

#[test]
fn plugin_file_is_shown_without_installation() {
    let world = World::new();
    let file = guest::CONTRACT_DEFINITIONS.file();
    let text = program(&world, &["inspect"]).args([&file]).run().exits_with(0).stdout;
    assert!(text.contains("every_field") && text.contains("contract_definitions"), "{text}");
    let shown = program(&world, &["inspect", "--json"]).args([&file]).run().exits_with(0).json();
    assert_eq!(shown["plugin"], "contract_definitions");
    let tool = shown["tools"]
        .as_array()
        .and_then(|tools| tools.iter().find(|tool| tool["name"] == "every_field"));
    let tool = tool.expect("it is shown");
    assert_eq!(
        (&tool["timeout_ms"], &tool["metadata"]["vendor"]["key"]),
        (&json!(1500), &json!([1, 2]))
    );
    assert!(tool["output_schema"].is_object(), "{tool:#}");
}

#[test]
fn offers_of_a_plugin_are_shown() {
    let world = World::new();
    let file = guest::MCP_VISITOR.file();
    let text = program(&world, &["inspect"]).args([&file]).run().exits_with(0).stdout;
    let shown: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [&["offers"][..], &["document", "visit://card"]] {
        assert!(shown.contains(&row.to_vec()), "{row:?}: {text}");
    }
    let shown = program(&world, &["inspect", "--json"]).args([&file]).run().exits_with(0).json();
    let offers = (&shown["documents"][0]["uri"], &shown["prompts"][0]["name"], &shown["templates"]);
    assert_eq!(offers, (&json!("visit://card"), &json!("greet_the_visitor"), &json!([])));
    let without = program(&world, &["inspect", "calculate"]).run().exits_with(0).stdout;
    assert!(!without.contains("offers"), "{without}");
}

#[test]
fn file_other_than_a_plugin_is_6_with_the_reason() {
    let world = World::new();
    world
        .file("empty.wasm", "")
        .file("text.wasm", "hello")
        .file("module.wasm", *b"\0asm\x01\0\0\0");
    for name in ["empty.wasm", "text.wasm", "module.wasm"] {
        let ran = program(&world, &["inspect"]).args([world.root().join(name)]).run().exits_with(6);
        ran.stderr_contains(&["error:", name, "is not a plugin: "]);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn missing_file_or_tool_is_3() {
    let world = World::new();
    program(&world, &["inspect", "missing.wasm"])
        .run()
        .exits_with(3)
        .stderr_contains(&["there is no file `missing.wasm`"]);
    program(&world, &["inspect", "./missing"]).run().exits_with(3).stderr_contains(&["./missing"]);
    program(&world, &["inspect", "raed_file", "--json"])
        .run()
        .exits_with(3)
        .stderr_contains(&["did you mean `read_file`"]);
    program(&world, &["inspect", "zzzzzzzz"])
        .run()
        .exits_with(3)
        .stderr_contains(&["palisade list"]);
}

#[test]
fn plugin_description_is_escaped() {
    let world = World::new();
    let mut told = Told::new("sly");
    told.title = Some("a\u{1b}[2Jtitle".to_owned());
    told.description = "a\u{1b}[2J\u{202e}description\u{9b}1m".to_owned();
    std::fs::write(world.plugins().join("sly.wasm"), Wat::new(told).build())
        .expect("a file can be written");
    let file = world.plugins().join("sly.wasm");
    let list =
        program(&world, &["list", "--no-builtin", "--plugins"]).args([world.plugins()]).run();
    for ran in [list, program(&world, &["inspect"]).args([file]).run()] {
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!all.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{all:?}");
        assert!(all.contains("sly"), "{all:?}");
    }
}

#[test]
fn plugin_file_named_like_a_shipped_one_is_shown_itself() {
    let world = World::new();
    std::fs::copy(guest::LOADER_GOOD.file(), world.plugins().join("search.wasm")).expect("a copy");
    let run = |words: &[&str]| {
        program(&world, words).args(["--plugins"]).args([world.plugins()]).run().exits_with(0)
    };
    run(&["list"]);
    let (shown, tool) =
        (run(&["inspect", "good"]).stdout, run(&["inspect", "good", "--json"]).json());
    assert!(!shown.contains("shipped:") && shown.contains("search.wasm"), "{shown}");
    assert!(shown.contains(tool["digest"].as_str().expect("a digest")), "{shown}");
    let shipped = run(&["inspect", "find_files", "--json"]).json();
    assert_ne!(tool["imports"], shipped["imports"]);
}

#[test]
fn shipped_plugin_without_its_grant_is_shown_with_the_grant_that_it_needs() {
    let world = World::new();
    for (subject, tool, grant) in [
        ("web", "web_fetch", "palisade grant web net"),
        ("web_fetch", "web_fetch", "palisade grant web net"),
        ("code", "run_js", "palisade grant code tools"),
    ] {
        let shown = program(&world, &["inspect", subject]).run().exits_with(0);
        assert!(shown.stderr.contains(grant), "{}", shown.stderr);
        assert!(shown.stdout.contains(tool), "{}", shown.stdout);
        let shown = program(&world, &["inspect", subject, "--json"]).run().exits_with(0).json();
        assert!(shown["tools"].to_string().contains(tool), "{shown:#}");
    }
    let _ = program(&world, &["inspect", "web", "--no-builtin"]).run().exits_with(3);
}
