//! Promises to programs that embed the host with approvals.

use crate::{approve, host, host_with, lock, plugin};
use palisade::CacheMode;
use palisade::plugins::{Cause, Compiling, PluginApproval, Shipped};
use palisade::policy::{Mode, Policy};
use palisade::registry::Source;
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World};
use palisade_trust::{
    Keys, Lock, LockError, LockedPlugins, Review, ReviewError, State, Strictness,
};
use std::fs;
use std::time::{Duration, Instant};

fn locked(world: &World) -> LockedPlugins {
    LockedPlugins::open(lock(world)).unwrap()
}

#[test]
fn unapproved_plugin_describes_itself_and_offers_nothing() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let host = host(&world);
    let found = host.unapproved();
    let [unapproved] = &found[..] else { panic!("{found:?}") };
    assert_eq!(unapproved.definitions()[0].name().as_str(), "look");
    assert!(matches!(unapproved.approval(), PluginApproval::Missing(_)));
    assert!(host.plugins().is_empty() && host.registry().is_empty());
    assert_eq!(host.rejected()[0].cause, Cause::NotApproved);
    assert_eq!(locked(&world).state(unapproved), State::New { same_as: None });
}

/// The name of a file is no word that a person has approved.
#[test]
fn name_of_an_unapproved_file_that_compiles_is_not_for_models() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let names = || {
        let locked = std::sync::Arc::new(locked(&world));
        let builder = palisade::Host::builder().workspace(world.root()).approvals(locked);
        let builder = builder.shipped(Shipped::LeftOut).cache(CacheMode::Off);
        let host = builder.plugins(world.plugins()).build_from_cache().unwrap();
        let compiling = host.compiling();
        assert_eq!(compiling[0].plugin, "git", "the operator sees it");
        compiling.into_iter().filter_map(Compiling::approved_name).collect::<Vec<_>>()
    };
    assert_eq!(names(), [""; 0]);
    approve(&world);
    assert_eq!(names(), ["git"]);
}

#[test]
fn approval_does_not_lift_a_later_revocation() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let found = host(&world).unapproved().remove(0);
    let review = || Review::new(&locked(&world), &Keys::default(), &found).unwrap();
    let before = review();
    Lock::update(&lock(&world), |lock| lock.revoke_bytes("git", found.digest())).unwrap();
    let late = before.approve(&lock(&world));
    assert!(matches!(late, Err(LockError::Revoked)), "{late:?}");
    assert!(locked(&world).state(&found).is_revoked());
    // A person who has seen the revocation can approve the plugin again.
    review().approve(&lock(&world)).unwrap();
    assert_eq!(locked(&world).state(&found), State::Approved);
}

#[test]
fn review_approves_the_bytes_that_were_looked_at() {
    let world = World::new();
    let file = world.install("git", &plugin("look").build());
    let found = host(&world).unapproved().remove(0);
    let review = Review::new(&locked(&world), &Keys::default(), &found).unwrap();
    // The file is replaced between the look and the answer.
    fs::write(&file, plugin("look").extra("(func $evil)").build()).unwrap();
    let late = Review::new(&locked(&world), &Keys::default(), &found);
    assert!(matches!(late, Err(ReviewError::Replaced)), "{late:?}");
    review.approve(&lock(&world)).unwrap();
    let now = host(&world);
    assert!(now.registry().is_empty(), "the approval is for what was looked at");
    let state = locked(&world).state(&now.unapproved()[0]);
    assert!(matches!(state, State::Changed(_)), "{state:?}");
}

#[test]
fn scan_loads_what_was_approved_and_drops_what_was_revoked() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let host = host(&world);
    let review = Review::new(&locked(&world), &Keys::default(), &host.unapproved()[0]).unwrap();
    review.approve(&lock(&world)).unwrap();
    assert_eq!(host.rescan().loaded.len(), 1);
    assert!(host.registry().has("look") && host.unapproved().is_empty());
    Lock::update(&lock(&world), |lock| lock.revoke("git", None)).unwrap();
    assert_eq!(host.rescan().removed.len(), 1);
    assert!(!host.registry().has("look") && host.unapproved().len() == 1);
}

