//! Ctrl-C ends a call at once, regardless of the guest, and the caller still gets its result.

use crate::with_guest;
use palisade_tests::program::finish;
use palisade_tests::{Guest, World, guest, skip, uniform};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read as _;
use std::process::{Child, Stdio};

#[test]
fn computing_guest_is_interrupted() {
    interrupted(guest::CANCEL_COMPUTE, "compute");
}

#[test]
fn sleeping_guest_is_interrupted() {
    interrupted(guest::CANCEL_SLEEP, "sleep");
}

#[test]
fn polling_guest_that_continues_is_interrupted() {
    interrupted(guest::CANCEL_POLL, "ignore");
}

#[test]
fn polling_guest_may_clean_up() {
    let world = World::new();
    let words = ["call", "tidy", "--allow", "write", "--verbose", "--json"];
    let mut child = with_guest(&world, guest::CANCEL_POLL, &words).stdout(Stdio::piped()).start();
    has_started(&mut child);
    interrupt(&child);
    let result = finish(child).exits_with(130).json();
    assert_eq!(result["error"]["class"], "cancelled");
    assert_eq!(world.read("tidied.txt").as_deref(), Some("yes"));
}

#[test]
fn error_class_is_on_stderr_without_json() {
    let world = World::new();
    let mut child = with_guest(&world, guest::CANCEL_SLEEP, &["call", "sleep", "--verbose"])
        .stdout(Stdio::piped())
        .start();
    has_started(&mut child);
    interrupt(&child);
    let ran = finish(child).exits_with(130);
    ran.stderr_contains(&["cancelled: "]);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("started\n"), "{ran:?}");
}

#[track_caller]
fn interrupted(guest: Guest, tool: &str) {
    let world = World::new();
    let mut child = with_guest(&world, guest, &["call", tool, "--verbose", "--json"])
        .stdout(Stdio::piped())
        .start();
    has_started(&mut child);
    interrupt(&child);
    let result = finish(child).exits_with(130).json();
    uniform::check_shape(&result);
    assert_eq!(result["error"]["class"], "cancelled");
}

/// Waits until the guest reports on standard error that it has started.
#[track_caller]
fn has_started(child: &mut Child) {
    let stderr = child.stderr.as_mut().expect("standard error is a pipe");
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(b"started") {
        assert_eq!(
            stderr.read(&mut byte).ok(),
            Some(1),
            "it never starts: {}",
            String::from_utf8_lossy(&seen)
        );
        seen.extend(byte);
    }
}

#[track_caller]
pub(crate) fn interrupt(child: &Child) {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it has an id");
    kill_process(process, Signal::INT).expect("it can be interrupted");
}

/// SIGTERM and SIGHUP end the command's processes and complete the event file.
#[test]
fn sigterm_and_sighup_end_a_command_cleanly() {
    for signal in [Signal::TERM, Signal::HUP] {
        if signal == Signal::HUP && is_ignored_here(1) {
            skip(
                "SIGHUP, because the parent process ignores it, as `nohup` does, and programs inherit that",
            );
            continue;
        }
        let world = World::new();
        let events = world.home().join("events.jsonl");
        let input = serde_json::json!({"command": "echo $$ > pid; mv pid begun; exec sleep 1000"})
            .to_string();
        let words = [
            "call",
            "shell",
            &input,
            "--allow",
            "execute",
            "--json",
            "--events",
            events.to_str().unwrap(),
        ];
        let child = crate::program(&world, &words).stdout(Stdio::piped()).start();
        let command = world.wait_for("begun").trim().parse().ok().and_then(Pid::from_raw).unwrap();
        kill_process(Pid::from_child(&child), signal).expect("it can be terminated");
        let result = finish(child).exits_with(130).json();
        assert_eq!(result["error"]["class"], "cancelled", "{signal:?}");
        assert!(rustix::process::test_kill_process(command).is_err(), "the command has ended");
        let text = std::fs::read_to_string(&events).unwrap();
        assert!(text.lines().last().is_some_and(|line| line.contains("\"tool.failed\"")), "{text}");
    }
}

/// Returns true if this process, and hence its children, ignores a signal.
fn is_ignored_here(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}
