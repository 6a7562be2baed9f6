//! Concurrent calls: isolated from each other, without starvation, and a replaced plugin finishes
//! its calls on the old code.

use std::sync::Arc;

use palisade::{Call, ToolResult};
use palisade_tests::guest::{CANCEL_SLEEP, CONCURRENCY_COUNT};
use palisade_tests::oracle::Oracle;
use palisade_tests::stage::class;
use palisade_tests::wat::Told;
use palisade_tests::{Stage, Wat};
use serde_json::json;

use super::ENOUGH;

/// Makes all calls concurrently, each in a task of its own.
pub(crate) async fn all(stage: &Stage, calls: impl Iterator<Item = Call>) -> Vec<ToolResult> {
    let session = stage.host.new_session("s").concurrency(64).build();
    let tasks: Vec<_> = calls.map(|call| stage.begin(&session, call)).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

#[test]
fn sixty_four_counting_calls_each_see_one() {
    let oracle = Oracle::new(|_, builder| builder.plugins(CONCURRENCY_COUNT.directory()));
    for tool in ["count", "count_slowly"] {
        let results = oracle.watch(ENOUGH, |stage| {
            let stage = stage.clone();
            async move {
                all(&stage, (0..64).map(|n| Call::new(tool, json!({"text": format!("t{n}")}))))
                    .await
            }
        });
        for (number, result) in results.iter().enumerate() {
            assert_eq!(result.output().as_deref(), Some(&*format!("1 t{number}")), "{result}");
        }
    }
}

/// The table and the globals of both plugins.
const PLACES: &str =
    "(table $t 10 20000 funcref) (global $a (mut i32) (i32.const 0)) (global $b (mut i64) (i64.const 0))
    (elem declare func $f) (func $f)";

/// Returns a plugin that fills its memory, its table and its globals.
pub(crate) fn marking() -> Vec<u8> {
    let fill = "(drop (memory.grow (i32.const 64))) (memory.fill (i32.const 65536) (i32.const 0xa5) (i32.const 4000000))
        (drop (table.grow $t (ref.func $f) (i32.const 19000))) (table.fill $t (i32.const 0) (ref.func $f) (i32.const 19010))
        (global.set $a (i32.const 0xa5a5a5a5)) (global.set $b (i64.const -1)) {done}";
    Wat::new(Told::new("mark")).extra(PLACES).execute(fill).build()
}

/// Returns a plugin that traps if its memory, table or globals hold leftover data.
pub(crate) fn searching() -> Vec<u8> {
    let search = "(local $at i32) (drop (memory.grow (i32.const 64))) (local.set $at (i32.const 65536))
        (loop (if (i32.load (local.get $at)) (then unreachable))
          (br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (i32.const 4065536))))
        (drop (table.grow $t (ref.null func) (i32.const 19000))) (local.set $at (i32.const 0))
        (loop (if (i32.eqz (ref.is_null (table.get $t (local.get $at)))) (then unreachable))
          (br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 19010))))
        (if (i32.or (global.get $a) (i64.ne (global.get $b) (i64.const 0))) (then unreachable)) {done}";
    Wat::new(Told::new("search")).extra(PLACES).execute(search).build()
}

#[test]
fn memory_is_cleared_between_plugins() {
    let (mark, search) = (marking(), searching());
    let oracle = Oracle::new(|world, builder| {
        std::fs::write(world.plugins().join("mark.wasm"), &mark).unwrap();
        std::fs::write(world.plugins().join("search.wasm"), &search).unwrap();
        builder.plugins(world.plugins())
    });
    let results = oracle.watch(ENOUGH, |stage| {
        let stage = stage.clone();
        async move {
            let names = (0..32).map(|n| if n % 2 == 0 { "mark" } else { "search" });
            all(&stage, names.map(|name| Call::new(name, json!({})))).await
        }
    });
    assert!(results.iter().all(ToolResult::is_success), "{results:?}");
}

#[test]
fn plugin_removed_during_its_call_completes_it() {
    let oracle = Oracle::new(|_, builder| builder.plugins(CONCURRENCY_COUNT.directory()));
    let digest = oracle.stage.host.plugins()[0].digest();
    // `watch` may repeat its work, but the tool can be unregistered only once.
    let gone = std::sync::Once::new();
    let call = || Call::new("count_slowly", json!({"text": "started"}));
    let results = oracle.watch(ENOUGH, |stage| {
        let stage = stage.clone();
        let gone = &gone;
        async move {
            let running = stage.begin(&stage.session(), call());
            let is_there = !gone.is_completed();
            if is_there {
                stage.started(1).await;
            }
            gone.call_once(|| {
                stage.host.registry().unregister("count_slowly").unwrap();
            });
            let first = running.await.unwrap();
            if is_there {
                assert_eq!(
                    (first.output().as_deref(), first.digest()),
                    (Some("1 started"), Some(digest)),
                    "{first}"
                );
            } else {
                assert_eq!(class(&first), "not_found");
            }
            let second = stage.host.dispatch(stage.host.session(), call()).await;
            vec![first, second]
        }
    });
    assert_eq!(class(&results[1]), "not_found");
}

#[test]
fn calls_beyond_the_sandboxes_wait_and_are_cancelled_together() {
    let oracle = Oracle::new(|_, builder| builder.plugins(CANCEL_SLEEP.directory()));
    let results = oracle.watch(ENOUGH, |stage| {
        let stage = stage.clone();
        async move {
            let session = Arc::new(stage.host.new_session("s").concurrency(256).build());
            let tasks: Vec<_> =
                (0..400).map(|_| stage.begin(&session, Call::new("sleep", json!({})))).collect();
            stage.started(128).await;
            while session.in_flight() < 400 {
                tokio::task::yield_now().await;
            }
            assert_eq!(session.cancel_all(), 400);
            let mut results = Vec::new();
            for task in tasks {
                results.push(task.await.unwrap());
            }
            results
        }
    });
    assert!(results.iter().all(|result| class(result) == "cancelled"));
}
