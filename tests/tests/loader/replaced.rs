//! Rescans after a plugin location was replaced: nothing is loaded that a tool could have written.

use std::fs;
use std::os::unix::fs::symlink;

use palisade::{json, workspace::HardLinks};
use palisade_tests::World;
use palisade_tests::case::block_on;

use super::rescan::{builder, file, found, pairs, plugin, refused, tools};
use super::says;

#[test]
fn removed_directory_keeps_its_plugins_and_a_replacement_is_ignored() {
    let world = World::new();
    let second = world.outer().join("second");
    fs::create_dir(&second).unwrap();
    world.install("a", &plugin(&["a"], "1"));
    let host = builder(&world).plugins(&second).build().unwrap();
    let away = world.outer().join("away");
    fs::rename(world.plugins(), &away).unwrap();
    fs::write(second.join("b.wasm"), plugin(&["b"], "1")).unwrap();
    let rescan = host.rescan();
    assert_eq!(
        found(&rescan),
        [vec!["b"], vec![], vec![]],
        "the other directory is scanned all the same"
    );
    says(&rescan.rejected[0].reason, &["the plugins loaded from it before stay"]);
    assert_eq!(tools(&host), pairs(&[("a", "1"), ("b", "1")]));
    assert!(block_on(host.call("a", "{}", json!({}))).is_success());
    assert!(host.rescan().is_empty(), "it is said once");
    fs::create_dir(world.plugins()).unwrap();
    world.install("a", &plugin(&["planted"], "1"));
    says(&refused(&host), &["was replaced after startup", "restart"]);
    assert_eq!(tools(&host), pairs(&[("a", "1"), ("b", "1")]));
    fs::remove_dir_all(world.plugins()).unwrap();
    fs::rename(away, world.plugins()).unwrap();
    assert!(host.rescan().is_empty() && host.rejected().is_empty());
}

#[test]
fn later_link_to_a_writable_target_is_refused() {
    let world = World::new();
    world.file("made.wasm", plugin(&["made"], "1")).file("old.wasm", plugin(&["old"], "1"));
    symlink(world.root().join("old.wasm"), file(&world, "old")).unwrap();
    world.install("real", &plugin(&["real"], "1"));
    let host = builder(&world).build().unwrap();
    symlink(world.root().join("made.wasm"), file(&world, "made")).unwrap();
    says(&refused(&host), &["it is a symbolic link", "put a copy there, or restart"]);
    assert_eq!(tools(&host), pairs(&[("old", "1"), ("real", "1")]));
    fs::remove_file(file(&world, "made")).unwrap();
    // A tool could create the target between a scan and the load.
    symlink(world.root().join("later.wasm"), file(&world, "later")).unwrap();
    says(&refused(&host), &["it is a symbolic link to a missing file"]);
    fs::remove_file(file(&world, "later")).unwrap();
    // Files protected from the start may change, and so may files in the directory itself.
    world.file("old.wasm", plugin(&["old"], "2"));
    fs::rename(file(&world, "real"), world.plugins().join("real.bin")).unwrap();
    symlink("real.bin", file(&world, "real")).unwrap();
    host.rescan();
    assert_eq!((tools(&host), host.rejected()), (pairs(&[("old", "2"), ("real", "1")]), vec![]));
}

#[test]
fn hard_linked_plugin_changeable_by_tools_is_refused() {
    let world = World::new();
    world.file("made.wasm", plugin(&["made"], "1"));
    let strict = builder(&world).build().unwrap();
    let lax = builder(&world).hard_links(HardLinks::Allow).build().unwrap();
    fs::hard_link(world.root().join("made.wasm"), file(&world, "made")).unwrap();
    assert_eq!(
        found(&strict.rescan())[0],
        ["made"],
        "no tool changes a file that has several names"
    );
    says(&refused(&lax), &["it has another name", "put a copy there"]);
}
