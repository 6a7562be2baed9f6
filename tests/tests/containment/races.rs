//! What changes while a call runs, or between two calls, opens no way out.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use palisade::{Call, Host, ToolResult};
use palisade_tests::case::block_on;
use palisade_tests::guest::CONTAINMENT_FILES;
use palisade_tests::world::SECRET;
use palisade_tests::{Case, World};
use serde_json::json;

fn host(world: &World) -> Host {
    Case::new(CONTAINMENT_FILES, "in_read").builder(world).build().unwrap()
}

fn read(host: &Host, path: &str) -> ToolResult {
    let call = Call::new("in_read", json!({"op": "read", "path": path}));
    block_on(host.dispatch(host.session(), call))
}

#[test]
fn a_workspace_whose_path_is_swapped_for_another_stays_the_one_that_was_opened() {
    let world = World::new();
    world.file("secret.txt", "the workspace's own");
    let host = host(&world);
    fs::rename(world.root(), world.outer().join("elsewhere")).unwrap();
    symlink(world.outer().join("outside"), world.root()).unwrap();
    assert_eq!(read(&host, "secret.txt").output().as_deref(), Some("the workspace's own"));
}

#[test]
fn a_workspace_that_is_removed_fails_its_calls_and_nothing_else() {
    let world = World::new();
    world.file("file.txt", "inside");
    let host = host(&world);
    fs::remove_dir_all(world.root()).unwrap();
    let result = read(&host, "file.txt");
    assert_eq!(result.error().map(|error| error.class().as_str()), Some("execution_error"), "{result}");
}

/// Swaps an entry of the workspace to and fro while tools read through it; gives back what they got.
fn read_while_swapping(world: &World, path: &str, swap: impl Fn(usize) + Sync) -> Vec<ToolResult> {
    let (host, done) = (host(world), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0.. {
                if done.load(Ordering::SeqCst) {
                    break;
                }
                swap(turn);
            }
        });
        let results = (0..2000).map(|_| read(&host, path)).collect();
        done.store(true, Ordering::SeqCst);
        results
    })
}

#[track_caller]
fn nothing_got_out(results: &[ToolResult]) {
    for result in results {
        assert!(!result.to_json().to_string().contains(SECRET), "{result}");
    }
    assert!(results.iter().any(ToolResult::is_success), "at times the path led inside");
}

#[test]
fn a_file_that_turns_into_a_link_that_leads_out_and_back_is_never_read_outside() {
    let world = World::new();
    world.file("inside.txt", "inside").link("a", "inside.txt").link("b", "../secret.txt");
    let root = world.root();
    let results = read_while_swapping(&world, "turning", |turn| {
        // A rename onto the name is how an attacker would do it: the name is always there.
        let _ = fs::remove_file(root.join("next"));
        let _ = symlink(if turn % 2 == 0 { "inside.txt" } else { "../secret.txt" }, root.join("next"));
        let _ = fs::rename(root.join("next"), root.join("turning"));
    });
    nothing_got_out(&results);
}

#[test]
fn a_directory_in_the_middle_that_turns_into_a_link_is_never_passed() {
    let world = World::new();
    world.file("real/secret.txt", "inside");
    let root = world.root();
    let results = read_while_swapping(&world, "turning/secret.txt", |turn| {
        let _ = fs::remove_file(root.join("next"));
        let _ = symlink(if turn % 2 == 0 { "real" } else { "../outside" }, root.join("next"));
        let _ = fs::rename(root.join("next"), root.join("turning"));
    });
    nothing_got_out(&results);
}
