//! Limits on the use of the workspace.

use std::fs::File;

use palisade::SideEffects;
use palisade_tests::guest::LIMITS_FILES;
use palisade_tests::{Case, Observed, World};
use serde_json::json;

fn call(tool: &str, amount: u64, arrange: fn(&World)) -> Observed {
    Case::new(LIMITS_FILES, tool)
        .input(json!({"amount": amount}))
        .allow(SideEffects::Write)
        .arrange(arrange)
        .check()
}

/// Creates a sparse file of 300 MiB.
fn big(world: &World) {
    File::create(world.root().join("big")).unwrap().set_len(300 << 20).unwrap();
}

fn thousand_entries(world: &World) {
    (0..1000)
        .for_each(|number| drop(File::create(world.root().join(format!("{number}"))).unwrap()));
}

fn nothing(_: &World) {}

#[test]
fn bytes_read_obeyed() {
    let seen = call("read", 16, big);
    assert_eq!(seen.output(), "16777216 read");
    assert_eq!(seen.result["usage"]["bytes_read"], 16 << 20);
}

#[test]
fn bytes_read_violated() {
    let seen = call("read", 300, big);
    assert_eq!(
        (seen.limit(), &seen.result["error"]["detail"]["value"]),
        ("bytes_read", &json!(256 << 20))
    );
}

#[test]
fn bytes_written_obeyed() {
    let seen = call("write", 8, nothing);
    assert_eq!(seen.output(), "8388608 written");
    assert_eq!(seen.result["usage"]["bytes_written"], 8 << 20);
    seen.modified(&["written"]);
}

#[test]
fn bytes_written_violated() {
    let seen = call("write", 70, nothing);
    assert_eq!(
        (seen.limit(), &seen.result["error"]["detail"]["value"]),
        ("bytes_written", &json!(64 << 20))
    );
    for world in seen.worlds() {
        assert!(world.root().join("written").metadata().unwrap().len() <= 64 << 20);
    }
}

#[test]
fn holes_obeyed() {
    let seen = call("stretch", 60, nothing);
    assert_eq!(seen.output(), "stretched");
    assert_eq!(seen.result["usage"]["bytes_written"], 0);
}

#[test]
fn holes_violated() {
    assert_eq!(call("stretch", 65, nothing).limit(), "bytes_written");
}

#[test]
fn new_files_obeyed() {
    assert_eq!(call("make", 100, nothing).output(), "100 made");
}

#[test]
fn new_files_violated() {
    let seen = call("make", 10_001, nothing);
    assert_eq!(
        (seen.limit(), &seen.result["error"]["detail"]["value"]),
        ("new_entries", &json!(10_000))
    );
    for world in seen.worlds() {
        assert_eq!(world.root().read_dir().unwrap().count(), 10_000);
    }
}

#[test]
fn listing_obeyed() {
    assert_eq!(call("list", 5, thousand_entries).output(), "5000 listed");
}

#[test]
fn listing_violated() {
    let seen = call("list", 101, thousand_entries);
    assert_eq!(
        (seen.limit(), &seen.result["error"]["detail"]["value"]),
        ("listed_entries", &json!(100_000))
    );
}

#[test]
fn hole_of_four_exbibytes_counts() {
    let seen = call("stretch", 1 << 42, nothing);
    assert_eq!(seen.limit(), "bytes_written");
    for world in seen.worlds() {
        assert_eq!(world.root().join("stretched").metadata().unwrap().len(), 0);
    }
}

#[test]
fn depth_obeyed() {
    assert_eq!(call("nest", 128, nothing).output(), "128 nested");
}

#[test]
fn depth_violated() {
    let seen = call("nest", 129, nothing);
    assert_eq!((seen.limit(), &seen.result["error"]["detail"]["value"]), ("depth", &json!(128)));
    assert_eq!(seen.result["files_modified"].as_array().unwrap().len(), 128);
}

#[test]
fn every_quota_error_has_advice() {
    for (tool, amount) in [("write", 70), ("nest", 129)] {
        let seen = call(tool, amount, nothing);
        let advice = seen.error("resource_exhausted")["detail"]["advice"].as_str().unwrap();
        assert!(
            seen.message("resource_exhausted").contains(advice)
                && advice.contains("this bound is fixed"),
            "{advice}"
        );
    }
}

#[test]
fn changes_omitted_from_the_list_are_counted() {
    let seen = call("make", 10_000, nothing);
    let listed = seen.result["files_modified"].as_array().unwrap().len();
    assert_eq!(
        (listed, &seen.result["metadata"]["files_modified_unlisted"]),
        (4096, &json!(10_000 - 4096))
    );
}

/// Runs the program with a small tmpfs over the workspace, in a mount namespace of its own; returns
/// `None` if the test may not mount.
fn on_a_small_disk(tool: &str, amount: u64) -> Option<serde_json::Value> {
    let case =
        Case::new(LIMITS_FILES, tool).input(json!({"amount": amount})).allow(SideEffects::Write);
    let world = case.world();
    let mount = format!(
        "mount -t tmpfs -o size=1m,nr_inodes=8 none '{}' && exec \"$@\"",
        world.root().display()
    );
    let program = ["--mount", "--map-root-user", "sh", "-c", &mount, "sh"];
    let can = std::process::Command::new("unshare").args(program).arg("true").output();
    if !can.is_ok_and(|ran| ran.status.success()) {
        palisade_tests::skip("file systems cannot be mounted here");
        return None;
    }
    let result = case.program(&world).through("unshare", program).run().exits_with(5).json();
    assert!(world.inside().is_empty(), "the file system was the program's own");
    Some(result)
}

#[test]
fn full_disk_is_reported() {
    let Some(result) = on_a_small_disk("make", 100) else { return };
    assert!(result["error"]["message"].as_str().unwrap().contains("No space left"), "{result:#}");
    assert!(!result["files_modified"].as_array().unwrap().is_empty());
}

#[test]
fn filling_disk_ends_a_write_and_lists_its_changes() {
    let Some(result) = on_a_small_disk("write", 2) else { return };
    // The guest's standard library reports every failed stream as an I/O error.
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("had no room for a write: it is full"), "{message}");
    assert_eq!(
        (&result["files_modified"], &result["usage"]["bytes_written"]),
        (&json!(["written"]), &json!(1 << 20))
    );
}
