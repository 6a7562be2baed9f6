//! A soak test for limits: each call exceeds one limit, fails with that limit, and releases its
//! resources.

use std::collections::BTreeMap;

use palisade::{
    CacheMode, Call, Host, SideEffects, plugins::Shipped, policy::Policy, sandbox::limits::Limits,
};
use serde_json::{Value, json};

use super::{MEMORY, Report};
use crate::case::block_on;
use crate::guest::{HOSTILE_ABUSE, LIMITS_FILES, LIMITS_HANDLES, cache};
use crate::oracle::Resources;
use crate::wat::Told;
use crate::{Wat, World};

/// Returns the plugins that exceed a limit during instantiation or execution, with the name of the
/// limit.
fn greedy() -> Vec<(Wat, &'static str)> {
    let named = |name: &str| Wat::new(Told::new(name));
    let grown = "(if (i32.eq (table.grow $t (ref.null func) (i32.const 200000)) (i32.const -1)) (then unreachable)) {done}";
    let all = "(loop (br_if 0 (i32.ne (memory.grow (i32.const 64)) (i32.const -1)))) unreachable";
    let long = "(drop (memory.grow (i32.const 100)))";
    vec![
        (
            named("from_the_start")
                .importing("(core module $big (memory 640)) (core instance (instantiate $big))"),
            "memory",
        ),
        (named("as_it_grows").execute(all), "memory"),
        (named("tables_as_they_grow").extra("(table $t 1 funcref)").execute(grown), "tables"),
        (named("a_long_answer").answering_block(long, 0, 131_072, (4 << 20) + 1), "result"),
    ]
}

/// Returns the calls of guests that exceed a limit, with the name of the limit.
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("abuse", json!({"how": "hold-pollables", "amount": 10_000}), "handles"),
        ("abuse", json!({"how": "say", "amount": 16 << 20}), "hostcall_data"),
        ("stretch", json!({"amount": 1_u64 << 40}), "bytes_written"),
        ("hold", json!({"count": 1000}), "handles"),
        ("hold_listings", json!({"count": 1000}), "handles"),
    ]
}

/// Makes `count` calls, each of which exceeds a limit.
///
/// # Panics
///
/// If the host cannot be built.
pub fn refusals(count: usize) -> Report {
    let world = World::new();
    world.file("file.txt", "inside");
    let greedy = greedy();
    let mut calls = calls();
    for (plugin, limit) in &greedy {
        let name = plugin.name();
        std::fs::write(world.plugins().join(format!("{name}.wasm")), plugin.build())
            .expect("a plugin can be written");
        calls.push((name, json!({}), limit));
    }
    let builder = crate::host_builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .plugins(world.plugins());
    let builder = [HOSTILE_ABUSE, LIMITS_FILES, LIMITS_HANDLES]
        .iter()
        .fold(builder, |builder, guest| builder.plugins(guest.directory()));
    // Below the memory limit that applies while a plugin is described, so that every plugin loads.
    let limits = Limits { memory: 32 << 20, ..Limits::default() };
    let builder = builder.policy(Policy::default().allowing(SideEffects::Write)).limits(limits);
    let host = builder.cache(CacheMode::Directory(cache())).build().expect("the host can be built");
    assert!(host.rejected().is_empty(), "{:?}", host.rejected());
    let mut wrong = BTreeMap::new();
    (0..count / 10).for_each(|number| refused(&host, &calls[number % calls.len()], &mut wrong));
    let before = Resources::now();
    (0..count).for_each(|number| refused(&host, &calls[number % calls.len()], &mut wrong));
    Report::new(&format!("{} kinds, {wrong:?}", calls.len()))
        .bound("each is refused for what it wants", wrong.is_empty())
        .held(before, MEMORY)
}

fn refused(
    host: &Host,
    (tool, input, limit): &(&str, Value, &str),
    wrong: &mut BTreeMap<String, usize>,
) {
    let result = block_on(host.dispatch(host.session(), Call::new(*tool, input.clone()))).to_json();
    let error = &result["error"];
    if error["class"] != "resource_exhausted" || error["detail"]["limit"] != *limit {
        *wrong.entry(format!("{tool} {limit}: {error}")).or_default() += 1;
    }
}
