//! Settings of single plugins in `palisade.toml`, as each subcommand shows and obeys them.

use crate::{program, user_file};
use palisade_tests::guest::CONTRACT_CONTEXT;
use palisade_tests::mcp::Client;
use palisade_tests::program::Ran;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use serde_json::{Value, json};
use std::fs;

/// A schema with one path.
const PATH: &str =
    r#"{"type": "object", "properties": {"path": {"type": "string", "format": "workspace-path"}}}"#;

/// Installs and approves the plugins `left` and `right`, both with the tool `search` of class
/// write. Without the approval no rule would loosen the policy for them.
fn two_searches() -> World {
    let world = World::new();
    for name in ["left", "right"] {
        install(&world, name, &["search"]);
    }
    approve(&world);
    world
}

fn install(world: &World, name: &str, tools: &[&str]) {
    let told = |tool: &&str| Told { class: 2, ..Told::new(tool).with_input(PATH) };
    world.install(name, &Wat::with_tools(tools.iter().map(told).collect()).build());
}

fn approve(world: &World) {
    let _ = run(world, &["approve", "--all", "--yes"]).exits_with(0);
}

fn with_plugins<'w>(world: &'w World, words: &[&str]) -> Program<'w> {
    program(world, words).args(["--plugins"]).args([world.plugins()])
}

fn run(world: &World, words: &[&str]) -> Ran {
    with_plugins(world, words).run()
}

const PREFIX: &str = "[plugins.right]\nprefix = \"right_\"\n";

#[test]
fn two_plugins_that_offer_one_name_are_called_listed_and_exported_side_by_side() {
    let world = two_searches();
    let _ = run(&world, &["call", "right_search", "--allow", "write"]).exits_with(3);
    user_file(&world, PREFIX);
    for (tool, plugin) in [("search", "left"), ("right_search", "right")] {
        let ran = run(&world, &["call", tool, "--allow", "write", "--json"]).exits_with(0);
        assert_eq!((&ran.json()["plugin"], &ran.json()["tool"]), (&plugin.into(), &tool.into()));
    }
    let listed = run(&world, &["list", "--json"]).exits_with(0).json();
    let tool = listed["tools"].as_array().unwrap().iter().find(|it| it["name"] == "right_search");
    assert_eq!(
        (&tool.unwrap()["own_name"], &tool.unwrap()["plugin"]),
        (&"search".into(), &"right".into())
    );
    assert!(run(&world, &["list"]).exits_with(0).stdout.contains("right_search"));
    for format in ["openai", "anthropic", "gemini", "mcp"] {
        let exported = run(&world, &["export", "--format", format]).exits_with(0).stdout;
        assert!(
            exported.contains("\"search\"") && exported.contains("\"right_search\""),
            "{exported}"
        );
    }
    let reply = r#"{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "right_search", "input": {}}]}"#;
    let answered = with_plugins(&world, &["dispatch", "--from", "anthropic", "--allow", "write"]);
    let answer = answered.stdin(reply).run().exits_with(0).stdout;
    assert!(answer.contains("done"), "{answer}");
}

#[test]
fn two_plugins_that_offer_one_name_are_served_over_mcp() {
    let world = two_searches();
    user_file(&world, &format!("{PREFIX}[confirm.tools]\n\"right/search\" = \"auto\""));
    let mut client = Client::legacy(with_plugins(&world, &[]), &json!({}));
    client.wait_for_tools();
    let answer = client.request("tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
    assert!(has("search") && has("right_search"), "{tools:?}");
    let mut call = |tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        client.request("tools/call", &params)["result"]["isError"].clone()
    };
    assert_eq!(
        call("right_search"),
        json!(false),
        "the permission names the tool as its plugin does"
    );
    assert_eq!(call("search"), json!(true), "and means no other one");
    let _ = client.end();
}

#[test]
fn permission_and_denial_name_a_renamed_tool() {
    let world = two_searches();
    let rename = "[plugins.right.rename]\nsearch = \"find\"\n[confirm.tools]\n";
    let explain = |rule: &str, code: i32| {
        user_file(&world, &format!("{rename}{rule}"));
        run(&world, &["policy", "explain", "find", "--json"]).exits_with(code)
    };
    let own = explain("\"right/search\" = \"auto\"", 0).json();
    assert_eq!(
        (&own["tool"], &own["own_name"], &own["mode"]),
        (&"find".into(), &"search".into(), &"auto".into())
    );
    let ran = explain("\"right/find\" = \"auto\"", 4);
    ran.stderr_contains(&["loosens nothing", "`\"right/search\" = \"auto\"`"]);
    for rule in ["right/search", "search", "right/find", "find"] {
        let denied = explain(&format!("\"{rule}\" = \"deny\""), 4).json();
        assert_eq!(denied["mode"], "deny", "{rule}: {denied}");
        let advice = denied["advice"].as_str().unwrap();
        assert!(advice.contains(&format!("confirm.tools.{rule} = ")), "{advice}");
        assert!(denied["origin"].as_str().unwrap().ends_with("palisade.toml"), "{denied}");
    }
    user_file(&world, rename);
    let text = run(&world, &["policy", "explain", "find"]).exits_with(4).stdout;
    assert!(text.contains("by its plugin right/search"), "{text}");
    let text = run(&world, &["inspect", "find"]).exits_with(0).stdout;
    assert!(text.contains("own name search"), "{text}");
}

