//! The descriptions of all plugins have a bounded amount of memory together. Plugin files without
//! approval take no room of approved plugins, and a new version has the room of the old version.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palisade::plugins::{Approvals, NotApproved, Plugin, PluginApproval, PluginBytes};
use palisade::sandbox::limits::Limits;
use palisade::{Host, HostBuilder};
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World};

use super::rescan;

/// Approves the plugins whose names do not begin with `new`.
struct AllButNew;

impl Approvals for AllButNew {
    fn of(&self, plugin: &Plugin) -> PluginApproval {
        match refusal(plugin.name()) {
            Some(why) => PluginApproval::Missing(Arc::new(why)),
            None => PluginApproval::Approved,
        }
    }

    fn refusal_of_bytes(&self, bytes: &PluginBytes<'_>) -> Option<NotApproved> {
        refusal(bytes.name)
    }
}

fn refusal(name: &str) -> Option<NotApproved> {
    name.starts_with("new").then(|| NotApproved::new("it is new", "approve it"))
}

/// Returns a host whose descriptions have 256 MiB, 32 MiB of them for files without approval.
fn builder(world: &World) -> HostBuilder {
    let limits = Limits { total_memory: 512 << 20, ..Limits::default() };
    rescan::builder(world).limits(limits).approvals(Arc::new(AllButNew))
}

/// The room is the process's, so these tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a plugin whose description takes about this much, with its copies.
fn plugin(tool: &str, version: &str, mib: usize) -> Vec<u8> {
    let examples = vec![r#"{"":0}"#; mib * 305].join(",");
    let schema = format!(r#"{{"type": "object", "examples": [{examples}]}}"#);
    let told = Told { description: version.to_owned(), ..Told::new(tool).with_input(schema) };
    Wat::new(told).build()
}

fn has(host: &Host, tool: &str) -> bool {
    host.registry().has(tool)
}

#[test]
fn files_without_approval_leave_the_room_of_approved_plugins() {
    let _turn = turn();
    let world = World::new();
    for number in 0..24 {
        let name = format!("new_{number:02}");
        world.install(&name, &plugin(&name, "1", 12));
    }
    world.install("others", &plugin("others", "1", 80));
    let host = builder(&world).build().unwrap();
    assert!(has(&host, "others"), "{:?}", host.rejected());
    let waiting = host.unapproved().len();
    assert!((1..10).contains(&waiting), "{waiting} are described");
    let refused = host.rejected();
    let full = refused.iter().filter(|it| it.reason.contains("`limits.total_memory`"));
    assert_eq!(full.count(), 24 - waiting, "{refused:?}");
}

#[test]
fn new_version_of_a_plugin_has_the_room_of_the_one_before() {
    let _turn = turn();
    let world = World::new();
    world.install("large", &plugin("large", "1", 90));
    let host = builder(&world).build().unwrap();
    assert_eq!(rescan::tools(&host), rescan::pairs(&[("large", "1")]), "{:?}", host.rejected());
    for version in ["2", "3"] {
        world.install("large", &plugin("large", version, 90));
        let rescan = host.rescan();
        assert!(rescan.rejected.is_empty(), "{:?}", rescan.rejected);
        assert_eq!(rescan::tools(&host), rescan::pairs(&[("large", version)]));
    }
    world.install("another", &plugin("another", "1", 90));
    let refused = host.rescan().rejected;
    assert_eq!(refused.len(), 1, "there is no room for two of them");
}
