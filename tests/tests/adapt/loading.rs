//! Components that are adapted, in part or not at all.

use palisade::plugins::Shipped;
use palisade::sandbox::{Adaptation, Docs};
use palisade::{CacheMode, Host, HostBuilder, SideEffects};
use palisade_tests::guest::{ADAPT_DEPOT, LOADER_GOOD, cache};
use palisade_tests::wat::binary;
use palisade_tests::{World, host_builder};
use serde_json::json;

fn builder(world: &World) -> HostBuilder {
    host_builder().workspace(world.root()).shipped(Shipped::LeftOut)
}

/// Adapts a component that is written as text.
fn adapted(text: &str) -> Host {
    let world = World::new();
    let file = world.install("made", &binary(text));
    let builder = builder(&world).cache(CacheMode::Off);
    builder.adapt(file, Adaptation::new(SideEffects::None)).build().unwrap()
}

/// Returns the reason why a component is refused.
#[track_caller]
fn refused(text: &str) -> String {
    let host = adapted(text);
    assert!(host.registry().is_empty());
    host.rejected()[0].reason.clone()
}

fn depot(world: &World) -> Host {
    let builder = builder(world).cache(CacheMode::Directory(cache()));
    builder.adapt(ADAPT_DEPOT.file(), Adaptation::new(SideEffects::None)).build().unwrap()
}

#[test]
fn functions_with_resources_are_left_out_with_the_reason() {
    let host = depot(&World::new());
    let plugin = host.plugins().remove(0);
    let mut left_out: Vec<_> = plugin.left_out().iter().map(|it| it.function.as_str()).collect();
    left_out.sort_unstable();
    let cells = ["[constructor]cell", "[method]cell.get", "get-all", "open"];
    let cells = cells.map(|name| format!("acme:depot/cells@1.2.0#{name}"));
    assert_eq!(left_out, cells);
    assert!(plugin.left_out().iter().all(|it| it.reason.contains("resource")));
    let names: Vec<_> = plugin.definitions().iter().map(|it| it.name().as_str()).collect();
    for name in ["ping", "sums_of_two", "cells_count", "echo_same_item", "work_read_file"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.contains(&"cells_open"));
}

#[test]
fn component_with_a_future_is_refused() {
    let reason = refused(
        r#"(component
            (type $f (future u8))
            (core module $m (func (export "f") (param i32)))
            (core instance $i (instantiate $m))
            (func (export "f") (param "x" $f) (canon lift (core func $i "f"))))"#,
    );
    assert!(reason.contains("component-model-async"), "{reason}");
}

#[test]
fn foreign_import_is_refused_with_its_name() {
    let reason = refused(
        r#"(component
            (import "acme:store/db@0.3.0" (instance (export "get" (func (result u32)))))
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func (export "f") (canon lift (core func $i "f"))))"#,
    );
    assert!(reason.contains("`acme:store/db@0.3.0`"), "{reason}");
}

/// A component that exports functions of this kind under these names.
fn exporting(names: &[&str]) -> String {
    let exports: String =
        names.iter().map(|name| format!("(export \"{name}\" (func $f))")).collect();
    format!(
        r#"(component
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            {exports})"#
    )
}

#[test]
fn names_of_tools_are_those_of_functions() {
    let host = adapted(&exporting(&["plain", "two-words", "HTTP-get", "init"]));
    let plugin = host.plugins().remove(0);
    let names: Vec<_> = plugin.definitions().iter().map(|it| it.name().to_string()).collect();
    assert_eq!(names, ["plain", "two_words", "http_get"]);
    assert_eq!(plugin.left_out()[0].function, "init");
    let long = "a".repeat(65);
    let host = adapted(&exporting(&["fine", &long]));
    let plugin = host.plugins().remove(0);
    assert_eq!(plugin.definitions().len(), 1);
    assert!(plugin.left_out()[0].reason.contains("not a tool name"), "{:?}", plugin.left_out());
}

#[test]
fn second_function_of_a_tool_name_is_left_out() {
    let host = adapted(
        r#"(component
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (instance $one (export "go" (func $f)))
            (export "a:x/api" (instance $one))
            (export "b:y/api" (instance $one)))"#,
    );
    let plugin = host.plugins().remove(0);
    assert_eq!(plugin.definitions().len(), 1);
    let left_out = &plugin.left_out()[0];
    assert_eq!(left_out.function, "b:y/api#go");
    assert!(left_out.reason.contains("a:x/api#go"), "{}", left_out.reason);
}

#[test]
fn component_without_functions_says_why() {
    let reason = refused(
        r#"(component
            (core module $m (func (export "run") (result i32) i32.const 0))
            (core instance $i (instantiate $m))
            (func $f (result (result)) (canon lift (core func $i "run")))
            (instance $run (export "run" (func $f)))
            (export "wasi:cli/run@0.2.6" (instance $run)))"#,
    );
    assert!(reason.contains("`run` of a command"), "{reason}");
    assert!(refused("(component)").contains("no function"));
}