#[test]
fn approval_does_not_change_by_a_rename() {
    let world = two_searches();
    let lock = world.home().join(".config/palisade/palisade.lock");
    let before = fs::read_to_string(&lock).unwrap();
    user_file(&world, PREFIX);
    let ran = run(&world, &["call", "right_search", "--allow", "write", "--locked"]);
    assert_eq!(ran.exits_with(0).stdout, "done");
    approve(&world);
    let ran = run(&world, &["approve", "right"]).exits_with(0);
    assert!(
        !ran.stdout.contains("right_search") && !ran.stderr.contains("right_search"),
        "{ran:?}"
    );
    assert_eq!(fs::read_to_string(&lock).unwrap(), before);
}

#[test]
fn settings_are_shown_with_their_file() {
    let world = two_searches();
    let text = "[plugins.right]\nmemory = \"64MiB\"\ntimeout = \"20s\"\nprefix = \"right_\"\nworkspace = \"notes\"\n\
                rename.search = \"find\"\nconfig = {url = \"https://a\"}\npaths.deny = [\"keys/**\"]\n";
    let file = user_file(&world, text);
    let shown = run(&world, &["config", "show", "--json"]).exits_with(0).json();
    for (key, value) in [
        ("memory", "64.0 MiB"),
        ("timeout", "20s"),
        ("prefix", "right_"),
        ("workspace", "notes"),
        ("rename.search", "find"),
        ("config", r#"{"url":"https://a"}"#),
        ("paths.deny", "keys/**"),
    ] {
        let row = &shown[format!("plugins.right.{key}")];
        assert_eq!(
            (&row["value"], &row["origin"]),
            (&value.into(), &file.to_str().unwrap().into()),
            "{key}"
        );
    }
    let explained = run(&world, &["policy", "explain", "find", "--json"]).exits_with(4).json();
    assert_eq!(explained["timeout_ms"], 20_000);
}

#[test]
fn directory_of_a_plugin_is_explained_and_obeyed() {
    let world = two_searches();
    user_file(&world, &format!("{PREFIX}workspace = \"notes\"\n"));
    let call = ["call", "right_search", "{}", "--allow", "write", "--json"];
    let error = run(&world, &call).exits_with(4).json()["error"].clone();
    assert_eq!(error["detail"]["reason"], "workspace", "{error}");
    world.folder("notes");
    let _ = run(&world, &call).exits_with(0);
    let input = r#"{"path": "a.txt"}"#;
    let words = ["policy", "explain", "right_search", input, "--allow", "write"];
    let text = run(&world, &words).exits_with(0).stdout;
    assert!(text.contains("`notes/a.txt`"), "{text}");
    let outside = r#"{"path": "../a.txt"}"#;
    let _ = run(&world, &["call", "right_search", outside, "--allow", "write"]).exits_with(4);
}

#[test]
fn configuration_reaches_the_plugin_of_this_name() {
    let world = World::new();
    let config =
        "[plugins.contract_context.config]\nurl = \"https://a\"\ndepth = 2\nsince = 2026-01-02\n";
    user_file(&world, config);
    let see = || {
        let program = program(&world, &["call", "see", "--json", "--no-builtin", "--plugins"]);
        program.args([CONTRACT_CONTEXT.directory()]).run().exits_with(0).json()
    };
    let metadata = see()["content"][0]["json"]["metadata"].clone();
    let expected =
        json!({"plugin-config": {"url": "https://a", "depth": 2, "since": "2026-01-02"}});
    assert_eq!(metadata, expected);
    user_file(&world, &config.replace("contract_context", "other"));
    assert_eq!(see()["content"][0]["json"]["metadata"], json!({}));
}

#[test]
fn project_tightens_the_settings_of_a_plugin_and_loosens_none() {
    let world = two_searches();
    let user = "[plugins.left]\nmemory = \"64MiB\"\ntimeout = \"20s\"\n";
    let file = user_file(&world, user);
    for (table, key) in [
        ("[plugins.left]\nmemory = \"65MiB\"", "memory"),
        ("[plugins.right]\nmemory = \"129MiB\"", "memory"),
        ("[plugins.left]\ntimeout = \"21s\"", "timeout"),
        ("[plugins.left]\nprefix = \"my_\"", "prefix"),
        ("[plugins.left.rename]\nsearch = \"find\"", "rename"),
        ("[plugins.left.config]\nurl = \"https://evil\"", "config"),
        ("[plugins.left]\nworkspace = \"notes\"", "workspace"),
    ] {
        world.file("palisade.toml", table);
        let ran = run(&world, &["call", "search", "--allow", "write"]).exits_with(2);
        let plugin = if table.contains("right") { "right" } else { "left" };
        ran.stderr_contains(&[&format!("`plugins.{plugin}.{key}`"), file.to_str().unwrap()]);
    }
    world.file(
        "palisade.toml",
        "[plugins.left]\nmemory = \"32MiB\"\ntimeout = \"10s\"\npaths.deny = [\"a.txt\"]\n[plugins.right]\ntimeout = \"400s\"",
    );
    let shown = run(&world, &["config", "show", "--json"]).exits_with(0).json();
    assert_eq!(shown["plugins.left.memory"]["value"], "32.0 MiB");
    let time = |tool: &str| -> Value {
        run(&world, &["policy", "explain", tool, "--json"]).json()["timeout_ms"].clone()
    };
    assert_eq!(time("search"), 10_000);
    let input = r#"{"path": "a.txt"}"#;
    let words = ["policy", "explain", "search", input, "--allow", "write", "--json"];
    let denied = run(&world, &words).exits_with(4).json();
    assert_eq!(denied["error"]["detail"]["reason"], "path_rules", "{denied}");
    // The time of a project is only a bound: the default of the class stays.
    fs::remove_file(world.plugins().join("left.wasm")).unwrap();
    assert_eq!(time("search"), 60_000);
}

#[test]
fn setting_without_effect_is_reported() {
    let world = two_searches();
    user_file(
        &world,
        "[plugins.lft]\nprefix = \"right_\"\n[plugins.left.rename]\nserch = \"find\"\n",
    );
    for words in [["config", "show"].as_slice(), &["doctor"]] {
        run(&world, words).stderr_contains(&[
            "`plugins.lft` holds for no plugin that is found; did you mean `left`?",
            "`plugins.left.rename.serch`",
            "did you mean `search`?",
        ]);
    }
}

#[test]
fn plugin_whose_names_collide_is_rejected_with_the_reason() {
    let world = World::new();
    install(&world, "p", &["a", "b"]);
    approve(&world);
    user_file(&world, "[plugins.p.rename]\na = \"b\"\n");
    for words in [["list"].as_slice(), &["doctor"]] {
        let ran = run(&world, words);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("its settings give the name `b` to two of its tools"), "{said}");
    }
}

