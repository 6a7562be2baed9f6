//! Guests that want memory and tables: in one piece, in many, from the start, and concurrently.

use std::sync::Barrier;
use std::time::Duration;

use palisade::{CallMode, ToolResult, sandbox::limits::Limits};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::oracle::{self, Oracle, around, around_both};
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::wat::{Told, Wat, binary};
use serde_json::json;

use super::{ENOUGH, case, raw};

/// Grows the memory until the host refuses.
const GREEDY: &str = "(loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))";

#[test]
fn guest_handling_refused_memory_succeeds() {
    let seen = around_both(&case(&raw().execute(&format!("{GREEDY} {{done}}"))).memory_mib(32));
    assert_eq!(seen.output(), "done");
    assert!(seen.result["usage"]["peak_memory_bytes"].as_u64().unwrap() <= 32 << 20);
}

#[test]
fn guest_trapping_after_refused_memory_reports_the_limit() {
    let seen = around_both(&case(&raw().execute(&format!("{GREEDY} unreachable"))).memory_mib(32));
    assert_eq!(
        (seen.limit(), &seen.result["error"]["detail"]["value"]),
        ("memory", &json!(32 << 20))
    );
    assert!(seen.message("resource_exhausted").contains("limits.memory"), "{:#}", seen.result);
}

#[test]
fn overflowing_growth_is_refused() {
    for pages in ["-1", "65536", "0x7fffffff"] {
        let plugin = raw().execute(&format!("(drop (memory.grow (i32.const {pages}))) {{done}}"));
        assert_eq!(around(&case(&plugin)).output(), "done", "{pages}");
    }
}

#[test]
fn initial_memory_beyond_the_limit_ends_the_call() {
    let big = |pages: u32| {
        raw().importing(&format!(
            "(core module $big (memory {pages})) (core instance (instantiate $big))"
        ))
    };
    assert_eq!(around_both(&case(&big(640)).memory_mib(32)).limit(), "memory");
    assert_eq!(around(&case(&big(640)).memory_mib(64)).output(), "done");
    let reason = oracle::loading_bytes(ENOUGH, &big(60_000).build()).reason().to_owned();
    assert!(reason.starts_with("it "), "{reason}");
}

#[test]
fn tables_beyond_the_limit_are_refused() {
    for table in ["(table 4294967295 funcref)", "(table 1000000 funcref)"] {
        let loaded = oracle::loading_bytes(ENOUGH, &raw().extra(table).build());
        assert!(
            loaded.rejected.len() == 1 && loaded.tools.is_empty(),
            "{table}: {:?}",
            loaded.tools
        );
    }
    let many = "(core module $t (table 19000 funcref) (table 19000 funcref)) ".to_owned();
    let tables = |instances: usize| {
        raw().importing(&(many.clone() + &"(core instance (instantiate $t))".repeat(instances)))
    };
    assert_eq!(around(&case(&tables(2))).output(), "done");
    let loaded = oracle::loading_bytes(ENOUGH, &tables(20).build());
    assert!(loaded.reason().contains("tables"), "{:?}", loaded.rejected);
}

#[test]
fn table_growth_beyond_the_limit_ends_the_call() {
    let grow = |by: u32| {
        let code = format!(
            "(if (i32.eq (table.grow $t (ref.null func) (i32.const {by})) (i32.const -1)) (then unreachable)) {{done}}"
        );
        case(&raw().extra("(table $t 1 funcref)").execute(&code))
    };
    assert_eq!(around_both(&grow(200_000)).limit(), "tables");
    assert_eq!(around(&grow(10_000)).output(), "done");
}

#[test]
fn disabled_features_are_refused_by_name() {
    for (module, feature) in [
        ("(memory i64 1)", "memory64"),
        ("(memory 1 1 shared)", "threads"),
        ("(type (struct))", "gc"),
        ("(type (array i8))", "gc"),
        ("(tag)", "exceptions"),
        ("(memory 1 (pagesize 1))", "custom-page-sizes"),
    ] {
        let loaded =
            oracle::loading_bytes(ENOUGH, &binary(&format!("(component (core module {module}))")));
        assert!(loaded.reason().contains(feature), "{module}: {:?}", loaded.rejected);
    }
}

