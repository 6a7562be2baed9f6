//! Two tools with the same name.

use std::fs;

use palisade::{CacheMode, Host, HostBuilder};
use palisade_tests::guest::cache;
use palisade_tests::native::shell;
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World};

use super::{load, refused, says};

fn plugin(tools: &[&str]) -> Vec<u8> {
    Wat::with_tools(tools.iter().map(|name| Told::new(name)).collect()).build()
}

#[test]
fn duplicate_name_within_a_plugin_is_refused() {
    says(&refused(&plugin(&["twin", "other", "twin"])), &["two tools named `twin`"]);
}

#[test]
fn name_of_an_earlier_plugin_is_refused_with_a_suggestion() {
    let world = World::new();
    fs::write(world.plugins().join("a.wasm"), plugin(&["twin", "first"])).unwrap();
    fs::write(world.plugins().join("b.wasm"), plugin(&["second", "twin"])).unwrap();
    let loaded = load(&world);
    assert_eq!(loaded.tools, ["twin", "first"], "the later plugin is rejected whole");
    assert_eq!(loaded.rejected[0].0, "b.wasm");
    says(loaded.reason(), &["`twin` already exists", "`twin_2`"]);
}

#[test]
fn suggested_name_is_free() {
    let world = World::new();
    for (file, tools) in [("a.wasm", &["twin", "twin_2"][..]), ("b.wasm", &["twin"])] {
        fs::write(world.plugins().join(file), plugin(tools)).unwrap();
    }
    says(load(&world).reason(), &["`twin_3`"]);
}

#[test]
fn name_of_a_shipped_tool_is_refused() {
    let world = World::new();
    fs::write(world.plugins().join("own.wasm"), plugin(&["read_file"])).unwrap();
    let ran = palisade_tests::Program::new(&world)
        .args(["list", "--json", "--plugins"])
        .args([world.plugins()])
        .run();
    let listed = ran.exits_with(0).json();
    assert!(
        listed["rejected"][0]["reason"].as_str().unwrap().contains("`read_file` already exists"),
        "{listed:#}"
    );
    assert_eq!(
        listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|tool| tool["name"] == "read_file")
            .count(),
        1
    );
}

#[test]
fn the_name_shell_is_reserved_with_and_without_the_tool() {
    let world = World::new();
    fs::write(world.plugins().join("own.wasm"), plugin(&["shell"])).unwrap();
    let reason = |change: fn(HostBuilder) -> HostBuilder| {
        let builder = Host::builder().workspace(world.root()).plugins(world.plugins());
        let host = change(builder.cache(CacheMode::Directory(cache()))).build().unwrap();
        host.rejected().pop().unwrap().reason
    };
    says(&reason(|builder| builder.tool(shell())), &["`shell` already exists", "`shell_2`"]);
    says(&reason(|builder| builder), &["`shell` is reserved", "`palisade-shell`", "`shell_2`"]);
}
