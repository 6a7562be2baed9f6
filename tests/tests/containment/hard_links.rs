//! Files with several hard links: no tool changes one in place, or makes another link.

use std::fs;

use palisade::{Call, SideEffects, workspace::HardLinks};
use palisade_tests::case::{Plugins, block_on};
use palisade_tests::guest::CONTAINMENT_FILES;
use palisade_tests::{Case, Observed, Program, World};
use serde_json::json;

/// Creates a file with a second hard link elsewhere, as in a package manager's store.
fn stored(world: &World) {
    fs::write(world.home().join("store"), "shared").unwrap();
    fs::hard_link(world.home().join("store"), world.root().join("package")).unwrap();
}

#[track_caller]
fn the_store_is_what_it_was(seen: &Observed) {
    for world in seen.worlds() {
        assert_eq!(fs::read_to_string(world.home().join("store")).unwrap(), "shared");
    }
}

#[test]
fn hard_linked_file_is_read_and_not_changed_in_place() {
    for op in ["write", "append", "truncate", "touch"] {
        let case =
            Case::new(CONTAINMENT_FILES, "in_write").input(json!({"op": op, "path": "package"}));
        let seen = case.allow(SideEffects::Write).arrange(stored).check();
        assert!(seen.message("permission_denied").contains("workspace.hard_links"), "{op}");
        seen.changed_nothing().modified(&[]);
        the_store_is_what_it_was(&seen);
    }
    let case =
        Case::new(CONTAINMENT_FILES, "in_read").input(json!({"op": "read", "path": "package"}));
    assert_eq!(case.arrange(stored).check().output(), "shared");
}

#[test]
fn hard_linked_file_is_replaced_as_a_whole() {
    let input = json!({"path": "package", "content": "own"});
    let case = Case::new(Plugins::Shipped, "write_file")
        .input(input)
        .allow(SideEffects::Write)
        .arrange(stored);
    let seen = case.check();
    seen.left("package", Some("own")).modified(&["package"]);
    the_store_is_what_it_was(&seen);
}

#[test]
fn operator_may_allow_hard_linked_files() {
    let world = World::new();
    world.file("one", "shared");
    fs::hard_link(world.root().join("one"), world.root().join("two")).unwrap();
    let append = |hard_links| {
        let builder =
            Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write).builder(&world);
        let host = builder.hard_links(hard_links).build().unwrap();
        let call = Call::new("in_write", json!({"op": "append", "path": "one"}));
        block_on(host.dispatch(host.session(), call)).is_success()
    };
    assert!(!append(HardLinks::Refuse));
    assert!(append(HardLinks::Allow));
    assert_eq!(world.read("two").as_deref(), Some("shared+"));
    fs::write(world.home().join("own.toml"), "[workspace]\nhard_links = \"allow\"").unwrap();
    let program = Program::new(&world)
        .args(["call", "in_write", "-", "--allow", "write", "--no-builtin", "--plugins"])
        .args([CONTAINMENT_FILES.directory(), "--config".into(), world.home().join("own.toml")])
        .stdin(json!({"op": "link", "path": "one", "to": "three"}).to_string());
    let _ = program.run().exits_with(0);
    assert_eq!(world.read("three").as_deref(), Some("shared+"));
}

#[test]
fn hard_links_cannot_be_created() {
    let input = json!({"op": "link", "path": "file.txt", "to": "second"});
    let case = Case::new(CONTAINMENT_FILES, "in_write").input(input).allow(SideEffects::Write);
    let with_file = |world: &World| {
        world.file("file.txt", "inside");
    };
    let seen = case.arrange(with_file).check();
    assert!(seen.message("permission_denied").contains("hard links cannot be created"));
    seen.changed_nothing();
}
