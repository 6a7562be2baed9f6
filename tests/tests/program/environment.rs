//! The effect of each environment variable.

use crate::{program, with_guest};
use palisade_tests::program::{Ran, executable, finish};
use palisade_tests::{World, guest};
use std::process::{Command, Stdio};

/// Runs the program without flags.
fn bare(world: &World, words: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(executable());
    command.env_clear().env("HOME", world.home()).env("PALISADE_CACHE", guest::cache());
    command.envs(variables.iter().copied()).current_dir(world.outer()).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().expect("the program can be started"))
}

#[test]
fn workspace_is_the_variable_or_the_current_directory() {
    let world = World::new();
    world.file("here", "1");
    let root = world.root().to_string_lossy().into_owned();
    assert_eq!(
        bare(&world, &["call", "list_dir"], &[("PALISADE_WORKSPACE", &root)]).stdout,
        "here (1 byte)\n"
    );
    let here = bare(&world, &["call", "list_dir"], &[]).exits_with(0);
    assert!(here.stdout.contains("workspace/\n"), "{here:?}");
    let flag = bare(
        &world,
        &["call", "list_dir", "--workspace", &root],
        &[("PALISADE_WORKSPACE", "/nowhere")],
    );
    assert_eq!(flag.exits_with(0).stdout, "here (1 byte)\n");
    bare(&world, &["list"], &[("PALISADE_WORKSPACE", "/nowhere")])
        .exits_with(2)
        .stderr_contains(&["/nowhere"]);
}

#[test]
fn plugins_variable_is_a_path_list_behind_the_flag() {
    let world = World::new();
    let [one, two] = [guest::CANCEL_SLEEP, guest::LOADER_GOOD]
        .map(|guest| guest.directory().to_string_lossy().into_owned());
    let three = guest::CANCEL_COMPUTE.directory();
    let named = format!("{one}::{two}");
    let approve = program(&world, &["approve", "--all", "--yes"]).env("PALISADE_PLUGINS", &named);
    let _ = approve.run().exits_with(0);
    let ran = program(&world, &["list", "--json", "--no-builtin", "--plugins"])
        .args([three])
        .env("PALISADE_PLUGINS", named)
        .run();
    let listed = ran.exits_with(0).json();
    let mut plugins: Vec<&str> = listed["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tool| tool["plugin"].as_str())
        .collect();
    plugins.dedup();
    assert_eq!(plugins, ["cancel_compute", "cancel_sleep", "loader_good"]);
    program(&world, &["list"])
        .env("PALISADE_PLUGINS", "/nowhere")
        .run()
        .exits_with(2)
        .stderr_contains(&["/nowhere"]);
}

#[test]
fn config_variable_selects_the_file() {
    let world = World::new();
    let file = world.outer().join("mine.toml");
    std::fs::write(&file, "[confirm]\nread = \"deny\"").expect("a file can be written");
    let ran =
        program(&world, &["call", "list_dir"]).env("PALISADE_CONFIG", &file).run().exits_with(4);
    ran.stderr_contains(&["permission_denied"]);
}

#[test]
fn memory_and_timeout_apply_and_flags_override() {
    let world = World::new();
    let sleep = |words: &[&str]| {
        with_guest(&world, guest::CANCEL_SLEEP, words).env("PALISADE_TIMEOUT", "60ms")
    };
    sleep(&["call", "sleep"]).run().exits_with(7).stderr_contains(&["60ms"]);
    sleep(&["call", "sleep", "--timeout", "90ms"]).run().exits_with(7).stderr_contains(&["90ms"]);
    let take = with_guest(&world, guest::LIMITS_MEMORY, &["call", "take", r#"{"mib": 20}"#]);
    let ran = take.env("PALISADE_MEMORY", "16MiB").run().exits_with(7);
    ran.stderr_contains(&["resource_exhausted:", "memory"]);
    for (name, value, said) in [
        ("PALISADE_MEMORY", "much", "128MiB"),
        ("PALISADE_MEMORY", "0", "1MiB"),
        ("PALISADE_TIMEOUT", "2h", "600s"),
        ("PALISADE_TIMEOUT", "soon", "30s"),
    ] {
        program(&world, &["list"])
            .env(name, value)
            .run()
            .exits_with(2)
            .stderr_contains(&[name, said]);
    }
}

#[test]
fn cache_variable_sets_a_directory_or_off() {
    let world = World::new();
    let cache = world.outer().join("cache");
    let words = ["call", "greet_or_not"];
    let ran = with_guest(&world, guest::CANCEL_SLEEP, &words).env("PALISADE_CACHE", &cache).run();
    let _ = ran.exits_with(3);
    let kept = std::fs::read_dir(&cache).expect("the cache is there").count();
    assert!(kept > 0, "compiled code is kept");
    let world = World::new();
    let off = with_guest(&world, guest::CANCEL_SLEEP, &["list"])
        .env("PALISADE_CACHE", "off")
        .run()
        .exits_with(0);
    assert_eq!(off.stderr, "");
    let kept = std::fs::read_dir(world.home()).expect("the home is there").flatten();
    let kept: Vec<_> = kept.map(|entry| entry.file_name()).collect();
    assert_eq!(kept, [".local"], "only the plugin directory is recorded");
}

#[test]
fn log_level_applies_to_stderr_only() {
    let world = World::new();
    let words = ["call", "report", r#"{"fail": true}"#];
    let lines = |level: &str| {
        let ran = with_guest(&world, guest::CONTRACT_OUTCOME, &words)
            .env("PALISADE_LOG", level)
            .run()
            .exits_with(5);
        assert!(ran.stdout.is_empty() && !ran.stderr.contains('\u{1b}'), "{ran:?}");
        ran.stderr.lines().count()
    };
    assert!(lines("debug") > lines("error"), "the debug level logs more");
    assert_eq!(lines("error"), 1, "the error itself is no line of the log");
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn program_started_by_the_loader_serves() {
    let world = World::new();
    let loaded = program(&world, &[])
        .through("/lib64/ld-linux-x86-64.so.2", [""; 0])
        .args(["--no-builtin", "serve"]);
    let ran =
        loaded.stdin("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").run().exits_with(0);
    assert!(ran.stdout.contains("\"result\":{}"), "{ran:?}");
}
