//! Each plugin has a share of every process-wide resource, which other plugins cannot take.

use std::fs;
use std::sync::Arc;

use palisade::{CacheMode, Call, CancellationToken, Host, HostBuilder, plugins::Shipped};
use palisade_tests::case::block_on;
use palisade_tests::guest::{CANCEL_SLEEP, CONCURRENCY_COUNT, LIMITS_HANDLES, cache};
use palisade_tests::oracle::turn;
use palisade_tests::program::test_again;
use palisade_tests::stage::reports_start;
use palisade_tests::{Recorder, Stage, World};
use serde_json::json;

/// The sandboxes and the slots in the queue that one plugin gets while no other plugin wants any.
const OF_ONE: (usize, usize) = (128, 512);

#[test]
fn sleeping_plugin_at_its_share_delays_no_other() {
    // Sandboxes and queue are shared by the whole process.
    let _turn = turn();
    let stage =
        Stage::new(&[CANCEL_SLEEP, CONCURRENCY_COUNT], |host| host.shipped(Shipped::LeftOut));
    let token = CancellationToken::new();
    block_on(async {
        let (running, waiting) = OF_ONE;
        let hostile = |_| {
            let (host, call) =
                (stage.host.clone(), Call::new("sleep", "{}").with_cancellation(token.clone()));
            tokio::spawn(async move { host.dispatch(host.session(), call).await })
        };
        // The first call loads the plugin's code, for which the others would wait.
        let mut calls = vec![hostile(0)];
        stage.started(1).await;
        calls.extend((1..running + waiting + 10).map(hostile));
        stage.started(running).await;
        stage
            .recorder
            .until(|events| events.iter().filter(|event| event.is_terminal()).count() == 10)
            .await;
        for _ in 0..10 {
            let result = stage.host.call("count", json!({"text": "another"}), json!({})).await;
            assert_eq!(result.output().as_deref(), Some("1 another"), "{result}");
        }
        assert_eq!(
            stage.host.session().in_flight(),
            running + waiting,
            "it still holds its whole share"
        );
        token.cancel();
        for call in calls {
            assert!(call.await.unwrap().is_failure());
        }
    });
}

#[test]
fn session_at_full_load_takes_nothing_from_another_of_the_same_plugin() {
    let _turn = turn();
    let stage = Stage::new(&[CANCEL_SLEEP], |host| host.shipped(Shipped::LeftOut));
    let session =
        |id: &str, calls: u32| stage.host.new_session(id).concurrency(calls).own_shares().build();
    let (busy, other) = (session("busy", 256), session("other", 2));
    let token = CancellationToken::new();
    block_on(async {
        let (running, waiting) = OF_ONE;
        let sleep = || Call::new("sleep", "{}").with_cancellation(token.clone());
        // The first call loads the plugin's code, for which the others would wait.
        let mut calls = vec![stage.begin(&busy, sleep())];
        stage.started(1).await;
        calls.extend((1..running + waiting + 10).map(|_| stage.begin(&busy, sleep())));
        stage.started(running).await;
        stage
            .recorder
            .until(|events| events.iter().filter(|event| event.is_terminal()).count() == 10)
            .await;
        // Two calls of the other session run, and two wait in the queue.
        let others: Vec<_> = (0..4).map(|_| stage.begin(&other, sleep())).collect();
        stage.started(running + 2).await;
        assert_eq!(
            (busy.in_flight(), other.in_flight()),
            (running + waiting, 4),
            "one holds its whole share, and none of the other's calls was refused"
        );
        token.cancel();
        for call in calls.into_iter().chain(others) {
            assert!(call.await.unwrap().is_failure());
        }
    });
}

/// Set in the environment of the child process that runs the test with few file descriptors.
const FEW: &str = "PALISADE_TESTS_SHORT_OF_DESCRIPTORS";
const TEST: &str = "shares::greedy_plugins_leave_descriptors_to_a_third";

#[test]
fn greedy_plugins_leave_descriptors_to_a_third() {
    if std::env::var_os(FEW).is_some() {
        return with_few_descriptors();
    }
    test_again("-n 1024", TEST, FEW);
}

fn with_few_descriptors() {
    let world = World::new();
    fs::write(world.root().join("file.txt"), "content").unwrap();
    let bytes = fs::read(LIMITS_HANDLES.file()).unwrap();
    // An empty custom section named `x` changes the digest: a different plugin with the same code.
    let other = [&bytes[..], &[0, 2, 1, b'x']].concat();
    let recorder = Recorder::default();
    let host = |change: &dyn Fn(HostBuilder) -> HostBuilder| {
        let builder = Host::builder().workspace(world.root()).cache(CacheMode::Directory(cache()));
        Arc::new(change(builder.subscriber(Arc::new(recorder.clone()))).build().unwrap())
    };
    let hostile = [bytes, other].map(|bytes| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("handles.wasm"), bytes).unwrap();
        host(&|builder| builder.shipped(Shipped::LeftOut).plugins(folder.path()))
    });
    let benign = host(&|builder| builder.shipped(Shipped::Included));
    let token = CancellationToken::new();
    let hold = |host: &Arc<Host>, count: usize| {
        let call =
            Call::new("hold_for_ever", json!({"count": count})).with_cancellation(token.clone());
        let host = host.clone();
        tokio::spawn(async move { host.dispatch(host.session(), call).await })
    };
    block_on(async {
        let mut calls = Vec::new();
        for host in &hostile {
            // Batches of ten first, then single descriptors, until there are none left.
            calls.extend([[10; 30], [1; 30]].into_iter().flatten().map(|count| hold(host, count)));
            let begun = calls.len();
            let of = |event: &palisade::events::Event| reports_start(event) || event.is_terminal();
            recorder.until(|events| events.iter().filter(|event| of(event)).count() == begun).await;
        }
        assert!(
            recorder.events().iter().any(palisade::events::Event::is_terminal),
            "some reach the limit"
        );
        for _ in 0..30 {
            let result = benign.call("read_file", json!({"path": "file.txt"}), json!({})).await;
            assert_eq!(result.output().as_deref(), Some("content"), "{result}");
        }
        token.cancel();
        for call in calls {
            assert!(call.await.unwrap().is_failure());
        }
    });
}
