//! Limits beyond the reach of the SDK: start functions, multiple memories, tables.

use std::time::Duration;

use palisade::{CacheMode, Host, plugins::Shipped};
use palisade_tests::guest::cache;
use palisade_tests::wat::Told;
use palisade_tests::{Case, Observed, Plugins, Wat, World};
use serde_json::json;

fn raw() -> Wat {
    Wat::new(Told::new("raw"))
}

fn case(plugin: &Wat) -> Case {
    Case::new(Plugins::Component("raw".to_owned(), plugin.build()), "raw")
        .timeout(Duration::from_millis(200))
}

fn call(plugin: &Wat) -> Observed {
    case(plugin).check()
}

/// Returns why a plugin is not loaded.
fn rejection(plugin: &Wat) -> String {
    let world = World::new();
    let file = world.plugins().join("raw.wasm");
    std::fs::write(&file, plugin.build()).unwrap();
    let builder =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugin_file(file);
    let host = builder.cache(CacheMode::Directory(cache())).build().unwrap();
    host.rejected().first().map(|rejected| rejected.reason.clone()).unwrap_or_default()
}

#[test]
fn time_in_a_start_function_obeyed() {
    assert_eq!(call(&raw().starting("nop")).output(), "done");
}

#[test]
fn time_in_a_start_function_violated() {
    let seen = call(&raw().starting("(loop (br 0))"));
    assert_eq!(seen.error("timeout")["detail"], json!({"limit": "timeout", "value_ms": 200}));
}

#[test]
fn time_in_a_start_function_at_load_violated() {
    let reason = rejection(&raw().extra("(func $start (loop (br 0))) (start $start)"));
    assert!(reason.contains("did not answer within 2s"), "{reason}");
}

#[test]
fn time_in_a_description_violated() {
    let reason = rejection(&raw().definitions("(loop (br 0)) unreachable"));
    assert!(reason.contains("did not answer within 2s"), "{reason}");
}

/// Returns a plugin of three modules, each with its own memory. `$grow1` and `$grow2` grow the two
/// extra memories, which start with `pages` pages.
fn three_memories(pages: u32) -> Wat {
    let grow = "(func (export \"grow\") (param i32) (result i32) (memory.grow (local.get 0)))";
    let module = |name: &str| {
        format!(
            "(core module ${name} (memory {pages}) {grow}) (core instance ${name} (instantiate ${name}))"
        )
    };
    let import = |name: &str| {
        format!("(import \"{name}\" \"grow\" (func ${name} (param i32) (result i32)))")
    };
    raw()
        .importing(&(module("grow1") + &module("grow2")))
        .core_importing(&(import("grow1") + &import("grow2")))
        .with("(with \"grow1\" (instance $grow1)) (with \"grow2\" (instance $grow2))")
}

#[test]
fn memories_together_obeyed() {
    let plugin = three_memories(1).execute(
        "(drop (call $grow1 (i32.const 160))) (drop (call $grow2 (i32.const 160))) {done}",
    );
    let seen = case(&plugin).memory_mib(32).check();
    assert_eq!(seen.output(), "done");
    assert!(seen.result["usage"]["peak_memory_bytes"].as_u64().unwrap() > 20 << 20);
}

#[test]
fn memories_together_violated() {
    // Two memories of 20 MiB each under a limit of 32 MiB: each alone would fit.
    let second = "(if (i32.eq (call $grow2 (i32.const 320)) (i32.const -1)) (then unreachable))";
    let plugin = three_memories(1)
        .execute(&format!("(drop (call $grow1 (i32.const 320))) {second} {{done}}"));
    assert_eq!(case(&plugin).memory_mib(32).check().limit(), "memory");
}

#[test]
fn memory_at_the_start_violated() {
    // Requested at instantiation, before any code runs: twice 32 MiB under a limit of 32 MiB. The
    // limits for loading are higher.
    assert_eq!(case(&three_memories(512)).memory_mib(32).check().limit(), "memory");
}

#[test]
fn memories_of_one_module_violated() {
    let reason = rejection(&raw().extra("(memory 1)"));
    assert!(reason.contains("2 memories in one module; at most 1"), "{reason}");
}

#[test]
fn tables_obeyed() {
    let plugin = raw()
        .extra("(table $t 1 20000 funcref)")
        .execute("(drop (table.grow $t (ref.null func) (i32.const 9000))) {done}");
    assert_eq!(call(&plugin).output(), "done");
}

#[test]
fn tables_violated() {
    // A module may have four tables of 20,000 elements, 80,000 in all, so only an oversized request
    // exceeds the total of 100,000.
    let plugin = raw().extra("(table $t 1 funcref)").execute(
        "(if (i32.eq (table.grow $t (ref.null func) (i32.const 200000)) (i32.const -1)) (then unreachable)) {done}",
    );
    assert_eq!(call(&plugin).limit(), "tables");
}

/// Returns a plugin with `count` more core instances.
fn with_instances(count: usize) -> Wat {
    raw().importing(&format!(
        "(core module $empty) {}",
        "(core instance (instantiate $empty))".repeat(count)
    ))
}

#[test]
fn plugin_may_have_100_more_instances() {
    assert_eq!(call(&with_instances(100)).output(), "done");
}

#[test]
fn instances_violated() {
    let reason = rejection(&with_instances(200));
    assert!(reason.contains("128"), "{reason}");
}

#[test]
fn recursion_without_a_stack_of_its_own_violated() {
    // Without a shadow stack, only the host's limit on the native stack ends the recursion.
    let plugin = raw().extra("(func $down (param i64) (result i64) (i64.add (call $down (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))");
    let seen = call(&plugin.execute("(drop (call $down (i64.const 0))) {done}"));
    assert_eq!(seen.kind(), "trap");
}
