//! Tests registries and results as an embedder uses them, for plugin tools and native tools alike.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "registry/calls.rs"]
mod calls;
#[path = "registry/collection.rs"]
mod collection;
#[path = "registry/definition.rs"]
mod definition;
#[path = "registry/plugin_settings.rs"]
mod plugin_settings;
#[path = "registry/results.rs"]
mod results;

use palisade::Host;
use palisade_tests::guest::{CONTRACT_DEFINITIONS, CONTRACT_OUTCOME};
use palisade_tests::{Case, World};

/// Returns a host with the five tools of a plugin.
fn host() -> (World, Host) {
    let case = Case::new(CONTRACT_DEFINITIONS, "bare");
    let world = case.world();
    let host = case.builder(&world).build().unwrap();
    (world, host)
}

/// Returns a host whose plugin fills every field of a result.
fn reporting() -> (World, Host) {
    let case = Case::new(CONTRACT_OUTCOME, "report");
    let world = case.world();
    let host = case.builder(&world).build().unwrap();
    (world, host)
}
