//! FIFOs, sockets and devices: opening one is refused at once and never blocks.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use palisade::SideEffects;
use palisade_tests::guest::{CONTAINMENT_FILES, CONTAINMENT_RAW};
use palisade_tests::{Case, Observed, World, skip};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::json;

fn pipe(world: &World) {
    mknodat(CWD, world.root().join("special"), FileType::Fifo, Mode::from_raw_mode(0o666), 0)
        .unwrap();
}

fn socket(world: &World) {
    // The entry outlives the listener. `sun_path` holds at most 108 bytes, so the test's path has
    // to be short.
    drop(UnixListener::bind(world.root().join("special")).unwrap());
}

/// Returns whether the test may create a device node: `/dev/zero` under another name.
fn can_make_devices() -> bool {
    let made = mknodat(
        CWD,
        World::new().root().join("probe"),
        FileType::CharacterDevice,
        Mode::RUSR,
        makedev(1, 5),
    );
    if made.is_err() {
        skip("only root makes devices");
    }
    made.is_ok()
}

fn device(world: &World) {
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, world.root().join("special"), FileType::CharacterDevice, mode, makedev(1, 5))
        .unwrap();
}

fn attempt(arrange: fn(&World), tool: &str, op: &str) -> Observed {
    let case = Case::new(CONTAINMENT_FILES, tool)
        .input(json!({"op": op, "path": "special", "to": "moved"}));
    case.allow(SideEffects::Write).timeout(Duration::from_secs(60)).arrange(arrange).check()
}

#[track_caller]
fn cannot_be_opened(arrange: fn(&World)) {
    for (tool, op) in [
        ("in_read", "read"),
        ("in_write", "read"),
        ("in_write", "write"),
        ("in_write", "append"),
        ("in_write", "truncate"),
    ] {
        let seen = attempt(arrange, tool, op);
        assert_eq!(seen.error("permission_denied")["detail"]["reason"], "sandbox", "{tool} {op}");
        seen.changed_nothing();
    }
    let attempts: Vec<_> = ["open", "open-write", "open-directory", "truncate"]
        .map(|op| json!({"op": op, "path": "special"}))
        .into();
    let case = Case::new(CONTAINMENT_RAW, "raw_write").input(json!({"attempts": attempts}));
    let seen = case.allow(SideEffects::Write).arrange(arrange).check();
    let answers: Vec<String> = serde_json::from_str(seen.output()).unwrap();
    super::all_refused(&attempts, &answers);
}

#[test]
fn pipe_is_refused_at_once() {
    cannot_be_opened(pipe);
}

#[test]
fn socket_is_refused_at_once() {
    cannot_be_opened(socket);
}

#[test]
fn device_is_refused_at_once() {
    if can_make_devices() {
        cannot_be_opened(device);
    }
}

#[test]
fn link_to_a_device_leads_outside() {
    let seen =
        attempt(|world| drop(world.link("special", "/dev/zero").inside()), "in_read", "read");
    assert_eq!(seen.error("permission_denied")["detail"]["reason"], "sandbox");
}

#[test]
fn pipe_is_listed_and_removed_like_any_entry() {
    assert_eq!(attempt(pipe, "in_read", "stat").output(), "special");
    let seen = attempt(pipe, "in_write", "unlink");
    assert_eq!(seen.output(), "done");
    assert!(seen.worlds().all(|world| world.inside().is_empty()));
}
