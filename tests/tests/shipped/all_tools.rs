//! Behaviour common to all shipped tools.

use crate::{allowed, call};
use palisade::formats::{Format, Strictness, export};
use palisade::{Host, SideEffects};
use palisade_tests::case::block_on;
use palisade_tests::{Case, Plugins, World, guest};
use serde_json::{Value, json};

/// Returns each tool with its class and a valid input.
fn tools() -> [(&'static str, SideEffects, Value); 9] {
    [
        ("calculate", SideEffects::None, json!({"expression": "1"})),
        ("read_file", SideEffects::Read, json!({"path": "f"})),
        ("list_dir", SideEffects::Read, json!({})),
        ("write_file", SideEffects::Write, json!({"path": "f", "content": "new"})),
        ("patch_file", SideEffects::Write, json!({"path": "f", "old": "old", "new": "new"})),
        ("delete_file", SideEffects::Write, json!({"path": "f"})),
        ("find_files", SideEffects::Read, json!({"pattern": "*"})),
        ("search_files", SideEffects::Read, json!({"pattern": "old"})),
        ("shell", SideEffects::Execute, json!({"command": "cat f"})),
    ]
}

fn host(world: &World) -> Host {
    Case::new(Plugins::Shipped, "").builder(world).build().expect("the host can be built")
}

#[test]
fn nine_tools_have_the_documented_classes() {
    let world = World::new();
    let host = host(&world);
    assert!(host.rejected().is_empty());
    assert_eq!(host.registry().tools().len(), tools().len());
    for (name, class, _) in tools() {
        let tool = host.registry().get(name).expect("it is there");
        assert_eq!(tool.definition().side_effects(), class, "{name}");
        assert!(
            !tool.definition().description().is_empty() && tool.definition().title().is_some(),
            "{name}"
        );
    }
}

/// Every property of a shipped tool's schema with one type, and every path with its use.
#[test]
fn each_schema_is_portable_as_it_is_written() {
    let world = World::new();
    let host = host(&world);
    for (name, class, _) in tools() {
        let tool = host.registry().get(name).expect("it is there");
        let mut written = tool.definition().parameters().clone();
        let listed = export(&tool.definition().into(), Format::Mcp, Strictness::AsIs);
        assert_eq!(listed.weakened, [], "{name}");
        for property in written["properties"].as_object_mut().expect("an object").values_mut() {
            let property = property.as_object_mut().expect("a schema");
            if property.remove("format") == Some(json!("workspace-path")) {
                let access = property.remove("x-access").expect("each path has its use");
                assert_eq!(access == "read", class == SideEffects::Read, "{name}");
                let described = property["description"].as_str().expect("a text");
                assert!(described.contains("relative to the workspace"), "{name}: {described}");
            }
            assert!(property["type"].is_string(), "{name}: {property:?}");
        }
        assert_eq!(listed.tool["inputSchema"], written, "{name}");
    }
}

#[test]
fn each_tool_takes_null_for_an_optional_input_that_is_left_out() {
    let optional = [
        ("read_file", vec!["start_line", "end_line", "limit"]),
        ("list_dir", vec!["path"]),
        ("find_files", vec!["path"]),
        ("search_files", vec!["path", "context"]),
    ];
    for (name, left_out) in optional {
        let (_, _, mut input) = tools().into_iter().find(|(known, ..)| *known == name).expect("it");
        for member in left_out {
            input[member] = Value::Null;
        }
        let seen = call(name, input)
            .arrange(|world| {
                world.file("f", "old");
            })
            .check();
        assert_eq!(seen.result["success"], true, "{name}: {:#}", seen.result);
    }
    let _ = call("read_file", json!({"path": null}))
        .check_library(|call| call)
        .error("validation_error");
}

#[test]
fn each_tool_works_and_only_class_write_changes_files() {
    for (name, class, input) in tools() {
        let seen = allowed(name, input)
            .arrange(|world| {
                world.file("f", "old");
            })
            .check();
        assert_eq!(seen.result["success"], true, "{name}: {:#}", seen.result);
        if class == SideEffects::Write {
            seen.modified(&["f"]);
        } else {
            seen.changed_nothing().modified(&[]);
        }
    }
}

#[test]
fn each_tool_refuses_a_non_object_input() {
    for (name, _, _) in tools() {
        let seen = call(name, json!(["f"])).check_library(|call| call);
        let _ = seen.error("validation_error");
    }
}

#[test]
fn each_tool_ignores_unknown_fields() {
    for (name, _, mut input) in tools() {
        input["reason"] = json!("the model says why");
        let seen = allowed(name, input)
            .arrange(|world| {
                world.file("f", "old");
            })
            .check_library(|call| call);
        assert_eq!(seen.result["success"], true, "{name}: {:#}", seen.result);
    }
}

#[test]
fn class_read_cannot_write_with_any_code() {
    for op in ["create", "write", "append", "truncate", "mkdir", "unlink", "rename", "link"] {
        let input = json!({"op": op, "path": if op == "create" || op == "mkdir" { "new" } else { "f" }, "to": "new"});
        let seen = Case::new(guest::CONTAINMENT_FILES, "in_read")
            .input(input)
            .arrange(|world| {
                world.file("f", "old");
            })
            .check();
        assert_eq!(seen.result["success"], false, "{op}");
        seen.changed_nothing();
    }
}

#[test]
fn each_call_starts_anew_without_temporary_files() {
    let world = World::new();
    let host = Case::new(Plugins::Shipped, "")
        .allow(SideEffects::Write)
        .builder(&world)
        .build()
        .expect("the host can be built");
    for number in 0..20 {
        let input = json!({"path": "f", "content": number.to_string()});
        assert!(block_on(host.call("write_file", input, json!({}))).is_success());
        assert_eq!(world.read("f"), Some(number.to_string()));
    }
    assert_eq!(world.inside().len(), 1);
}
