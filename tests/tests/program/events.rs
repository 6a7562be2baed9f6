//! `--events FILE`: one JSON object a line, and no call waits for the reader.

use crate::{program, with_guest};
use palisade_tests::World;
use palisade_tests::guest::{CONTRACT_END, HOSTILE_ABUSE, LIMITS_OUTPUT};
use palisade_tests::mcp::Client;
use palisade_tests::program::finish;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn file(world: &World) -> PathBuf {
    world.home().join("events.jsonl")
}

fn lines(file: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("the events are there");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn call_writes_its_events_and_those_of_plugins() {
    let world = World::new();
    world.file("f", "text");
    // `call` loads only the plugin that it needs, unless others are cached: fill the cache.
    let _ = program(&world, &["list"]).run().exits_with(0);
    let events = file(&world);
    let words = ["call", "read_file", r#"{"path": "f"}"#, "--events", events.to_str().unwrap()];
    let ran = program(&world, &words).run().exits_with(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("text", ""));
    let mut lines = lines(&events);
    // Plugins load concurrently, so their lines may be slightly out of order.
    lines.sort_by_key(|line| line["seq"].as_u64());
    let names: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(
        names,
        ["plugin.loaded", "plugin.loaded", "plugin.loaded", "tool.called", "tool.completed"]
    );
    assert_eq!(
        lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
}

#[test]
fn denied_call_ends_with_tool_failed() {
    let world = World::new();
    let events = file(&world);
    let input = r#"{"path": "made.txt", "content": "x"}"#;
    let words = ["call", "write_file", input, "--events", events.to_str().unwrap()];
    let _ = program(&world, &words).run().exits_with(4);
    let last = lines(&events).pop().unwrap();
    assert_eq!(
        (&last["event"], &last["error_class"]),
        (&"tool.failed".into(), &"permission_denied".into())
    );
    assert_eq!(last["side_effects"], "write");
}

#[test]
fn unopenable_event_file_stops_the_program_first() {
    let world = World::new();
    let input = r#"{"path": "made.txt", "content": "x"}"#;
    for destination in ["missing/folder/e.jsonl", "."] {
        let words = ["call", "write_file", input, "--allow", "write", "--events", destination];
        program(&world, &words).run().exits_with(2).stderr_contains(&["events", destination]);
    }
    assert_eq!(world.read("made.txt"), None);
}

#[test]
fn unread_pipe_is_refused_at_once() {
    let world = World::new();
    let pipe = world.home().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let words = ["call", "calculate", r#"{"expression": "1"}"#, "--events", pipe.to_str().unwrap()];
    program(&world, &words).run().exits_with(2).stderr_contains(&["events", "pipe"]);
}

#[test]
fn events_waiting_for_a_pipe_use_little_memory() {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
    let world = World::new();
    let pipe = world.home().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _reader = open(&pipe, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    let options = ["--events", pipe.to_str().unwrap()];
    let mut client = Client::start_with(with_guest(&world, HOSTILE_ABUSE, &[]), &options)
        .shake_hands(&json!({}));
    let mut emit = || {
        let call = json!({"name": "abuse", "arguments": {"how": "emit", "amount": 1 << 20}});
        assert_eq!(client.request("tools/call", &call)["result"]["content"][0]["text"], "emitted");
        client.pending.clear();
        client.memory_kib("VmHWM:")
    };
    let before = emit();
    let grown = (0..100).map(|_| emit()).last().unwrap().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB");
}

#[test]
fn unread_standard_error_holds_up_no_call() {
    let world = World::new();
    let words = ["call", "--verbose", "log", r#"{"bytes": 1048576}"#];
    // Its standard error is a pipe that is read only at the end.
    let mut child = with_guest(&world, LIMITS_OUTPUT, &words).start();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("its state is known").is_none() {
        assert!(Instant::now() < deadline, "the call waits for its reader");
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = finish(child).exits_with(0);
}

#[test]
fn unwritable_events_do_not_affect_the_result() {
    let words = ["call", "calculate", r#"{"expression": "6 * 7"}"#, "--events", "/dev/full"];
    let ran = program(&World::new(), &words).run().exits_with(0);
    assert_eq!(ran.stdout, "42");
    ran.stderr_contains(&["events:", "could not be written"]);
}

#[test]
fn link_in_the_workspace_is_refused_for_events() {
    let world = World::new();
    world.link("events.jsonl", "@/outside/secret.txt");
    let before = world.outside();
    let words = ["call", "calculate", r#"{"expression": "1"}"#, "--events", "events.jsonl"];
    program(&world, &words)
        .directory(world.root())
        .run()
        .exits_with(2)
        .stderr_contains(&["symbolic link"]);
    assert_eq!(world.outside(), before);
}

#[test]
fn linked_parent_in_the_workspace_is_refused_for_events() {
    let world = World::new();
    world.folder("logs").link("out", "@/outside").link("logs/out", "@/outside").link("in", "logs");
    let before = world.outside();
    let root = world.root().to_str().unwrap().to_owned();
    let refused = [
        "out/secret.txt",
        "logs/out/secret.txt",
        "in/e.jsonl",
        "logs/../out/secret.txt",
        "out/../e.jsonl",
    ];
    for path in refused.iter().map(ToString::to_string).chain([format!("{root}/out/secret.txt")]) {
        let words = ["call", "calculate", r#"{"expression": "1"}"#, "--events", &path];
        program(&world, &words)
            .directory(world.root())
            .run()
            .exits_with(2)
            .stderr_contains(&["symbolic link in the workspace"]);
    }
    assert_eq!(world.outside(), before);
    assert_eq!(world.read("logs/e.jsonl"), None);
    // Symlinks outside belong to the user and are followed; `..` after a real directory is
    // harmless.
    std::os::unix::fs::symlink(world.root().join("logs"), world.home().join("mine")).unwrap();
    let mine = world.home().join("mine/e.jsonl");
    for path in [mine.to_str().unwrap(), "logs/../f.jsonl"] {
        let words = ["call", "calculate", r#"{"expression": "1"}"#, "--events", path];
        let _ = program(&world, &words).directory(world.root()).run().exits_with(0);
    }
    assert!(world.read("logs/e.jsonl").is_some() && world.read("f.jsonl").is_some());
}

#[test]
fn link_chain_through_the_workspace_is_refused_for_events() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.folder("logs").link("logs/last", "@/outside/secret.txt").link("folder", "@/outside");
    let before = world.outside();
    let at = |name: &str| world.home().join(name);
    symlink(world.root().join("logs/last"), at("file")).unwrap();
    symlink(world.root().join("folder"), at("way")).unwrap();
    symlink("way/secret.txt", at("again")).unwrap();
    for path in [at("file"), at("way/secret.txt"), at("again")] {
        let words =
            ["call", "calculate", r#"{"expression": "1"}"#, "--events", path.to_str().unwrap()];
        program(&world, &words)
            .run()
            .exits_with(2)
            .stderr_contains(&["symbolic link in the workspace"]);
    }
    assert_eq!(world.outside(), before);
    // The user's own chain of symlinks, and a system symlink to an open file.
    symlink("second", at("first")).unwrap();
    symlink("own.jsonl", at("second")).unwrap();
    for path in [at("first").to_str().unwrap(), "/dev/stderr"] {
        let words = ["call", "calculate", r#"{"expression": "1"}"#, "--events", path];
        let ran = program(&world, &words).run().exits_with(0);
        assert_eq!(ran.stderr.contains("tool_use_id"), path == "/dev/stderr", "{ran:?}");
    }
    assert!(std::fs::read_to_string(at("own.jsonl")).unwrap().contains("tool_use_id"));
}

#[test]
fn missing_workspace_keeps_the_event_file() {
    let world = World::new();
    let keep = world.home().join("keep.jsonl");
    std::fs::write(&keep, "precious").unwrap();
    std::fs::remove_dir(world.root()).unwrap();
    let words = ["call", "calculate", r#"{"expression": "1"}"#, "--events", keep.to_str().unwrap()];
    let ran = program(&world, &words).run();
    assert_eq!(
        (ran.code, std::fs::read_to_string(&keep).unwrap().as_str()),
        (2, "precious"),
        "{ran:?}"
    );
}

#[test]
fn failed_start_keeps_the_previous_events() {
    let world = World::new();
    let events = file(&world);
    let former = json!({
        "v": 1, "seq": 0, "time": "2026-01-01T00:00:00Z", "event": "tool.called",
        "of": "the former record",
    });
    let former = format!("{former}\n");
    std::fs::write(&events, &former).unwrap();
    let words =
        ["call", "calculate", r#"{"expression": "1"}"#, "--events", events.to_str().unwrap()];
    program(&world, &words)
        .args(["--plugins", "/nowhere"])
        .run()
        .exits_with(2)
        .stderr_contains(&["/nowhere"]);
    assert_eq!(std::fs::read_to_string(&events).unwrap(), former);
    let _ = program(&world, &words).run().exits_with(0);
    let lines = lines(&events);
    assert!(lines.iter().any(|line| line["event"] == "tool.completed"));
    assert_eq!(lines[0]["of"], "the former record", "a run appends");
}

#[test]
fn events_of_each_run_are_appended() {
    let world = World::new();
    let events = file(&world);
    let run = || {
        let words =
            ["call", "calculate", r#"{"expression": "1"}"#, "--events", events.to_str().unwrap()];
        let _ = program(&world, &words).run().exits_with(0);
        std::fs::read_to_string(&events).unwrap()
    };
    let first = run();
    // A run that was killed leaves a line without its end.
    let torn = first.trim_end();
    std::fs::write(&events, torn).unwrap();
    let both = run();
    assert!(both.starts_with(&first) && both.len() > first.len(), "{both}");
    let ends = lines(&events).iter().filter(|line| line["event"] == "tool.completed").count();
    assert_eq!(ends, 2);
}

#[test]
fn printed_lines_of_a_tool_are_log_events() {
    let world = World::new();
    let events = file(&world);
    let words = ["call", "end", r#"{"how": "return"}"#, "--events", events.to_str().unwrap()];
    let ran = with_guest(&world, CONTRACT_END, &words).run().exits_with(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("returned", ""));
    let lines = lines(&events);
    let log = lines.iter().find(|line| line["event"] == "tool.log").unwrap();
    assert_eq!(
        (&log["level"], &log["message"]),
        (&"info".into(), &"stdout: on standard output".into())
    );
}

#[test]
fn file_without_events_is_refused_and_kept() {
    let world = World::new();
    let file = file(&world);
    for former in
        ["precious", "\n", "{\"v\": 1}\n", "[\"event\"]\n", "text\n{\"event\": \"tool.called\"}\n"]
    {
        std::fs::write(&file, former).unwrap();
        let words =
            ["call", "calculate", r#"{"expression": "1"}"#, "--events", file.to_str().unwrap()];
        let refused = ["events.jsonl", "something other than events", "is kept", "give a new file"];
        program(&world, &words).run().exits_with(2).stderr_contains(&refused);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), former);
        let ran = program(&world, &words).run().exits_with(2);
        assert!(!ran.stderr.contains("remove"), "the user is told to remove the file: {ran:?}");
    }
    std::fs::write(&file, "").unwrap();
    let words = ["call", "calculate", r#"{"expression": "1"}"#, "--events", file.to_str().unwrap()];
    let _ = program(&world, &words).run().exits_with(0);
    assert!(!lines(&file).is_empty());
}
