//! Rescans of a running host: changes are registered atomically, running calls keep their code, and
//! a broken file does not replace the plugin loaded before.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use palisade::plugins::{Plugin, Rescan};
use palisade::{
    CacheMode, Host, HostBuilder, SideEffects,
    events::{Event, EventStream},
    json,
    plugins::Shipped,
    policy::{Mode, Policy},
    sandbox::{ChildCompiler, Compiler},
};
use palisade_tests::bomb::costly_to_compile;
use palisade_tests::case::block_on;
use palisade_tests::guest::DISPATCHER_GATE;
use palisade_tests::program::executable;
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World};

use super::compile::without_code;
use super::says;

/// Returns a plugin whose tools carry a version in their descriptions.
pub(super) fn plugin(tools: &[&str], version: &str) -> Vec<u8> {
    let told = |name: &&str| Told { description: version.to_owned(), ..Told::new(name) };
    Wat::with_tools(tools.iter().map(told).collect()).build()
}

pub(super) fn builder(world: &World) -> HostBuilder {
    let base =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(world.plugins());
    base.cache(CacheMode::Directory(world.outer().join("cache")))
}

pub(super) fn file(world: &World, name: &str) -> PathBuf {
    world.plugins().join(format!("{name}.wasm"))
}

/// Lists the tools with their versions, in order.
pub(super) fn tools(host: &Host) -> Vec<(String, String)> {
    let definitions = host.definitions(host.session());
    definitions
        .iter()
        .map(|tool| (tool.name().to_string(), tool.description().to_owned()))
        .collect()
}

pub(super) fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(tool, version)| ((*tool).to_owned(), (*version).to_owned())).collect()
}

pub(super) fn names(plugins: &[Plugin]) -> Vec<&str> {
    plugins.iter().map(Plugin::name).collect()
}

/// Returns the names of the loaded, changed and removed plugins.
pub(super) fn found(rescan: &Rescan) -> [Vec<&str>; 3] {
    [names(&rescan.loaded), names(&rescan.changed), names(&rescan.removed)]
}

/// Drains the events and returns their names.
fn told(events: &mut EventStream) -> Vec<&'static str> {
    std::iter::from_fn(|| events.try_next()).map(|envelope| envelope.event.name()).collect()
}

/// Rescans and returns the reason for the only rejected file.
#[track_caller]
pub(super) fn refused(host: &Host) -> String {
    let rescan = host.rescan();
    assert_eq!(
        (found(&rescan), rescan.rejected.len()),
        (Default::default(), 1),
        "{:?}",
        rescan.rejected
    );
    assert_eq!(host.rejected(), rescan.rejected);
    rescan.rejected[0].reason.clone()
}

/// Checks that the host is in the same state as one started now.
#[track_caller]
fn is_as_after_a_fresh_start(host: &Host, world: &World) {
    let fresh = builder(world).build().unwrap();
    assert_eq!((tools(host), host.rejected()), (tools(&fresh), fresh.rejected()));
    assert_eq!(names(&host.plugins()), names(&fresh.plugins()));
    assert_eq!(host.progress(), fresh.progress());
}

#[test]
fn added_changed_and_removed_plugins_are_applied_at_once() {
    let world = World::new();
    for name in ["b", "c", "d"] {
        world.install(name, &plugin(&[name], "1"));
    }
    let host = builder(&world).build().unwrap();
    let mut events = host.events();
    let kept = host.registry().get("d").unwrap();
    world.install("a", &plugin(&["a"], "1"));
    world.install("b", &plugin(&["b", "more"], "2"));
    fs::remove_file(file(&world, "c")).unwrap();
    let rescan = host.rescan();
    assert_eq!(found(&rescan), [vec!["a"], vec!["b"], vec!["c"]]);
    assert_eq!(tools(&host), pairs(&[("a", "1"), ("b", "2"), ("more", "2"), ("d", "1")]));
    assert!(
        Arc::ptr_eq(&kept, &host.registry().get("d").unwrap()),
        "an unchanged plugin stays the same"
    );
    assert_eq!(told(&mut events), ["plugin.loaded", "plugin.changed", "plugin.removed"]);
    for tool in ["a", "b", "more", "d"] {
        assert!(block_on(host.call(tool, "{}", json!({}))).is_success(), "{tool}");
    }
    assert_eq!(
        block_on(host.call("c", "{}", json!({}))).error().unwrap().class().as_str(),
        "not_found"
    );
    is_as_after_a_fresh_start(&host, &world);
}

#[test]
fn unchanged_directory_causes_no_events() {
    let world = World::new();
    world.install("a", &plugin(&["a"], "1"));
    world.install("b", &plugin(&["a"], "1"));
    world.install("c-broken", b"no plugin");
    let host = builder(&world).build().unwrap();
    let (mut events, before) = (host.events(), host.registry().get("a").unwrap());
    for _ in 0..3 {
        assert!(host.rescan().is_empty());
    }
    // Nor is a new file with the same bytes a change.
    fs::rename(file(&world, "a"), world.outer().join("old")).unwrap();
    fs::copy(world.outer().join("old"), file(&world, "a")).unwrap();
    assert!(host.rescan().is_empty());
    assert!(Arc::ptr_eq(&before, &host.registry().get("a").unwrap()));
    assert!(told(&mut events).is_empty());
    is_as_after_a_fresh_start(&host, &world);
}

