//! After a cancelled or timed-out call, no file changes any more once its terminal event is out.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use palisade::{Call, CancellationToken, Host, SideEffects, ToolResult, events::Event};
use palisade_tests::case::block_on;
use palisade_tests::guest::CONTAINMENT_FILES;
use palisade_tests::{Case, Recorder, World};
use serde_json::json;

/// The number of calls that are stopped, each at a different moment of its write loop.
const ROUNDS: usize = 200;

/// The size and the modification time of a file.
type Look = Option<(u64, i64, i64)>;

fn look(path: &Path) -> Look {
    path.metadata().ok().map(|meta| (meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// Repeatedly stops a tool that writes without end, and compares its file at the terminal event
/// with the file long after.
fn stopped(stop: impl Fn(Call, PathBuf) -> Call, class: &str) {
    let (world, at_end) = (World::new(), Arc::new(Mutex::new(Vec::new())));
    let (root, looks) = (world.root(), at_end.clone());
    let recorder = Recorder::reacting(move |event: &Event| {
        if event.is_terminal() {
            let mut looks = looks.lock().unwrap();
            let path = root.join(format!("f{}", looks.len()));
            looks.push((look(&path), path));
        }
    });
    let case = Case::new(CONTAINMENT_FILES, "in_write").allow(SideEffects::Write);
    let host = case.builder(&world).subscriber(Arc::new(recorder)).build().unwrap();
    for round in 0..ROUNDS {
        let name = format!("f{round}");
        let call = Call::new("in_write", json!({"op": "scribble", "path": name}));
        let result = block_on(host.dispatch(host.session(), stop(call, world.root().join(&name))));
        assert_eq!(result.error().map(|error| error.class().as_str()), Some(class), "{result}");
        let written = look(&world.root().join(&name)).is_some();
        assert_eq!(result.files_modified(), if written { vec![name] } else { Vec::new() });
    }
    drop(host);
    let at_end = at_end.lock().unwrap();
    assert_eq!(at_end.len(), ROUNDS);
    for (then, path) in at_end.iter() {
        assert_eq!(look(path), *then, "{} has changed after the end of its call", path.display());
    }
    let busy = at_end.iter().filter(|(then, _)| then.is_some_and(|(size, ..)| size > 0)).count();
    assert!(busy > ROUNDS / 2, "only {busy} calls were writing");
}

/// Cancels the call from another thread when the file has grown to `size` bytes.
fn cancel_at(call: Call, path: PathBuf, size: u64) -> Call {
    let token = CancellationToken::new();
    let trigger = token.clone();
    std::thread::spawn(move || {
        let start = Instant::now();
        while look(&path).is_none_or(|(now, ..)| now < size)
            && start.elapsed() < Duration::from_secs(60)
        {
            std::thread::yield_now();
        }
        trigger.cancel();
    });
    call.with_cancellation(token)
}

#[test]
fn no_byte_changes_after_a_cancellation() {
    let rounds = std::sync::atomic::AtomicU64::new(0);
    stopped(
        |call, path| {
            cancel_at(call, path, 1 + rounds.fetch_add(7, std::sync::atomic::Ordering::Relaxed))
        },
        "cancelled",
    );
}

#[test]
fn no_byte_changes_after_a_timeout() {
    stopped(|call, _| call.with_timeout(Duration::from_millis(20)), "timeout");
}

/// Stops a call after its first write to a file that it would never finish.
fn begun(host: &Host, path: PathBuf) -> ToolResult {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let call = Call::new("in_write", json!({"op": "begin", "path": name}));
    block_on(host.dispatch(host.session(), cancel_at(call, path, 10)))
}

#[test]
fn stopped_call_lists_changes_and_removes_its_temporary_file() {
    let world = World::new();
    let host = Case::new(CONTAINMENT_FILES, "in_write")
        .allow(SideEffects::Write)
        .builder(&world)
        .build()
        .unwrap();
    let result = begun(&host, world.root().join("begun"));
    assert_eq!(result.files_modified(), [Path::new("begun")]);
    assert_eq!(world.read("begun").as_deref(), Some("half of it"));
    let result = begun(&host, world.root().join(".palisade-0123456789abcdef.tmp"));
    assert!(result.files_modified().is_empty(), "{result}");
    assert_eq!(fs::read_dir(world.root()).unwrap().count(), 1);
    // The name only resembles a temporary file of the host, so the file is the tool's own.
    let result = begun(&host, world.root().join(".palisade-x.tmp"));
    assert_eq!(result.files_modified(), [Path::new(".palisade-x.tmp")]);
}

#[test]
fn existing_temporary_file_is_kept() {
    let world = World::new();
    let name = ".palisade-0123456789abcdef.tmp";
    world.file(name, "x");
    let host = Case::new(CONTAINMENT_FILES, "in_write")
        .allow(SideEffects::Write)
        .builder(&world)
        .build()
        .unwrap();
    let result = begun(&host, world.root().join(name));
    assert_eq!(result.files_modified(), [Path::new(name)]);
    assert!(world.read(name).is_some());
}
