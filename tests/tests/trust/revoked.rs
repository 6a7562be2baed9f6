//! A revocation outlives the entry that it was made for, and reaches a running server.

use crate::{approve, host, lock, plugin, program};
use palisade::confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use palisade::plugins::{Approvals, NotApproved, Plugin, PluginApproval, PluginBytes, Shipped};
use palisade::policy::{Mode, Policy};
use palisade::{BoxFuture, CacheMode, Call, CallId, Host, SideEffects, ToolOutput};
use palisade_tests::World;
use palisade_tests::guest::cache;
use palisade_tests::mcp::Client;
use palisade_tests::native::{StopSignal, Waiting};
use palisade_trust::{Keys, LockedPlugins, Review};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
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
    let refused = program(&world, &["call", "look"]).run().exits_with(4);
    refused.stderr_contains(&["its bytes were revoked as the plugin `evil`"]);
    program(&world, &["approve", "twin", "--yes"])
        .run()
        .exits_with(4)
        .stderr_contains(&["only a person at a terminal approves it again"]);
}

#[test]
fn revocation_names_what_else_has_the_same_bytes() {
    let world = World::new();
    let bytes = plugin("look").build();
    world.install("git", &bytes);
    world.install("twin", &bytes);
    let _ = program(&world, &["approve", "--all", "--yes"]).run();
    let ran = program(&world, &["revoke", "git"]).run().exits_with(0);
    ran.stderr_contains(&["`twin` has the same bytes, and is revoked with it"]);
    let again = program(&world, &["revoke", "git"]).run().exits_with(3);
    again.stderr_contains(&["no plugin `git` is approved: it was revoked before"]);
}

#[test]
fn queued_call_of_a_revoked_plugin_does_not_run() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let host = host(&world);
    let waits = Waiting::new("waits", StopSignal::ByCancel, || Ok(ToolOutput::text("")));
    host.registry().register(waits.factory()).unwrap();
    let session = host.new_session("s").concurrency(1).build();
    let result = palisade_tests::case::block_on(async {
        let holds = host.dispatch(&session, Call::new("waits", "{}").with_id("holds"));
        let queued = host.dispatch(&session, Call::new("look", "{}"));
        let revokes = async {
            while session.in_flight() < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
            // Longer than the wait after which the approval is asked for again.
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(session.cancel(&CallId::new("holds")));
        };
        tokio::join!(holds, queued, revokes).1
    });
    let error = result.error().expect("an error").to_string();
    assert!(error.contains("is not approved"), "{error}");
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

/// A confirmer whose person revokes the plugin elsewhere, and then allows the call.
struct Revoking<'a>(&'a World);

impl Confirmer for Revoking<'static> {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        let _ = program(self.0, &["revoke", "git"]).run().exits_with(0);
        Box::pin(async { Ok(Answer::Allow) })
    }
}

#[test]
fn answer_after_a_revocation_allows_nothing() {
    // The confirmer outlives the test's frame.
    let world: &'static World = Box::leak(Box::new(World::new()));
    world.install("git", &plugin("look").build());
    approve(world);
    let host = Host::builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .plugins(world.plugins())
        .policy(Policy::default().with_class(SideEffects::Read, Mode::Prompt))
        .confirmer(Arc::new(Revoking(world)))
        .approvals(Arc::new(LockedPlugins::open(lock(world)).unwrap()))
        .cache(CacheMode::Directory(cache()))
        .build()
        .unwrap();
    let call = Call::new("look", json!({}));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let result = runtime.block_on(host.dispatch(host.session(), call));
    let error = result.error().unwrap();
    assert_eq!(error.class().as_str(), "permission_denied", "{result:?}");
    assert!(format!("{:?}", error.reason()).contains("is not approved"), "{result:?}");
}

/// Approvals of which the question about the file `slow` takes until the test goes on, as its
/// compilation would.
struct Blocking {
    own: LockedPlugins,
    asked: Mutex<Sender<()>>,
    goes_on: Mutex<Receiver<()>>,
}

impl Approvals for Blocking {
    fn scan_begins(&self) {
        self.own.scan_begins();
    }

    fn check_bytes(&self, bytes: &PluginBytes<'_>) -> Result<(), NotApproved> {
        if bytes.name == "slow" {
            self.asked.lock().unwrap().send(()).unwrap();
            let _ = self.goes_on.lock().unwrap().recv();
        }
        self.own.check_bytes(bytes)
    }

    fn of(&self, plugin: &Plugin) -> PluginApproval {
        self.own.of(plugin)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.own.files()
    }
}

#[test]
fn revocation_does_not_wait_for_a_file_that_compiles() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let ((ask, asked), (go_on, goes_on)) = (channel(), channel());
    let own = LockedPlugins::open(lock(&world)).unwrap();
    let approvals = Blocking { own, asked: Mutex::new(ask), goes_on: Mutex::new(goes_on) };
    let host = Host::builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .plugins(world.plugins())
        .approvals(Arc::new(approvals))
        .cache(CacheMode::Directory(cache()))
        .build()
        .unwrap();
    let (tell, told) = channel();
    let watch = host.watch(move |rescan| {
        let removed = rescan.removed.iter().map(|plugin| plugin.name().to_owned());
        tell.send(removed.collect::<Vec<_>>()).unwrap();
    });
    let _watch = watch.unwrap();
    world.install("slow", &plugin("slow").build());
    asked.recv().unwrap();
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), ["git"]);
    assert!(!host.registry().has("look"));
    drop(go_on);
    assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), [""; 0]);
    assert!(!host.registry().has("look"), "the scan began before the revocation");
    let rejected = host.rejected();
    assert!(rejected.iter().any(|it| it.file.contains("slow")), "{rejected:?}");
}
