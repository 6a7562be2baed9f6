//! Hosts with too little address space for a memory pool: each call maps its own memory, and a call
//! that finds none left is refused with the reason.

use palisade::{Call, ToolResult, plugins::Shipped};
use palisade_tests::program::{Ran, test_again};
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::stage::class;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Stage, Wat, World};
use serde_json::{Value, json};

use super::concurrent::{all, marking, searching};

/// Dispatches one message with these calls, at this concurrency, under an address-space limit in
/// KiB.
#[track_caller]
fn dispatched(world: &World, kib: u32, concurrency: u32, tools: &[&str]) -> (Vec<String>, Ran) {
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("palisade.toml"),
        format!("[limits]\nconcurrency = {concurrency}\n"),
    )
    .unwrap();
    let call = |(number, tool): (usize, &&str)| json!({"id": format!("c{number}"), "function": {"name": tool, "arguments": "{}"}});
    let calls: Vec<Value> = tools.iter().enumerate().map(call).collect();
    let program =
        Program::new(world).args(["dispatch", "--from", "openai", "--no-builtin", "--plugins"]);
    let program = program.args([world.plugins()]).stdin(json!({"tool_calls": calls}).to_string());
    let ran = program.env("PALISADE_LOG", "info").limited(&format!("-v {kib}")).run().exits_with(0);
    ran.stderr_contains(&["no pool of memory on this machine"]);
    let answer = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    (ran.json().as_array().unwrap().iter().map(answer).collect(), ran)
}

/// Returns a plugin that holds an initial memory of 62 MiB for a second.
fn holding() -> Vec<u8> {
    let wait = "(local $until i64) (local.set $until (i64.add (call $now) (i64.const 1000000000)))
        (loop (br_if 0 (i64.lt_u (call $now) (local.get $until)))) {done}";
    let big = "(core module $big (memory 1000)) (core instance (instantiate $big))";
    Wat::new(Told::new("hold")).importing(big).with_clock().execute(wait).build()
}

/// Set in the environment of the child process that runs the test with little address space.
const SHORT: &str = "PALISADE_TESTS_SHORT_OF_ADDRESS_SPACE";
const TEST: &str = "address_space::calls_beyond_the_address_space_are_refused";

#[test]
fn calls_beyond_the_address_space_are_refused() {
    if leaves_out(&[Group::B]) {
        return;
    }
    if std::env::var_os(SHORT).is_some() {
        return with_little_address_space();
    }
    test_again("-v 2500000", TEST, SHORT);
}

/// Fifty concurrent calls want 3 GiB; after they have ended, there is room for others.
fn with_little_address_space() {
    let plugins = World::new();
    std::fs::write(plugins.plugins().join("hold.wasm"), holding()).unwrap();
    std::fs::write(plugins.plugins().join("small.wasm"), Wat::new(Told::new("small")).build())
        .unwrap();
    let stage =
        Stage::new(&[], |builder| builder.shipped(Shipped::LeftOut).plugins(plugins.plugins()));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let calls = |count: usize, name: &'static str| {
        all(&stage, (0..count).map(move |_| Call::new(name, json!({}))))
    };
    let held = runtime.block_on(calls(50, "hold"));
    let told = |result: &&ToolResult| {
        class(result) == "resource_exhausted" && result.to_string().contains("sandboxes")
    };
    let (done, refused) = (
        held.iter().filter(|result| result.is_success()).count(),
        held.iter().filter(told).count(),
    );
    assert!(
        done > 0 && refused > 0 && done + refused == 50,
        "{done} done, {refused} refused: {held:#?}"
    );
    let small = runtime.block_on(calls(4, "small"));
    assert!(small.iter().all(ToolResult::is_success), "{small:#?}");
}

#[test]
fn memory_is_cleared_between_plugins_without_a_pool() {
    let world = World::new();
    std::fs::write(world.plugins().join("mark.wasm"), marking()).unwrap();
    std::fs::write(world.plugins().join("search.wasm"), searching()).unwrap();
    let (answers, ran) = dispatched(&world, 4_000_000, 2, &["mark", "search"].repeat(16));
    assert_eq!(answers, ["done"; 32], "{}", ran.stderr);
}