#[test]
fn running_call_keeps_its_code() {
    let world = World::new();
    fs::copy(DISPATCHER_GATE.file(), file(&world, "gate")).unwrap();
    let host = builder(&world).build().unwrap();
    let mut events = host.events();
    block_on(async {
        let running = host.call("wait_for", json!({"path": "open"}), json!({}));
        let replaced = async {
            while !matches!(events.next().await.unwrap().event, Event::OutputDelta(..)) {}
            world.install("gate", &plugin(&["wait_for"], "2"));
            assert_eq!(found(&host.rescan())[1], ["gate"]);
            let new = host.call("wait_for", "{}", json!({})).await;
            assert_eq!(new.output().as_deref(), Some("done"), "a new call runs the new code");
            fs::remove_file(file(&world, "gate")).unwrap();
            assert_eq!(found(&host.rescan())[2], ["gate"]);
            world.file("open", "by the old code");
        };
        let (old, ()) = tokio::join!(running, replaced);
        assert_eq!(old.output().as_deref(), Some("by the old code"));
    });
}

#[test]
fn broken_replacement_keeps_the_plugin_and_is_reported() {
    for (cache, broken) in [
        (CacheMode::Off, &b"no plugin"[..]),
        (CacheMode::Default, b"no plugin"),
        (CacheMode::Default, &plugin(&["twice", "twice"], "1")),
    ] {
        let world = World::new();
        world.install("a", &plugin(&["a"], "1"));
        let base = builder(&world);
        let host = if cache == CacheMode::Off { base.cache(cache) } else { base }.build().unwrap();
        let mut events = host.events();
        world.install("a", broken);
        says(&refused(&host), &["; the one loaded before stays"]);
        assert_eq!(tools(&host), pairs(&[("a", "1")]));
        assert!(block_on(host.call("a", "{}", json!({}))).is_success());
        assert!(told(&mut events).contains(&"plugin.rejected"));
        assert!(host.rescan().is_empty(), "it is said once");
        world.install("a", &plugin(&["a"], "2"));
        assert_eq!(found(&host.rescan())[1], ["a"]);
        assert_eq!((tools(&host), host.rejected()), (pairs(&[("a", "2")]), vec![]));
        // A repair with the bytes that are loaded already is not a change.
        world.install("a", broken);
        refused(&host);
        world.install("a", &plugin(&["a"], "2"));
        assert!(host.rescan().is_empty() && host.rejected().is_empty());
    }
}

#[test]
fn retained_plugin_does_not_need_the_cache() {
    let world = World::new();
    world.install("a", &plugin(&["a"], "1"));
    world.install("b", &plugin(&["b"], "1"));
    drop(builder(&world).build().unwrap());
    // This host has not loaded any code: the cache had all of it.
    let host = builder(&world).build().unwrap();
    let before = host.registry().get("b").unwrap();
    world.install("a", b"no plugin");
    world.install("b", &plugin(&["b"], "2"));
    let rescan = host.rescan();
    assert_eq!((found(&rescan)[1].clone(), rescan.rejected.len()), (vec!["b"], 1));
    assert_eq!(without_code(&world), 3, "the code of both plugins, and of the new file of one");
    assert!(block_on(host.call("a", "{}", json!({}))).is_success());
    let registry = palisade::registry::Registry::new();
    registry.register(Arc::new(move || before.instantiate())).unwrap();
    let old = Host::builder().workspace(world.root()).shipped(Shipped::LeftOut);
    let factory = registry.get("b").unwrap();
    let old =
        old.tool(Arc::new(move || factory.instantiate())).cache(CacheMode::Off).build().unwrap();
    assert!(
        block_on(old.call("b", "{}", json!({}))).is_success(),
        "a running call keeps the old code"
    );
}

#[test]
fn earlier_file_claims_a_name_as_after_a_restart() {
    let world = World::new();
    world.install("b", &plugin(&["same", "other"], "b"));
    let host = builder(&world).build().unwrap();
    world.install("a", &plugin(&["same"], "a"));
    let rescan = host.rescan();
    assert_eq!(found(&rescan), [vec!["a"], vec![], vec!["b"]]);
    says(&rescan.rejected[0].reason, &["`same` already exists"]);
    assert_eq!(
        tools(&host),
        pairs(&[("same", "a")]),
        "a plugin is loaded completely or not at all"
    );
    is_as_after_a_fresh_start(&host, &world);
    fs::remove_file(file(&world, "a")).unwrap();
    assert_eq!(found(&host.rescan()), [vec!["b"], vec![], vec!["a"]]);
    assert_eq!(tools(&host), pairs(&[("same", "b"), ("other", "b")]));
    is_as_after_a_fresh_start(&host, &world);
}