#[test]
fn invalid_table_is_refused_with_its_key() {
    let world = World::new();
    let long = format!("[plugins.p.config]\nk = \"{}\"", "x".repeat(64 << 10));
    for (text, said) in [
        ("[plugins.p]\nmemory = \"1KiB\"", "`plugins.p.memory` is 1KiB; 1MiB to 512MiB"),
        ("[plugins.p]\nmemory = 64", "write a size with its unit"),
        ("[plugins.p]\ntimeout = \"11m\"", "`plugins.p.timeout` is 11m"),
        ("[plugins.p]\nprefix = \"Left-\"", "`plugins.p.prefix`: `Left-`"),
        ("[plugins.p.rename]\na = \"B\"", "`plugins.p.rename`: `B` is not a tool name"),
        ("[plugins.p]\nworkspace = \"../up\"", "`plugins.p.workspace`: `../up`"),
        ("[plugins.p]\nworkspace = \"/etc\"", "`plugins.p.workspace`: `/etc`"),
        ("[plugins.p.paths]\ndeny = [\"/etc\"]", "`plugins.p.paths.deny`"),
        ("[plugins.p]\nprefx = \"a_\"", "did you mean `prefix`?"),
        ("[plugins]\ndirectorys = []", "did you mean `directories`?"),
        ("[plugins]\nbuiltins = true", "did you mean `builtin`?"),
        ("[plugins.directories]\nmemory = \"64MiB\"", "expected a sequence"),
        ("[plugins.files]\nprefix = \"a_\"", "`plugins.files`: the plugin ships with the program"),
        ("[plugins.p.config]\nk = nan", "`plugins.p.config.k` is NaN"),
        (&long, "`plugins.p.config`"),
    ] {
        user_file(&world, text);
        program(&world, &["list"]).run().exits_with(2).stderr_contains(&[said]);
    }
    user_file(
        &world,
        "[plugins]\nbuiltin = true\n[plugins.p]\nmemory = \"64MiB\"\n[plugins.files]\ntimeout = \"9s\"",
    );
    let _ = program(&world, &["list"]).run().exits_with(0);
}
