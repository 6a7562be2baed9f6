//! A soak test for loading: plugins are loaded, called once and dropped repeatedly, which must free
//! their code.

use palisade::{CacheMode, plugins::Shipped};
use serde_json::json;

use super::Report;
use crate::case::block_on;
use crate::oracle::Resources;
use crate::wat::Told;
use crate::{Wat, World};

/// The number of different plugins.
const PLUGINS: usize = 20;
/// The number of functions in each plugin, so that there is code to free.
const FUNCTIONS: usize = 50;
/// The number of loads before the first measurement, so that each slot of the pooling allocator is
/// mapped.
const WARM: usize = 600;
/// The tolerated growth of memory, in bytes.
const MEMORY: usize = 16 << 20;

/// Loads, calls and drops `count` plugins without a cache, so that each is compiled.
///
/// # Panics
///
/// If a plugin cannot be loaded or called.
pub fn loads(count: usize) -> Report {
    let world = World::new();
    for number in 0..PLUGINS {
        std::fs::write(file(&world, number), plugin(number)).expect("a plugin can be written");
    }
    let figures = format!("{PLUGINS} plugins of {} bytes", plugin(0).len());
    // A short run does not use every slot of the pool, so the mappings are not bounded.
    let warm = if count < WARM { PLUGINS } else { WARM };
    (0..warm).for_each(|number| load(&world, number));
    let before = Resources::now();
    (0..count).for_each(|number| load(&world, number));
    if count < WARM {
        Report::new(&figures).kept(before, MEMORY)
    } else {
        Report::new(&figures).held(before, MEMORY)
    }
}

fn file(world: &World, number: usize) -> std::path::PathBuf {
    world.plugins().join(format!("p{}.wasm", number % PLUGINS))
}

fn plugin(number: usize) -> Vec<u8> {
    let function = |n: usize| {
        format!(
            "(func (param i32) (result i32) (i32.mul (local.get 0) (i32.const {})))",
            n * PLUGINS + number
        )
    };
    Wat::new(Told::new("tool")).extra(&(0..FUNCTIONS).map(function).collect::<String>()).build()
}

fn load(world: &World, number: usize) {
    let builder = crate::host_builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .cache(CacheMode::Off);
    let host = builder.plugin_file(file(world, number)).build().expect("the host can be built");
    let result = block_on(host.call("tool", json!({}), json!({})));
    assert_eq!(result.output().as_deref(), Some("done"), "{result}");
}
