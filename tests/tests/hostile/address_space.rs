//! Hosts whose address space is too short for a pool: each call maps what it needs, and whoever finds nothing left is told so.

use palisade_tests::program::Ran;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use serde_json::{Value, json};

use super::together::{marking, searching};

/// Runs these calls in one message, so many at once, with so much address space in KiB.
#[track_caller]
fn dispatched(world: &World, kib: u32, concurrency: u32, tools: &[&str]) -> (Vec<String>, Ran) {
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("palisade.toml"), format!("[limits]\nconcurrency = {concurrency}\n")).unwrap();
    let call = |(number, tool): (usize, &&str)| json!({"id": format!("c{number}"), "function": {"name": tool, "arguments": "{}"}});
    let calls: Vec<Value> = tools.iter().enumerate().map(call).collect();
    let program = Program::new(world).args(["dispatch", "--from", "openai", "--no-builtin", "--plugins"]);
    let program = program.args([world.plugins()]).stdin(json!({"tool_calls": calls}).to_string());
    let limit = format!("ulimit -v {kib} && exec \"$@\"");
    let ran = program.env("PALISADE_LOG", "info").through("sh", ["-c", &limit, "sh"]).run().left_with(0);
    ran.complains(&["no pool of memory on this machine"]);
    let answer = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    (ran.json().as_array().unwrap().iter().map(answer).collect(), ran)
}

/// A plugin with 62 MiB of memory from its start, which it holds for a second.
fn holding() -> Vec<u8> {
    let wait = "(local $until i64) (local.set $until (i64.add (call $now) (i64.const 1000000000)))
        (loop (br_if 0 (i64.lt_u (call $now) (local.get $until)))) {done}";
    let big = "(core module $big (memory 1000)) (core instance (instantiate $big))";
    Wat::new(Told::new("hold")).importing(big).with_clock().execute(wait).build()
}

#[test]
fn more_live_calls_than_the_address_space_has_room_for_are_refused_and_the_host_goes_on() {
    let world = World::new();
    std::fs::write(world.plugins().join("hold.wasm"), holding()).unwrap();
    std::fs::write(world.plugins().join("small.wasm"), Wat::new(Told::new("small")).build()).unwrap();
    // Fifty at once want three gibibytes. The small ones begin as places become free.
    let tools: Vec<&str> = [["hold"; 50].as_slice(), &["small"; 10]].concat();
    let (answers, ran) = dispatched(&world, 2_500_000, 50, &tools);
    let done = answers[..50].iter().filter(|answer| *answer == "done").count();
    let told = answers[..50].iter().filter(|answer| answer.starts_with("resource_exhausted")).count();
    assert!(done > 0 && told > 0 && done + told == 50, "{done} done, {told} refused: {answers:#?} {}", ran.stderr);
    // Two that are looked at in one moment may both be let in, and leave no room for a small one.
    let small = |answer: &&String| *answer == "done" || answer.starts_with("resource_exhausted");
    assert_eq!(answers[50..].iter().filter(small).count(), 10, "{answers:#?}");
    assert!(answers[50..].contains(&"done".to_owned()), "{answers:#?} {}", ran.stderr);
}

#[test]
fn what_one_plugin_leaves_in_memory_no_other_finds_without_a_pool_either() {
    let world = World::new();
    std::fs::write(world.plugins().join("mark.wasm"), marking()).unwrap();
    std::fs::write(world.plugins().join("search.wasm"), searching()).unwrap();
    let (answers, ran) = dispatched(&world, 4_000_000, 2, &["mark", "search"].repeat(16));
    assert_eq!(answers, ["done"; 32], "{}", ran.stderr);
}