#[test]
fn replaced_file_keeps_the_approved_plugin_running() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let host = host(&world);
    world.install("git", &plugin("look").extra("(func $evil)").build());
    let rescan = host.rescan();
    assert!(rescan.changed.is_empty() && rescan.removed.is_empty(), "{rescan:?}");
    assert!(rescan.rejected[0].reason.ends_with("the one loaded before stays"), "{rescan:?}");
    assert!(host.registry().has("look"));
}

#[test]
fn watching_host_notices_an_approval() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let host = host(&world);
    let (send, receive) = std::sync::mpsc::channel();
    let _watch = host.watch(move |rescan| {
        let _ = send.send(rescan.loaded.len());
    });
    let review = Review::new(&locked(&world), &Keys::default(), &host.unapproved()[0]).unwrap();
    review.approve(&lock(&world)).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !host.registry().has("look") {
        assert!(Instant::now() < until, "the approval is never noticed");
        let _ = receive.recv_timeout(Duration::from_secs(1));
    }
}

#[test]
fn lock_that_becomes_unreadable_approves_nothing() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let host = host(&world);
    assert!(host.registry().has("look"));
    fs::write(lock(&world), "version = ").unwrap();
    host.rescan();
    assert!(host.registry().is_empty());
    assert!(host.rejected()[0].reason.contains("the approvals cannot be read"));
    assert!(LockedPlugins::open(lock(&world)).is_err());
}

#[test]
fn no_rule_loosens_the_policy_for_a_plugin_of_this_run() {
    let world = World::new();
    world.install("git", &Wat::new(Told { class: 2, ..Told::new("look") }).build());
    let host = host_with(&world, locked(&world).explicit([world.plugins()]));
    let tool = host.registry().get("look").unwrap();
    let palisade::registry::Origin::Plugin { source, .. } = tool.origin() else { panic!() };
    assert!(matches!(source, Source::ThisRun(_)), "{source:?}");
    let mode = |policy: Policy| policy.decide(tool.definition(), tool.origin());
    for rule in ["git/look", "look"] {
        assert_eq!(mode(Policy::default().with_tool(rule, Mode::Auto)), Mode::Prompt, "{rule}");
        assert_eq!(mode(Policy::default().with_tool(rule, Mode::Deny)), Mode::Deny, "{rule}");
    }
    assert_eq!(mode(Policy::default().allowing(palisade::SideEffects::Write)), Mode::Auto);
    approve(&world);
    let host = host_with(&world, locked(&world).explicit([world.plugins()]));
    let tool = host.registry().get("look").unwrap();
    let policy = Policy::default().with_tool("git/look", Mode::Auto);
    assert_eq!(policy.decide(tool.definition(), tool.origin()), Mode::Auto, "it is approved");
}

#[test]
fn locked_host_compiles_nothing_that_is_not_approved() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let strict = || locked(&world).strictness(Strictness::Locked).explicit([world.plugins()]);
    let host = host_with(&world, strict());
    assert!(host.unapproved().is_empty() && host.registry().is_empty());
    assert!(host.rejected()[0].reason.contains("it is not approved: it is new"));
    approve(&world);
    assert!(host_with(&world, strict()).registry().has("look"));
    world.install("git", &plugin("look").extra("(func $evil)").build());
    let host = host_with(&world, strict());
    assert!(host.unapproved().is_empty() && host.registry().is_empty());
}

#[test]
fn lock_of_a_project_only_tightens() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let project = world.root().join("palisade.lock");
    let both = || LockedPlugins::open_with(Some(lock(&world)), Some(project.clone())).unwrap();
    assert!(host_with(&world, both()).registry().has("look"), "a missing file says nothing");
    fs::copy(lock(&world), &project).unwrap();
    assert!(host_with(&world, both()).registry().has("look"));
    let text = fs::read_to_string(&project).unwrap();
    let digest = text.lines().find(|line| line.starts_with("digest")).unwrap();
    let other = format!("digest = \"sha256:{}\"", "0".repeat(64));
    fs::write(&project, text.replace(digest, &other)).unwrap();
    let host = host_with(&world, both());
    assert!(host.rejected()[0].reason.contains("the `palisade.lock` of the project"));
    fs::write(&project, text).unwrap();
    fs::remove_file(lock(&world)).unwrap();
    assert!(host_with(&world, both()).registry().is_empty(), "it approves nothing");
}
