//! `palisade demo escape`, as a user runs it.

use crate::interrupt::interrupt;
use crate::program;
use palisade_tests::World;
use palisade_tests::program::finish;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn demo_holds_and_names_the_barrier_of_each_attempt() {
    let world = World::new();
    let shown = program(&world, &["demo", "escape", "--json"]).run().exits_with(0).json();
    let attempts = shown["attempts"].as_array().unwrap();
    assert!(attempts.len() >= 20 && shown["held"] == true, "{shown:#}");
    assert!(
        attempts.iter().all(|attempt| attempt["held"] == true && attempt["saw"] != ""),
        "{shown:#}"
    );
}

#[test]
fn demo_prints_a_table_and_a_conclusion() {
    let world = World::new();
    let ran = program(&world, &["demo", "escape"]).run().exits_with(0);
    assert!(ran.stdout.contains("held  read /etc/passwd"), "{}", ran.stdout);
    assert!(ran.stdout.contains("attempts held in"), "{}", ran.stdout);
    assert_eq!(
        ran.stdout.matches('\u{1b}').count(),
        0,
        "the plugin's text is escaped on a terminal"
    );
}

/// Starts the demo, interrupts it once `sign` exists in its temporary directory, and checks its
/// exit.
#[track_caller]
fn interrupted_at(sign: &str, cache: impl FnOnce(&World) -> PathBuf) {
    let world = World::new();
    let temporary = world.home().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let here = || {
        std::fs::read_dir(&temporary)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .collect::<Vec<_>>()
    };
    let demo = program(&world, &["demo", "escape"]).env("TMPDIR", temporary.as_os_str());
    let child = demo.env("PALISADE_CACHE", cache(&world)).stdout(Stdio::piped()).start();
    let start = Instant::now();
    while !here().iter().any(|stage| stage.join(sign).symlink_metadata().is_ok()) {
        assert!(start.elapsed() < Duration::from_secs(60), "`{sign}` never comes: {:?}", here());
        std::thread::yield_now();
    }
    interrupt(&child);
    let ran = finish(child).exits_with(130);
    assert_eq!(ran.stdout, "", "there is no conclusion");
    assert_eq!(here(), Vec::<PathBuf>::new());
}

#[test]
fn demo_interrupted_during_preparation_leaves_no_directory() {
    // The plugins are not compiled yet, so the preparation takes a while.
    interrupted_at("workspace/readme.txt", |world| world.outer().join("cache"));
}

#[test]
fn demo_interrupted_halfway_leaves_no_directory() {
    // The attempt that fills the disk writes this file.
    interrupted_at("workspace/notes/huge", |_| palisade_tests::guest::cache());
}
