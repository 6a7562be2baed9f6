//! Tests a workspace that hangs in the kernel: calls are answered on time, no other call waits, and
//! the program exits on time.
//!
//! The file system is a real mount, served by a process that the tests stop. Without permission to
//! mount, each test reports that it was skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "hanging/library.rs"]
mod library;
#[path = "hanging/lost_threads.rs"]
mod lost_threads;
#[path = "hanging/program.rs"]
mod program;

use std::sync::Arc;
use std::time::{Duration, Instant};

use palisade::{
    CacheMode, Call, CallMode, Host, HostBuilder, SideEffects, ToolResult, policy::Policy,
};
use palisade_tests::World;
use palisade_tests::frozen::{Frozen, with_own_mounts};
use serde_json::{Value, json};

/// The maximum delay after the deadline or the cancellation of a call.
const AT_MOST: Duration = Duration::from_secs(2);
/// The timeout of a call that will hang.
const SHORT: Duration = Duration::from_millis(200);

/// A workspace that can be frozen. Fields drop in order: the mount before the directory beneath it.
struct Scene {
    frozen: Arc<Frozen>,
    world: World,
}

impl Scene {
    /// Runs a test in a mount namespace and scene of its own.
    fn play(test: impl FnOnce(&Self) + Send) {
        with_own_mounts(|| {
            let world = World::new();
            test(&Self { frozen: Arc::new(Frozen::mount(&world.root())), world });
        });
    }

    fn builder(&self) -> HostBuilder {
        Host::builder()
            .workspace(self.world.root())
            .cache(CacheMode::Directory(palisade_tests::guest::cache()))
            .policy(Policy::default().allowing(SideEffects::Write))
            .call_mode(CallMode::OwnThreads { threads: 2, lost: 4 })
    }

    fn host(&self) -> Host {
        self.builder().build().expect("the host can be built")
    }
}

fn read(file: &str) -> Call {
    Call::new("read_file", json!({"path": file})).with_timeout(SHORT)
}

/// Makes a call with a short timeout in the host's own session, and checks that the answer is on
/// time.
async fn answered(host: &Host, call: Call) -> ToolResult {
    let start = Instant::now();
    let result = host.dispatch(host.session(), call).await;
    assert!(start.elapsed() < SHORT + AT_MOST, "it took {:?}", start.elapsed());
    result
}

#[track_caller]
fn error(result: &ToolResult) -> (&'static str, Value) {
    let error = result.error().unwrap_or_else(|| panic!("it fails: {result:?}"));
    (error.class().as_str(), error.to_json()["detail"].clone())
}

#[track_caller]
fn was_given_up(result: &ToolResult) {
    assert_eq!(
        error(result),
        ("timeout", json!({"limit": "timeout", "value_ms": 200, "reason": "no_answer"}))
    );
    assert!(
        result
            .error()
            .is_some_and(|error| error.message().contains("file system of the workspace"))
    );
}

/// Polls until the condition holds.
async fn until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(20), "the condition never holds");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until the file server has stopped by itself.
async fn has_stopped(scene: &Scene) {
    let frozen = scene.frozen.clone();
    tokio::task::spawn_blocking(move || frozen.wait_for_stop()).await.unwrap();
}
