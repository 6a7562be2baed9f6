//! A revocation outlives the entry that it was made for, and reaches a running server.

use crate::{approve, host, lock, plugin, program};
use palisade_tests::World;
use palisade_tests::mcp::Client;
use palisade_trust::{Keys, LockedPlugins, Review};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn revoked_bytes_stay_revoked_after_a_fixed_version_is_approved() {
    let world = World::new();
    let evil = plugin("look").extra("(func $evil)").build();
    world.install("evil", &evil);
    approve(&world);
    let _ = program(&world, &["revoke", "evil"]).run().exits_with(0);
    world.install("evil", &plugin("look").build());
    let review = {
        let locked = LockedPlugins::open(lock(&world)).unwrap();
        Review::new(&locked, &Keys::default(), &host(&world).unapproved()[0]).unwrap()
    };
    // The person at the terminal approves the fixed version.
    review.approve(&lock(&world)).unwrap();
    let _ = program(&world, &["call", "look"]).run().exits_with(0);
    fs::remove_file(world.plugins().join("evil.wasm")).unwrap();
    world.install("twin", &evil);
    program(&world, &["call", "look"]).run().exits_with(4).stderr_contains(&["was revoked"]);
    program(&world, &["approve", "twin", "--yes"])
        .run()
        .exits_with(4)
        .stderr_contains(&["only a person at a terminal approves it again"]);
}

#[test]
fn plugin_that_was_never_approved_can_be_revoked() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    program(&world, &["call", "look"]).run().exits_with(4).stderr_contains(&["was revoked"]);
    let plugins = world.plugins();
    let named = ["call", "look", "--plugins", plugins.to_str().unwrap()];
    program(&world, &named).run().exits_with(4).stderr_contains(&["was revoked"]);
    let ran = program(&world, &["approve"]).run().exits_with(0);
    assert!(!ran.stdout.contains("Looks at things."), "nobody is asked again: {ran:?}");
}

#[test]
fn revocation_reaches_a_running_server_that_watches_nothing() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let mut client = Client::start(program(&world, &["--no-builtin"])).shake_hands(&json!({}));
    let tools = |client: &mut Client| {
        let answer = client.request("tools/list", &json!({}));
        answer["result"]["tools"].as_array().unwrap().len()
    };
    while tools(&mut client) != 1 {}
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    let until = Instant::now() + Duration::from_secs(60);
    while tools(&mut client) != 0 {
        assert!(Instant::now() < until, "the revocation is never noticed");
        let _ = client.receive_within(Duration::from_millis(100));
    }
    let call = json!({"name": "look", "arguments": {}});
    let answer = client.request("tools/call", &call);
    assert!(!answer.to_string().contains("done"), "{answer}");
    let (ran, _) = client.end();
    assert!(ran.stderr.contains("removed") && ran.stderr.contains("git.wasm"), "{ran:?}");
}
