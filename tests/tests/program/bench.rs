//! `bench`: consistent figures for the cost of calls, without prompts or failed calls.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::interrupt::interrupt;
use crate::{program, with_guest};
use palisade_tests::bomb::seconds_to_compile;
use palisade_tests::program::finish;
use palisade_tests::{World, guest};
use serde_json::{Value, json};

const ECHO: &str = r#"{"text": "hello"}"#;

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Checks a series of `calls` calls, whose percentiles have to be in order.
#[track_caller]
fn check_series(series: &Value, callers: u64, calls: u64) {
    assert_eq!(
        (&series["callers"], &series["calls"]),
        (&json!(callers), &json!(calls)),
        "{series:#}"
    );
    let shares = ["p50_us", "p90_us", "p99_us", "p99_9_us"]
        .map(|share| series[share].as_f64().expect("a number"));
    assert!(shares[0] > 0.0 && shares.is_sorted(), "{series:#}");
    assert!(series["per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{series:#}");
}

#[test]
fn benchmark_json_has_exactly_the_documented_keys() {
    let world = World::new();
    let words = ["bench", "echo", ECHO, "--calls", "30", "--callers", "3", "--json"];
    let told = with_guest(&world, guest::BENCH_CALLS, &words).run().exits_with(0).json();
    let wanted = [
        "loading",
        "machine",
        "many_callers",
        "one_caller",
        "peak_memory_bytes",
        "spawned_process",
        "times_faster_than_process",
        "tool",
        "warm_up",
    ];
    assert_eq!(keys(&told), wanted);
    assert_eq!(
        keys(&told["machine"]),
        ["architecture", "build", "cores", "memory", "palisade", "system"]
    );
    assert_eq!(keys(&told["loading"]), ["bytes", "cached_ms", "compiled_ms", "plugin"]);
    assert_eq!((&told["tool"], &told["warm_up"]), (&json!("echo"), &json!(3)));
    check_series(&told["one_caller"], 1, 30);
    check_series(&told["many_callers"], 3, 30);
    assert!(told["peak_memory_bytes"].as_u64().is_some_and(|bytes| bytes >= 65_536), "{told:#}");
}

#[test]
fn compiling_takes_longer_than_the_cache() {
    let world = World::new();
    let words = ["bench", "echo", ECHO, "--calls", "1", "--json"];
    let told = with_guest(&world, guest::BENCH_CALLS, &words).run().exits_with(0).json();
    let [compiled, cached] =
        ["compiled_ms", "cached_ms"].map(|key| told["loading"][key].as_f64().expect("a number"));
    assert!(compiled > cached && cached > 0.0, "{told:#}");
    assert_eq!(told["loading"]["plugin"], guest::BENCH_CALLS.name());
}

#[test]
fn table_has_shares_a_comparison_and_the_machine() {
    let world = World::new();
    let words = ["bench", "echo", ECHO, "--calls", "10", "--callers", "2"];
    let told = with_guest(&world, guest::BENCH_CALLS, &words).run().exits_with(0);
    assert_eq!(told.stderr, "");
    for part in [
        "p99.9",
        "calls/s",
        "one caller",
        "2 callers at once",
        "memory",
        "from the cache",
        "ran on",
        "core",
    ] {
        assert!(told.stdout.contains(part), "{part}: {told:?}");
    }
}

#[test]
fn prompting_tool_is_measured_only_if_its_class_is_allowed() {
    let world = World::new();
    let words = ["bench", "write_file", r#"{"path": "made.txt", "content": "x"}"#, "--calls", "2"];
    let refused = program(&world, &words).run().exits_with(4);
    refused.stderr_contains(&["`write_file` asks before it runs", "`--allow write`"]);
    assert!(refused.stdout.is_empty() && !world.root().join("made.txt").exists());
    let allowed =
        program(&world, &words).args(["--allow", "write", "--json"]).run().exits_with(0).json();
    assert_eq!(allowed["loading"]["plugin"], "files", "a shipped plugin is loaded like any other");
    assert!(world.root().join("made.txt").exists());
}

#[test]
fn failing_call_ends_the_benchmark_with_its_error() {
    let world = World::new();
    let bench =
        |words: &[&str]| with_guest(&world, guest::BENCH_CALLS, &["bench"]).args(words).run();
    for (words, code, said) in [
        (&["read", r#"{"path": "nowhere.txt"}"#][..], 5, "execution_error:"),
        (&["echo", r#"{"text": 1}"#], 6, "validation_error:"),
        (&["ecko", ECHO], 3, "did you mean `echo`"),
    ] {
        let failed = bench(words).exits_with(code);
        failed.stderr_contains(&[said]);
        assert_eq!(failed.stdout, "", "no figures for failed calls");
    }
}

#[test]
fn invalid_counts_are_refused() {
    let world = World::new();
    for (option, number) in
        [("--calls", "0"), ("--calls", "1000001"), ("--callers", "0"), ("--callers", "257")]
    {
        let words = ["bench", "echo", ECHO, option, number];
        with_guest(&world, guest::BENCH_CALLS, &words)
            .run()
            .exits_with(2)
            .stderr_contains(&[option, number]);
    }
}

/// Starts a benchmark and waits until it loads its plugin again, which takes a second. Returns the
/// process and its temporary directory.
fn loading_again(world: &World) -> (Child, PathBuf) {
    std::fs::write(world.plugins().join("slow.wasm"), seconds_to_compile("slow")).unwrap();
    let scratch = world.outer().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let words = ["bench", "slow", "--calls", "1", "--no-builtin", "--plugins"];
    let program = program(world, &words).args([world.plugins()]).env("TMPDIR", &scratch);
    // The most permissive umask: the program has to restrict access itself.
    let child = program.through("sh", ["-c", "umask 0; exec \"$@\"", "sh"]).start();
    let begun = Instant::now();
    while !made_in(&scratch).is_some_and(|made| made.join("cache").exists()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never loads the plugin again");
        std::thread::yield_now();
    }
    (child, scratch)
}

fn made_in(scratch: &Path) -> Option<PathBuf> {
    std::fs::read_dir(scratch).unwrap().flatten().next().map(|made| made.path())
}

#[test]
fn interrupted_benchmark_leaves_no_accessible_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let (child, scratch) = loading_again(&world);
    let mode = std::fs::metadata(made_in(&scratch).unwrap()).unwrap().permissions().mode();
    interrupt(&child);
    finish(child).exits_with(130).stderr_contains(&["interrupted"]);
    assert_eq!(mode & 0o777, 0o700, "{mode:o}");
    assert_eq!(made_in(&scratch), None, "files remain");
}