/// The engine keeps the elements of a passive segment once for each instance.
#[test]
fn passive_element_segments_take_no_memory_of_the_host() {
    let component = |elements: usize| {
        let module =
            format!("(core module $m (elem funcref {}))", "(ref.null func)".repeat(elements));
        let instances = "(core instance (instantiate $m))".repeat(100);
        binary(&format!("(component {module} {instances})"))
    };
    let loaded = oracle::loading_bytes(ENOUGH, &component(1_000_000));
    assert!(loaded.reason().contains("elements in passive segments"), "{:?}", loaded.rejected);
    let loaded = oracle::loading_bytes(ENOUGH, &component(1_000));
    assert!(!loaded.reason().contains("elements in passive segments"), "{:?}", loaded.rejected);
}

/// Returns a host whose calls may hold `mib` MiB together and 128 MiB each.
fn sharing(mib: u64) -> Oracle {
    let plugin = raw().execute("(if (i32.eq (memory.grow (i32.const 1600)) (i32.const -1)) (then unreachable)) (memory.fill (i32.const 65536) (i32.const 7) (i32.const 100000000)) {done}");
    let bytes = plugin.build();
    let oracle = Oracle::new(|world, builder| {
        std::fs::write(world.plugins().join("raw.wasm"), &bytes).unwrap();
        let limits = Limits { total_memory: mib << 20, ..Limits::default() };
        builder.plugins(world.plugins()).limits(limits).concurrency(64)
    });
    oracle.at_once(usize::try_from(mib / 128).unwrap())
}

/// Makes concurrent calls, each on a thread of its own.
fn at_once(stage: &Stage, calls: usize) -> Vec<ToolResult> {
    let meet = Barrier::new(calls);
    std::thread::scope(|scope| {
        let one = || {
            meet.wait();
            block_on(stage.host.call("raw", json!({}), json!({})))
        };
        let threads: Vec<_> = (0..calls).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn concurrent_memory_is_bounded_together() {
    let results = sharing(256).watch(ENOUGH, |stage| std::future::ready(at_once(stage, 64)));
    let (fine, refused): (Vec<_>, Vec<_>) = results.iter().partition(|result| result.is_success());
    // One plugin gets half of the total, so one call fits at a time; how many succeed depends on
    // timing.
    assert!(!fine.is_empty() && !refused.is_empty(), "{} and {}", fine.len(), refused.len());
    for result in refused {
        let error = result.error().unwrap().to_json();
        assert_eq!(
            (&error["detail"]["limit"], &error["detail"]["value"]),
            (&json!("total_memory"), &json!(256 << 20)),
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().contains("Limits::total_memory"), "{error}");
    }
}

#[test]
fn successive_calls_may_each_use_all_their_memory() {
    // One plugin gets half of the total: room for both calls.
    let oracle = sharing(512);
    for _ in 0..8 {
        let results = oracle.watch(ENOUGH, |stage| std::future::ready(at_once(stage, 2)));
        assert!(results.iter().all(ToolResult::is_success), "{results:?}");
    }
}

#[test]
fn guests_with_much_memory_end_at_their_deadline() {
    if leaves_out(&[Group::E]) {
        return;
    }
    const CALLS: usize = 20;
    let touched = "(drop (memory.grow (i32.const 1600))) (memory.fill (i32.const 65536) (i32.const 7) (i32.const 100000000))";
    let plugin = Wat::new(Told { class: 1, ..Told::new("raw") });
    let bytes = plugin.execute(&format!("{touched} (loop (br 0)) unreachable")).build();
    let time = Duration::from_secs(3);
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let oracle = Oracle::new(|world, builder| {
            std::fs::write(world.plugins().join("raw.wasm"), &bytes).unwrap();
            let limits = Limits { timeout: Some(time), total_memory: 8 << 30, ..Limits::default() };
            builder.plugins(world.plugins()).limits(limits).concurrency(64).call_mode(mode)
        });
        // The oracle checks how late each call ends.
        let results =
            oracle.at_once(CALLS).watch(ENOUGH, |stage| std::future::ready(at_once(stage, CALLS)));
        let held = |result: &ToolResult| {
            result.error().is_some_and(|error| error.to_json()["class"] == "timeout")
                && result.usage().peak_memory_bytes > 100 << 20
        };
        assert!(results.iter().all(held), "{mode:?}: {results:?}");
    }
}