#[test]
fn conflicting_replacement_changes_nothing() {
    let world = World::new();
    world.install("a", &plugin(&["a"], "1"));
    world.install("b", &plugin(&["b"], "1"));
    let host = builder(&world).build().unwrap();
    world.install("b", &plugin(&["a", "b"], "2"));
    says(&refused(&host), &["`a` already exists", "; the one loaded before stays"]);
    assert_eq!(tools(&host), pairs(&[("a", "1"), ("b", "1")]));
    // An earlier file does get the name of a plugin that only stayed.
    world.install("a", &plugin(&["b"], "3"));
    let rescan = host.rescan();
    assert_eq!(found(&rescan), [vec![], vec!["a"], vec!["b"]]);
    says(&rescan.rejected[0].reason, &["`b` already exists", "the one loaded before cannot stay"]);
    is_as_after_a_fresh_start_but_for(&host, &world, "; the one loaded before cannot stay");
}

/// The same, except for `end` at the end of the reasons.
#[track_caller]
fn is_as_after_a_fresh_start_but_for(host: &Host, world: &World, end: &str) {
    let fresh = builder(world).build().unwrap();
    assert_eq!((tools(host), names(&host.plugins())), (tools(&fresh), names(&fresh.plugins())));
    let (now, then) = (host.rejected(), fresh.rejected());
    let reasons: Vec<Option<&str>> =
        now.iter().map(|rejected| Some(rejected.reason.split_once(end)?.0)).collect();
    assert_eq!(
        reasons,
        then.iter().map(|rejected| Some(rejected.reason.as_str())).collect::<Vec<_>>()
    );
}

#[test]
fn host_and_added_names_cannot_be_taken() {
    let world = World::new();
    let host = builder(&world).shipped(Shipped::Included).build().unwrap();
    let shipped = host.registry().tool_names();
    world.install("thief", &plugin(&["read_file"], "1"));
    says(&refused(&host), &["`read_file` already exists"]);
    world.install("other", &plugin(&["mine"], "1"));
    assert_eq!(found(&host.rescan())[0], ["other"]);
    assert_eq!(host.registry().tool_names(), [shipped, vec!["mine".to_owned()]].concat());
    host.registry().unregister("mine").unwrap();
    assert!(
        host.rescan().is_empty() && !host.registry().has("mine"),
        "an unregistered tool stays unregistered"
    );
    world.install("other", &plugin(&["mine"], "2"));
    assert!(!host.rescan().is_empty() && host.registry().has("mine"));
}

#[test]
fn refused_file_is_not_recompiled_until_it_changes() {
    let world = World::new();
    world.install("bomb", &costly_to_compile("bomb"));
    let limits = palisade::sandbox::CompileLimits {
        time: Duration::from_secs(1),
        ..palisade::sandbox::CompileLimits::default()
    };
    let child = Compiler::Child(ChildCompiler::palisade(executable()).limits(limits));
    let host = builder(&world).compiler(child).build().unwrap();
    let reason = host.rejected()[0].reason.clone();
    says(&reason, &["compilation took more than 1s of processor time"]);
    let begun = std::time::Instant::now();
    for _ in 0..20 {
        assert!(host.rescan().is_empty());
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "it was compiled again: {reason}");
}

#[test]
fn plugin_rule_is_suspended_while_a_namesake_exists() {
    let (world, other) = (World::new(), World::new());
    let policy = Policy::default()
        .with_class(SideEffects::None, Mode::Prompt)
        .with_tool("csv/a", Mode::Auto);
    world.install("csv", &plugin(&["a"], "1"));
    other.install("other", &plugin(&["b"], "1"));
    let host = builder(&world).plugins(other.plugins()).build().unwrap();
    let mode = || {
        let tool = host.registry().get("a").unwrap();
        policy.decide(tool.definition(), tool.origin())
    };
    assert_eq!(mode(), Mode::Auto);
    other.install("csv", &plugin(&["c"], "1"));
    assert_eq!(found(&host.rescan()), [vec!["csv"], vec![], vec![]]);
    assert_eq!(mode(), Mode::Prompt, "the rule does not identify one of the two");
    fs::remove_file(file(&other, "csv")).unwrap();
    assert_eq!(found(&host.rescan()), [vec![], vec![], vec!["csv"]]);
    assert_eq!(mode(), Mode::Auto);
    // A broken file in its place makes no difference.
    world.install("csv", b"broken");
    other.install("csv", &plugin(&["c"], "1"));
    let _ = host.rescan();
    assert_eq!(mode(), Mode::Prompt);
    // An unregistered tool does not come back.
    host.registry().unregister("a").unwrap();
    fs::remove_file(file(&other, "csv")).unwrap();
    let _ = host.rescan();
    assert!(!host.registry().has("a"));
}
