//! Guests and clients that send little and make the host hold much.

use palisade::{Call, SideEffects, sandbox::limits::Limits};
use palisade_tests::guest::{HOSTILE_ABUSE, LIMITS_FILES};
use palisade_tests::oracle::{Oracle, around, served};
use palisade_tests::program::test_again;
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::{Case, Plugins, expanding_json};
use serde_json::json;

use super::{ENOUGH, SHORT, case, raw};

/// The number of members in a result of 3.5 MB.
const MANY: u32 = 500_000;

fn expanding(members: u32) -> Case {
    let plugin = expanding_json::answering("raw", members).build();
    Case::new(Plugins::Component("raw".to_owned(), plugin), "raw").timeout(ENOUGH)
}

#[test]
fn expanding_result_keeps_its_deadline() {
    if leaves_out(&[Group::C]) {
        return;
    }
    let seen = around(&expanding(MANY).timeout(SHORT));
    assert!(
        seen.result["success"] == true
            || ["timeout", "resource_exhausted"].contains(&class(&seen.result))
    );
}

#[test]
fn concurrent_expanding_results_are_bounded_and_released() {
    let told = served(&expanding(MANY), 4);
    assert_eq!(told.answers.len(), 4);
    assert_eq!(served(&expanding(1000), 4).answers.len(), 4);
}

#[test]
fn renames_below_deep_directories_count_by_length() {
    if leaves_out(&[Group::G]) {
        return;
    }
    let shuffle = |amount: u64| {
        let case = Case::new(LIMITS_FILES, "shuffle").input(json!({"amount": amount}));
        case.allow(SideEffects::Write).timeout(ENOUGH * 2).memory_mib(16)
    };
    let seen = around(&shuffle(4_200));
    assert!(
        seen.result["success"] == true || seen.result["error"]["class"] == "resource_exhausted"
    );
    assert_eq!(around(&shuffle(3)).output(), "3 renamed");
}

#[test]
fn waiting_events_count_by_length() {
    let oracle = Oracle::new(|_, builder| {
        let limits = Limits { memory: 32 << 20, ..Limits::default() };
        builder.plugins(HOSTILE_ABUSE.directory()).limits(limits)
    });
    let emit = || Call::new("abuse", json!({"how": "emit", "amount": 1 << 20}));
    oracle.watch(ENOUGH, |stage| {
        let stage = stage.clone();
        async move {
            let stream = stage.host.events();
            for _ in 0..200 {
                assert!(stage.host.dispatch(stage.host.session(), emit()).await.is_success());
                stage.recorder.forget();
            }
            assert!(stream.missed() > 0);
        }
    });
}

/// Set in the environment of the child process in which each memory has room to grow.
const IN_PLACE: &str = "PALISADE_TESTS_GROWS_WITHOUT_A_POOL";
/// Set in the environment of the child process in which each memory that grows is copied.
const COPIED: &str = "PALISADE_TESTS_GROWS_BY_COPYING";
const TEST: &str = "memory_account::memory_growing_without_a_pool_counts_while_copied";

#[test]
fn memory_growing_without_a_pool_counts_while_copied() {
    if leaves_out(&[Group::A]) {
        return;
    }
    // A copy exists beside the memory, so little more than half of the limit can be reached.
    for (variable, mib) in [(IN_PLACE, 120..=128), (COPIED, 64..=96)] {
        if std::env::var_os(variable).is_some() {
            let greedy =
                "(loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) {done}";
            let seen = around(&case(&raw().execute(greedy)));
            let peak = seen.result["usage"]["peak_memory_bytes"].as_u64().unwrap() >> 20;
            assert!(mib.contains(&peak), "{variable}: {peak} MiB");
            return;
        }
    }
    test_again("-v 2500000", TEST, IN_PLACE);
    test_again("-v 1200000", TEST, COPIED);
}

fn class(result: &serde_json::Value) -> &str {
    result["error"]["class"].as_str().unwrap_or_default()
}