#[test]
fn plugin_of_the_contract_keeps_its_classes() {
    let world = World::new();
    let builder = builder(&world).cache(CacheMode::Directory(cache()));
    let host =
        builder.adapt(LOADER_GOOD.file(), Adaptation::new(SideEffects::Write)).build().unwrap();
    assert!(host.rejected()[0].reason.contains("load it as a plugin"), "{:?}", host.rejected());
}

#[test]
fn types_beyond_the_limits_cost_only_their_function() {
    // Each type has the one before it twice: together they have thousands of parts.
    let types: String = (1..=12)
        .map(|level| {
            let inner = level - 1;
            format!("(type $t{level} (tuple $t{inner} $t{inner}))")
        })
        .collect();
    let host = adapted(&format!(
        r#"(component
            (type $t0 (tuple u8 u8)) {types}
            (core module $m
                (memory (export "memory") 1)
                (func (export "f"))
                (func (export "g") (param i32))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0))
            (core instance $i (instantiate $m))
            (func (export "fine") (canon lift (core func $i "f")))
            (func (export "large") (param "t" $t12)
                (canon lift (core func $i "g") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#
    ));
    let plugin = host.plugins().remove(0);
    assert_eq!(plugin.definitions().len(), 1);
    assert!(plugin.left_out()[0].reason.contains("too large"), "{:?}", plugin.left_out());
}

#[test]
fn description_comes_from_the_operators_docs() {
    let world = World::new();
    let docs = Docs::default()
        .with(Some("acme:depot/echo"), "same-text", "Says it again.")
        .with_part(Some("echo"), "same-text", "text", "Not found: another name is more precise.")
        .with_part(Some("acme:depot/echo"), "same-text", "text", "What to say.");
    let adaptation = Adaptation::new(SideEffects::None).with_docs(docs);
    let builder = builder(&world).cache(CacheMode::Directory(cache()));
    let host = builder.adapt(ADAPT_DEPOT.file(), adaptation).build().unwrap();
    let definition = |name: &str| host.registry().get(name).unwrap().definition().clone();
    let echo = definition("echo_same_text");
    assert_eq!(echo.description(), "Says it again.");
    let text = json!({"type": "string", "description": "What to say."});
    assert_eq!(echo.parameters()["properties"]["text"], text);
    let other = definition("work_nothing");
    assert_eq!(other.description(), "Calls `nothing` of `acme:depot/work@1.2.0`.");
}

#[test]
fn cached_description_is_that_of_its_class() {
    let world = World::new();
    let adapt = |class| {
        let builder = builder(&world).cache(CacheMode::Directory(cache()));
        builder.adapt(ADAPT_DEPOT.file(), Adaptation::new(class))
    };
    let classes = |host: &Host| {
        let tools = host.registry().tools();
        assert!(!tools.is_empty());
        tools.iter().map(|tool| tool.definition().side_effects()).collect::<Vec<_>>()
    };
    for class in [SideEffects::None, SideEffects::Write] {
        assert!(classes(&adapt(class).build().unwrap()).iter().all(|it| *it == class));
        // Nothing is compiled, so that the description is that of the cache.
        let cached = adapt(class).build_from_cache().unwrap();
        assert!(classes(&cached).iter().all(|it| *it == class));
        let left_out = cached.plugins().remove(0).left_out().len();
        assert_eq!(left_out, 4);
    }
}

#[test]
fn adapted_file_of_a_plugin_directory_is_no_broken_plugin() {
    let world = World::new();
    let file = world.install("depot", &std::fs::read(ADAPT_DEPOT.file()).unwrap());
    let plugins = || builder(&world).cache(CacheMode::Directory(cache())).plugins(world.plugins());
    let alone = plugins().build().unwrap();
    assert!(alone.rejected()[0].reason.contains("imports `acme:depot/types@1.2.0`"));
    let host = plugins().adapt(file, Adaptation::new(SideEffects::None)).build().unwrap();
    assert_eq!((host.rejected(), host.registry().has("ping")), (Vec::new(), true));
    assert!(host.rescan().is_empty());
}

#[test]
fn changed_component_is_adapted_again() {
    let world = World::new();
    let file = world.install("made", &binary(&exporting(&["one"])));
    let builder = builder(&world).cache(CacheMode::Off);
    let host = builder.adapt(&file, Adaptation::new(SideEffects::Read)).build().unwrap();
    world.install("made", &binary(&exporting(&["two", "three"])));
    assert!(!host.rescan().is_empty());
    let tools = host.registry().tools();
    let names: Vec<_> = tools.iter().map(|tool| tool.definition().name().as_str()).collect();
    assert_eq!(names, ["two", "three"]);
    assert!(tools.iter().all(|tool| tool.definition().side_effects() == SideEffects::Read));
}
