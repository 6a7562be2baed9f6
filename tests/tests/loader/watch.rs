//! Watches of a running host: each scan with changes is reported on a thread of its own, which ends
//! with the watch or its host.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use palisade::Host;
use palisade::plugins::Watch;
use palisade::sandbox::{ChildCompiler, Compiler};
use palisade_tests::World;
use palisade_tests::bomb::costly_to_compile;
use palisade_tests::program::executable;

use super::rescan::{builder, names, pairs, plugin, tools};

const LONG: Duration = Duration::from_secs(60);

/// A scan with changes: the name of its thread, and the numbers of changed plugins and rejected
/// files.
type Heard = (Option<String>, usize, usize);

fn watch(host: &Host) -> (Watch, Receiver<Heard>) {
    let (send, heard) = channel();
    let watch = host.watch(move |rescan| {
        let thread = std::thread::current().name().map(str::to_owned);
        send.send((thread, names(&rescan.changed).len(), rescan.rejected.len())).unwrap();
    });
    (watch.unwrap(), heard)
}

#[test]
fn watcher_is_notified_on_its_own_thread_until_it_ends() {
    let world = World::new();
    world.install("a", &plugin(&["a"], "1"));
    let host = builder(&world).build().unwrap();
    let (watch, heard) = watch(&host);
    let next = || heard.recv_timeout(LONG).unwrap();
    world.install("a", &plugin(&["a"], "2"));
    assert_eq!(next(), (Some("palisade-watch".to_owned()), 1, 0));
    assert_eq!(tools(&host), pairs(&[("a", "2")]));
    world.install("a", b"no plugin");
    assert_eq!(next().2, 1);
    drop(watch);
    let after = heard.recv_timeout(LONG);
    assert_eq!(after, Err(RecvTimeoutError::Disconnected), "the watch has ended");
}

#[test]
fn watch_ends_with_its_host() {
    let world = World::new();
    let host = builder(&world).build().unwrap();
    let (_watch, heard) = watch(&host);
    drop(host);
    assert_eq!(heard.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn file_that_compiles_slowly_holds_up_no_other_change() {
    let world = World::new();
    world.install("gone", &plugin(&["gone"], "1"));
    let compiler = Compiler::Child(ChildCompiler::palisade(executable()));
    let host = builder(&world).compiler(compiler).build().unwrap();
    let (_watch, heard) = watch(&host);
    world.install("a-slow", &costly_to_compile("slow"));
    // Long enough for a scan to find it alone.
    assert!(heard.recv_timeout(Duration::from_secs(2)).is_err(), "it is still compiled");
    std::fs::remove_file(world.plugins().join("gone.wasm")).unwrap();
    world.install("new", &plugin(&["new"], "2"));
    let start = Instant::now();
    while tools(&host) != pairs(&[("new", "2")]) {
        assert!(start.elapsed() < LONG, "{:?}", tools(&host));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(host.rejected().is_empty(), "the slow file is neither loaded nor rejected");
}
