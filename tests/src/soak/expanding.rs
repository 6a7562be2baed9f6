//! A soak test for small texts that need much memory once they are parsed: results, inputs, and
//! renames below deep directories. The process grows by no more than the call's memory limit, and
//! releases it afterwards.

use palisade::{
    CacheMode, Call, Host, SideEffects, ToolResult, plugins::Shipped, policy::Policy,
    sandbox::limits::Limits,
};
use serde_json::json;

use super::{MEMORY, Report};
use crate::case::block_on;
use crate::guest::{HOSTILE_ECHO, LIMITS_FILES, cache};
use crate::oracle::{HOST_ROOM, Peak, Resources, rounds};
use crate::{World, expanding_json};

/// The number of members of a result of 3.5 MB, and of an input of 343 KB.
const RESULT: u32 = 500_000;
const INPUT: usize = 49_000;
/// The number of renames in one call, below 126 directories.
const RENAMES: usize = 4_200;
/// The memory limit of each call, in the sandbox and in the host, in bytes.
const CALL: u64 = 16 << 20;
/// The number of calls before the resources are recorded.
const WARM: usize = 2;

/// Makes calls whose results expand when they are parsed.
///
/// # Panics
///
/// If the host cannot be built.
pub fn results(count: usize) -> Report {
    swollen(count, || Call::new("swell", json!({})))
}

/// Makes calls whose inputs expand when they are parsed.
///
/// # Panics
///
/// If the host cannot be built.
pub fn inputs(count: usize) -> Report {
    let text = format!("{{\"text\":\"hello\",\"more\":{}}}", expanding_json::list(INPUT));
    swollen(count, || Call::new("echo", text.clone()))
}

/// Makes calls with renames below directories whose names together exceed the maximum length of a
/// path.
///
/// # Panics
///
/// If the host cannot be built.
pub fn renames(count: usize) -> Report {
    swollen(count, || Call::new("shuffle", json!({"amount": RENAMES})))
}

fn swollen(count: usize, call: impl Fn() -> Call) -> Report {
    let world = World::new();
    let host = host(&world);
    let one = || block_on(host.dispatch(host.session(), call()));
    // Measure the growth from here, before the first large call: an allocator keeps its memory for
    // later calls, which then do not grow the process.
    let small = block_on(host.call("echo", json!({"text": "hello"}), json!({})));
    assert!(small.is_success(), "{small}");
    let peak = Peak::of_this();
    (0..WARM).for_each(|_| drop(one()));
    let (mut before, mut failures) = (Resources::now(), Vec::new());
    // Only a leak grows in every round.
    for _ in 0..rounds() {
        before = Resources::now();
        failures.extend((0..count).map(|_| one()).filter_map(|result| wrong(&result)));
        if !failures.is_empty() || !before.have_grown(MEMORY) {
            break;
        }
    }
    let bound =
        format!("at most {} MiB at once, and the host's own {}", CALL >> 20, HOST_ROOM >> 20);
    Report::new(&format!("grew by {} MiB at most {:?}", peak.growth() >> 20, failures.first()))
        .bound("each is answered, or refused for what it takes", failures.is_empty())
        .bound(&bound, peak.beyond(CALL as usize).is_none())
        .bound("what was held is given back", peak.left() <= HOST_ROOM)
        .kept(before, MEMORY)
}

fn host(world: &World) -> Host {
    let plugin = expanding_json::answering("swell", RESULT).build();
    std::fs::write(world.plugins().join("swell.wasm"), plugin).expect("a plugin can be written");
    let builder = crate::host_builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .plugins(world.plugins());
    let builder = [HOSTILE_ECHO, LIMITS_FILES]
        .iter()
        .fold(builder, |all, guest| all.plugins(guest.directory()));
    let limits = Limits { memory: CALL, ..Limits::default() };
    let builder = builder.policy(Policy::default().allowing(SideEffects::Write)).limits(limits);
    let host = builder.cache(CacheMode::Directory(cache())).build().expect("the host can be built");
    assert!(host.rejected().is_empty(), "{:?}", host.rejected());
    host
}

fn wrong(result: &ToolResult) -> Option<String> {
    let refused =
        result.error().is_some_and(|error| error.class().as_str() == "resource_exhausted");
    (!result.is_success() && !refused).then(|| result.to_string())
}
