//! Timeouts: in a loop, in a sleep, as set by the plugin, and as set by the caller.

use std::time::Duration;

use palisade::{Call, ToolResult, sandbox::limits::Limits};
use palisade_tests::case::{advance_until_ended, block_on};
use palisade_tests::guest::LIMITS_TIME;
use palisade_tests::stage::class;
use palisade_tests::{Case, Observed, Stage};
use serde_json::json;
use tokio::time::Instant;

/// A timeout that no slow machine reaches for work of milliseconds.
const ENOUGH: Duration = Duration::from_secs(30);
/// A timeout that expires soon.
const SHORT: Duration = Duration::from_millis(200);

fn call(tool: &str, ms: u64, timeout: Duration) -> Observed {
    Case::new(LIMITS_TIME, tool).input(json!({"ms": ms})).timeout(timeout).check()
}

#[track_caller]
fn was_stopped_after(seen: &Observed, limit_ms: u64) {
    let error = seen.error("timeout");
    assert_eq!(error["detail"], json!({"limit": "timeout", "value_ms": limit_ms}));
    assert_eq!(error["is_recoverable"], true);
    let took: Vec<Option<f64>> =
        seen.results().map(|(_, result)| result["duration_ms"].as_f64()).collect();
    assert_eq!(took.len(), 2, "through the library and through the program");
    assert!(
        took.iter().all(|took| took.is_some_and(|took| took >= limit_ms as f64)),
        "{took:?}: {:#}",
        seen.result
    );
}

#[test]
fn overdue_guest_is_stopped_at_its_deadline() {
    // On a driven clock, which goes in seconds and so reaches the deadline long before the real one.
    let (timeout, step) = (Duration::from_secs(45), Duration::from_secs(1));
    for tool in ["sleep", "compute"] {
        let stage = Stage::new(&[LIMITS_TIME], |builder| builder);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (result, elapsed) = runtime.block_on(async {
            // The first call loads the code, which takes real time.
            let first = stage.host.call(tool, json!({"ms": 1}), json!({})).await;
            assert!(first.is_success(), "{first}");
            tokio::time::pause();
            let call = Call::new(tool, json!({"ms": 3_600_000})).with_timeout(timeout);
            let begun = Instant::now();
            let call = stage.begin(&stage.session(), call);
            (
                advance_until_ended(call, async || tokio::time::advance(step).await).await,
                begun.elapsed(),
            )
        });
        assert_eq!(class(&result), "timeout", "{tool}: {result}");
        for took in [elapsed, result.duration()] {
            assert!((timeout..=timeout + step).contains(&took), "{tool}: {took:?}");
        }
    }
}

#[test]
fn time_in_a_loop_obeyed() {
    assert_eq!(call("compute", 5, ENOUGH).output(), "computed");
}

#[test]
fn time_in_a_loop_violated() {
    was_stopped_after(&call("compute", 3_600_000, SHORT), 200);
}

#[test]
fn time_in_a_sleep_obeyed() {
    assert_eq!(call("sleep", 5, ENOUGH).output(), "slept");
}

#[test]
fn time_in_a_sleep_violated() {
    was_stopped_after(&call("sleep", 3_600_000, SHORT), 200);
}

#[test]
fn plugins_own_time_obeyed() {
    assert_eq!(
        Case::new(LIMITS_TIME, "impatient").input(json!({"ms": 1})).check().output(),
        "slept"
    );
}

#[test]
fn plugins_own_time_violated() {
    let seen = Case::new(LIMITS_TIME, "impatient").input(json!({"ms": 3_600_000})).check();
    was_stopped_after(&seen, 100);
}

#[test]
fn callers_timeout_overrides_the_plugins() {
    assert_eq!(call("impatient", 150, ENOUGH).output(), "slept");
}

#[test]
fn plugin_may_only_lower_the_timeout_of_its_class() {
    let case = Case::new(LIMITS_TIME, "patient");
    let world = case.world();
    let host = case.builder(&world).build().unwrap();
    let time = |tool: &str| host.time_limit(&host.registry().get(tool).unwrap(), None);
    assert_eq!(time("patient"), Duration::from_secs(60));
    assert_eq!(time("impatient"), Duration::from_millis(100));
    assert_eq!(time("sleep"), Duration::from_secs(60));
}

#[test]
fn operators_timeout_applies_to_all_tools_and_callers_to_ten_minutes() {
    let case = Case::new(LIMITS_TIME, "sleep").input(json!({"ms": 3_600_000}));
    let world = case.world();
    let limits = Limits { timeout: Some(SHORT), ..Limits::default() };
    let host = case.builder(&world).limits(limits).build().unwrap();
    let result: ToolResult = block_on(host.dispatch(host.session(), case.to_call(&world)));
    assert_eq!(result.to_json()["error"]["detail"]["value_ms"], 200);
    assert!(result.duration() >= SHORT, "{:?}", result.duration());
    let tool = host.registry().get("sleep").unwrap();
    assert_eq!(host.time_limit(&tool, Some(Duration::from_secs(900))), Duration::from_secs(600));
}

#[test]
fn calls_timeout_covers_no_other_call() {
    let case = Case::new(LIMITS_TIME, "sleep").input(json!({"ms": 3_600_000})).timeout(SHORT);
    let world = case.world();
    let host = case.builder(&world).build().unwrap();
    let results = block_on(async {
        let slow = host.dispatch(host.session(), case.to_call(&world));
        let fast = host.call("sleep", json!({"ms": 1}), json!({}));
        tokio::join!(slow, fast)
    });
    assert_eq!(class(&results.0), "timeout");
    assert!(results.0.duration() >= SHORT, "{:?}", results.0.duration());
    assert_eq!(results.1.output().as_deref(), Some("slept"));
}
