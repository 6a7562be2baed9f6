//! The shares of plugins and of callers bound each other: neither a plugin that many sessions call
//! nor a caller with many plugins takes what others need.

use palisade::{Call, CancellationToken, Session, ToolResult, plugins::Shipped, tool::Digest};
use palisade_tests::case::block_on;
use palisade_tests::guest::{CANCEL_SLEEP, CONCURRENCY_COUNT};
use palisade_tests::oracle::turn;
use palisade_tests::wat::Told;
use palisade_tests::{Stage, Wat};
use serde_json::json;
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};

/// Enough calls to reach a whole share of the sandboxes and of the queue.
const MANY: usize = 128 + 512 + 10;
/// The time limit of a benign call, which would otherwise wait for a minute in a queue.
const PATIENCE: Duration = Duration::from_secs(20);

/// A load that holds all that it can get until it is cancelled.
#[derive(Default)]
struct Load {
    token: CancellationToken,
    calls: Vec<JoinHandle<ToolResult>>,
}

impl Load {
    /// Begins calls of this tool until one of them is refused.
    async fn add(&mut self, stage: &Stage, session: &Session, tool: &str) {
        let call = || Call::new(tool, "{}").with_timeout(PATIENCE * 10);
        let calls: Vec<_> = (0..MANY)
            .map(|_| stage.begin(session, call().with_cancellation(self.token.clone())))
            .collect();
        while !calls.iter().any(JoinHandle::is_finished) {
            yield_now().await;
        }
        self.calls.extend(calls);
    }

    async fn end(self) {
        self.token.cancel();
        for call in self.calls {
            assert!(call.await.unwrap().is_failure());
        }
    }
}

fn session(stage: &Stage, id: &str, caller: Digest) -> Session {
    stage.host.new_session(id).concurrency(256).own_shares_of(caller).build()
}

/// Makes benign calls, one after the other and at once: none of them is refused or waits for long.
async fn benign(stage: &Stage, session: &Session, tool: &str) {
    let call = || Call::new(tool, json!({"text": "another"}).to_string());
    for calls in [1, 1, 1, 4] {
        let begun: Vec<_> = (0..calls).map(|_| stage.begin(session, call())).collect();
        for call in begun {
            let result = tokio::time::timeout(PATIENCE, call).await.expect("it waits").unwrap();
            assert_eq!(result.output().as_deref(), Some("1 another"), "{result}");
        }
    }
}

#[test]
fn plugin_at_full_load_of_many_sessions_takes_nothing_from_another_plugin() {
    let _turn = turn();
    let stage =
        Stage::new(&[CANCEL_SLEEP, CONCURRENCY_COUNT], |host| host.shipped(Shipped::LeftOut));
    block_on(async {
        let caller =
            |number: usize| Digest::of(format!("caller {number} of one plugin").as_bytes());
        let mut load = Load::default();
        for number in 0..12 {
            let busy = session(&stage, &format!("busy {number}"), caller(number));
            load.add(&stage, &busy, "sleep").await;
        }
        benign(&stage, &session(&stage, "other", caller(100)), "count").await;
        // The same is true of a caller whose own calls are part of the load.
        benign(&stage, &session(&stage, "another session", caller(0)), "count").await;
        load.end().await;
    });
}

#[test]
fn caller_at_full_load_of_many_plugins_takes_nothing_from_another_caller() {
    let _turn = turn();
    let looping: Vec<_> = (0..10)
        .map(|number| {
            let name = format!("loop_{number}");
            let folder = tempfile::tempdir().unwrap();
            let bytes = Wat::new(Told::new(&name)).execute("(loop (br 0)) unreachable").build();
            std::fs::write(folder.path().join("loop.wasm"), bytes).unwrap();
            (name, folder)
        })
        .collect();
    let stage = Stage::new(&[CONCURRENCY_COUNT], |host| {
        let add = |host: palisade::HostBuilder, (_, folder): &(_, tempfile::TempDir)| {
            host.plugins(folder.path())
        };
        looping.iter().fold(host.shipped(Shipped::LeftOut), add)
    });
    block_on(async {
        let caller = Digest::of(b"a caller with many sessions and many plugins");
        let mut load = Load::default();
        for (tool, _) in &looping {
            load.add(&stage, &session(&stage, tool, caller), tool).await;
        }
        let other = session(&stage, "other", Digest::of(b"a caller beside it"));
        benign(&stage, &other, "count").await;
        load.end().await;
    });
}

#[test]
fn caller_at_full_load_of_many_sessions_takes_nothing_from_another_of_the_same_plugin() {
    let _turn = turn();
    let stage = Stage::new(&[CANCEL_SLEEP], |host| host.shipped(Shipped::LeftOut));
    let busy = Digest::of(b"a caller with many sessions of one plugin");
    block_on(async {
        let mut load = Load::default();
        for number in 0..12 {
            load.add(&stage, &session(&stage, &format!("busy {number}"), busy), "sleep").await;
        }
        let running = stage.which_started().len();
        let other = session(&stage, "other", Digest::of(b"another caller"));
        let mut more = Load::default();
        more.calls.extend((0..4).map(|_| {
            stage.begin(&other, Call::new("sleep", "{}").with_cancellation(more.token.clone()))
        }));
        stage.started(running + 4).await;
        assert_eq!(other.in_flight(), 4, "none of its calls was refused");
        more.end().await;
        load.end().await;
    });
}
