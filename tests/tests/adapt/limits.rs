//! Hostile sizes, endless functions and cancellation.

use super::depot;
use palisade::SideEffects::None as Pure;
use palisade::{Call, CancellationToken, sandbox::Adaptation};
use palisade_tests::guest::ADAPT_DEPOT;
use palisade_tests::oracle::{around, around_both};
use palisade_tests::{Case, Stage};
use serde_json::json;
use std::time::Duration;

/// More than a test waits for.
const ENOUGH: Duration = Duration::from_secs(20);

fn counting(tool: &str, count: u32) -> Case {
    depot(Pure, tool).input(json!({"count": count})).timeout(ENOUGH)
}

#[test]
fn list_of_ten_million_elements_is_not_lifted() {
    assert_eq!(around_both(&counting("work_numbers", 10_000_000)).limit(), "hostcall_data");
    for tool in ["work_octets", "work_all_rights", "work_colours"] {
        assert_eq!(around(&counting(tool, 10_000_000)).limit(), "hostcall_data", "{tool}");
    }
}

#[test]
fn largest_lists_stay_within_the_memory_of_a_call() {
    for (tool, least) in [
        ("work_numbers", 50_000),
        ("work_octets", 50_000),
        ("work_all_rights", 5_000),
        ("work_colours", 10_000),
    ] {
        let fits = |count: u32| {
            let seen = around(&counting(tool, count));
            seen.result["success"] == true || {
                assert_eq!(seen.limit(), "hostcall_data", "{tool} {count}");
                false
            }
        };
        assert!(fits(least), "{tool}");
        let (mut good, mut bad) = (least, 10_000_000);
        while bad - good > good / 16 {
            let middle = good + (bad - good) / 2;
            if fits(middle) { good = middle } else { bad = middle }
        }
    }
}

#[test]
fn input_of_many_bytes_is_charged_to_the_call() {
    let data = |length: usize| {
        let input = json!({"data": "A".repeat(length)});
        depot(Pure, "echo_same_bytes").input(input).timeout(ENOUGH)
    };
    assert_eq!(around(&data(48 << 10)).result["success"], true);
    assert_eq!(around(&data(1_000_000)).limit(), "hostcall_data", "the answer is too large");
    assert_eq!(around(&data(1_000_000).memory_mib(4)).limit(), "memory");
    let refused = around(&data(2 << 20));
    assert!(refused.message("validation_error").contains("1048576"), "{:#}", refused.result);
}

#[test]
fn endless_function_ends_at_its_deadline() {
    for tool in ["work_spin", "work_sleep"] {
        let seen = around_both(
            &depot(Pure, tool)
                .input(json!({"milliseconds": 60_000}))
                .timeout(Duration::from_millis(200)),
        );
        assert!(seen.message("timeout").contains("200ms"), "{:#}", seen.result);
    }
}

#[tokio::test]
async fn cancelled_function_ends_at_once() {
    let stage = Stage::new(&[], |builder| builder.adapt(ADAPT_DEPOT.file(), Adaptation::new(Pure)));
    let session = stage.session();
    for tool in ["work_spin", "work_sleep"] {
        let cancel = CancellationToken::new();
        let call = Call::new(tool, json!({"milliseconds": 60_000}))
            .with_cancellation(cancel.clone())
            .with_timeout(ENOUGH);
        let before = stage.which_started().len();
        let (result, ()) = tokio::join!(stage.host.dispatch(&session, call), async {
            stage
                .recorder
                .until(|events| {
                    events.iter().filter(|event| event.name() == "tool.called").count() > before
                })
                .await;
            cancel.cancel();
        });
        assert_eq!(result.to_json()["error"]["class"], "cancelled", "{tool}");
    }
}
