//! The lists of the configuration: the tools that are hidden from models, and the only ones that may
//! be called.

use crate::{program, user_file, with_guest};
use palisade_tests::World;
use palisade_tests::guest::DISPATCHER_GATE;
use serde_json::Value;

const SUM: [&str; 3] = ["call", "calculate", r#"{"expression": "1"}"#];
const LIST: [&str; 3] = ["call", "list_dir", "{}"];

fn exported(world: &World) -> Vec<String> {
    let exported = program(world, &["export", "--format", "anthropic"]).run().exits_with(0).json();
    exported.as_array().unwrap().iter().map(name).collect()
}

fn name(tool: &Value) -> String {
    tool["name"].as_str().unwrap().to_owned()
}

#[test]
fn hidden_tool_is_neither_listed_nor_exported_and_can_be_called() {
    let world = World::new();
    user_file(&world, "[tools]\nhide = [\"calculate\", \"files/list_dir\"]");
    let ran = program(&world, &["list", "--json"]).run().exits_with(0);
    let listed: Vec<String> = ran.json()["tools"].as_array().unwrap().iter().map(name).collect();
    for names in [listed, exported(&world)] {
        assert!(names.contains(&"read_file".to_owned()), "{names:?}");
        assert!(!names.contains(&"calculate".to_owned()), "{names:?}");
        assert!(!names.contains(&"list_dir".to_owned()), "{names:?}");
    }
    ran.stderr_contains(&["not listed", "calculate, list_dir"]);
    let _ = program(&world, &SUM).run().exits_with(0);
}

#[test]
fn list_of_allowed_tools_binds() {
    let world = World::new();
    let file = user_file(&world, "[tools]\nonly = [\"calculate\", \"files/read_file\"]");
    assert_eq!(exported(&world), ["calculate", "read_file"]);
    let _ = program(&world, &SUM).run().exits_with(0);
    let ran = program(&world, &[&LIST[..], &["--json"]].concat()).run().exits_with(4);
    let error = &ran.json()["error"];
    assert_eq!(
        (&error["class"], &error["detail"]["reason"]),
        (&"permission_denied".into(), &"not_allowed".into())
    );
    let told = program(&world, &LIST).run().exits_with(4);
    told.stderr_contains(&["add it there, in ~/.config/palisade/palisade.toml"]);
    let explained = program(&world, &["policy", "explain", "list_dir"]).run().exits_with(4);
    assert!(explained.stdout.contains("`list_dir` is not among the tools"), "{explained:?}");
    let reply = r#"{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "list_dir", "input": {}}]}"#;
    let answered = program(&world, &["dispatch", "--from", "anthropic"]).stdin(reply).run();
    let answer = answered.exits_with(0).stdout;
    assert!(answer.contains("is not among the tools that may be called here"), "{answer}");
    assert!(!answer.contains("tools.only"), "a model reads no advice: {answer}");
    let shown = program(&world, &["config", "show", "--json"]).run().exits_with(0).json();
    assert_eq!(shown["tools.only"]["value"], "calculate, files/read_file");
    assert_eq!(shown["tools.only"]["origin"], file.to_str().unwrap());
}

#[test]
fn empty_list_of_allowed_tools_allows_none() {
    let world = World::new();
    user_file(&world, "[tools]\nonly = []");
    assert!(exported(&world).is_empty());
    let _ = program(&world, &SUM).run().exits_with(4);
}

#[test]
fn projects_lists_only_tighten() {
    let world = World::new();
    user_file(
        &world,
        "[tools]\nhide = [\"calculate\"]\nonly = [\"calculate\", \"read_file\", \"list_dir\"]",
    );
    world.file(
        "palisade.toml",
        "[tools]\nhide = [\"list_dir\"]\nonly = [\"list_dir\", \"files/read_file\"]",
    );
    assert_eq!(exported(&world), ["read_file"], "hidden by either file, and allowed by both");
    let _ = program(&world, &SUM).run().exits_with(4);
    world.file("palisade.toml", "[tools]\nonly = [\"write_file\"]");
    let refused = program(&world, &LIST).run().exits_with(2);
    refused.stderr_contains(&["`tools.only` would loosen a setting"]);
}

#[test]
fn denied_tool_is_neither_listed_nor_exported() {
    let world = World::new();
    user_file(&world, "[confirm]\nwrite = \"deny\"\n[confirm.tools]\ncalculate = \"deny\"");
    let names = exported(&world);
    assert!(names.contains(&"read_file".to_owned()), "{names:?}");
    for denied in ["write_file", "patch_file", "delete_file", "calculate"] {
        assert!(!names.contains(&denied.to_owned()), "{names:?}");
    }
    let listed = program(&world, &["list"]).run().exits_with(0);
    assert!(!listed.stdout.contains("write_file"), "{listed:?}");
    listed.stderr_contains(&["not listed", "write_file", "`palisade config show` says where"]);
}

#[test]
fn misspelled_name_of_a_list_is_reported() {
    let world = World::new();
    user_file(&world, "[tools]\nhide = [\"of_reed\"]\nonly = [\"of_non\", \"of_read\"]");
    let words = ["call", "of_read", r#"{"number": 1}"#];
    let ran = with_guest(&world, DISPATCHER_GATE, &words).run().exits_with(0);
    ran.stderr_contains(&[
        "`tools.hide = [\"of_reed\"]`",
        "did you mean `of_read`?",
        "`tools.only = [\"of_non\"]`",
        "did you mean `of_none`?",
    ]);
    user_file(&world, "[tools]\nhide = [\"dispatcher_gate\"]");
    let ran = with_guest(&world, DISPATCHER_GATE, &words).run().exits_with(2);
    ran.stderr_contains(&["`dispatcher_gate` is a plugin, and rules name tools"]);
}

#[test]
fn name_in_a_list_that_matches_no_tool_is_reported_where_tools_are_listed() {
    let world = World::new();
    user_file(
        &world,
        "[tools]\nhide = [\"xyzzy\"]\nonly = [\"calculate\", \"read_fiel\", \"file/read_file\"]\n\n\
         [confirm.tools]\nplugh = \"auto\"",
    );
    let ran = program(&world, &["list"]).run().exits_with(0);
    ran.stderr_contains(&[
        "`tools.hide = [\"xyzzy\"]`",
        "no tool has a name like it",
        "`tools.only = [\"read_fiel\"]`",
        "did you mean `read_file`?",
        "`tools.only = [\"file/read_file\"]`",
        "did you mean `files/read_file`?",
    ]);
    assert!(!ran.stderr.contains("plugh"), "rules are reported where they decide: {ran:?}");
    user_file(&world, "[tools]\nonly = [\"calculate\", \"files/read_file\"]");
    let ran = program(&world, &["list"]).run().exits_with(0);
    assert!(!ran.stderr.contains("holds for no tool"), "{ran:?}");
}
