//! Guests that make the host hold memory, handles or time: through lists, resources, random
//! numbers, polls and streams.

use palisade::SideEffects;
use palisade_tests::Case;
use palisade_tests::guest::HOSTILE_ABUSE;
use palisade_tests::oracle::{around, around_both};
use palisade_tests::sample::sample_of;
use serde_json::json;

use super::{SHORT, abuse, case, raw};

#[test]
fn list_of_ten_million_strings_is_not_copied() {
    // 80 MB of zeros in the guest; as empty strings they would take 240 MB in the host.
    let files = |count: u32| {
        raw().answering(
            "(drop (memory.grow (i32.const 1300)))",
            &[(268, 1), (280, 131_072), (284, count)],
        )
    };
    assert_eq!(around_both(&case(&files(10_000_000))).limit(), "hostcall_data");
    assert_eq!(around(&case(&files(1000))).output(), "");
}

#[test]
fn nested_lists_are_bounded_together() {
    // Every block is the same text of 64 KiB: small in the guest, large in a host that copies each.
    let block = "(local $at i32) (local.set $at (i32.const 131072)) (drop (memory.grow (i32.const 100)))
        (loop (i32.store offset=4 (local.get $at) (i32.const 4194304)) (i32.store offset=8 (local.get $at) (i32.const 65536))
          (br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 36))) (i32.const 3000000))))";
    let plugin = raw().answering(block, &[(260, 131_072), (264, 60_000), (268, 1)]);
    assert_eq!(around(&case(&plugin)).limit(), "hostcall_data");
}

#[test]
fn undropped_resources_are_bounded() {
    for how in ["hold-pollables", "hold-streams", "hold-inputs"] {
        assert_eq!(around(&abuse(how, 100_000)).limit(), "handles", "{how}");
        assert_eq!(around(&abuse(how, 50)).output(), "50 held", "{how}");
    }
    assert_eq!(around_both(&abuse("hold-pollables", 100_000)).limit(), "handles");
}

#[test]
fn handles_of_guest_resources_are_bounded() {
    let making = |count: u32| {
        let step = "(i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1)))";
        raw()
            .importing("(type $r (resource (rep i32))) (core func $new (canon resource.new $r))")
            .core_importing(r#"(import "own" "new" (func $new (param i32) (result i32)))"#)
            .with(r#"(with "own" (instance (export "new" (func $new))))"#)
            .execute(&format!(
                "(local $n i32) (loop (drop (call $new (i32.const 7))) (br_if 0 {step} (i32.const {count})))) {{done}}"
            ))
    };
    assert_eq!(around_both(&case(&making(100_000))).limit(), "handles");
    assert_eq!(around(&case(&making(1000))).output(), "done");
}

#[test]
fn random_bytes_come_in_bounded_portions() {
    for amount in [1 << 40, u64::MAX, 65_537] {
        let seen = around(&abuse("random", amount));
        assert!(seen.result["success"] == false, "{amount}: {:#}", seen.result);
    }
    assert_eq!(around_both(&abuse("random", 65_536)).output(), "65536 bytes");
}

#[test]
fn endless_random_bytes_are_stopped_in_time() {
    let _ = around_both(&abuse("random-for-ever", 65_536).timeout(SHORT)).error("timeout");
}

#[test]
fn poll_of_a_million_is_refused_and_of_a_hundred_answered() {
    let seen = around_both(&abuse("poll-copies", 1_000_000));
    assert!(["handles", "hostcall_data"].contains(&seen.limit()), "{:#}", seen.result);
    assert_eq!(around(&abuse("poll-copies", 100)).output(), "100 ready");
}

#[test]
fn empty_poll_fails_the_call() {
    assert_eq!(around_both(&abuse("poll-copies", 0)).kind(), "trap");
}

#[test]
fn unpermitted_write_uses_no_memory() {
    for how in ["zeroes", "blocking-zeroes", "write-unasked", "splice"] {
        for &amount in &[1 << 26, u64::MAX, 1 << 40][..sample_of(3, 1)] {
            if how == "write-unasked" && amount > 1 << 26 {
                continue;
            }
            let seen = around(&abuse(how, amount));
            assert!(
                seen.result["success"] == false || how == "splice",
                "{how} {amount}: {:#}",
                seen.result
            );
            let peak = seen.result["usage"]["truncated_bytes"].as_u64().unwrap();
            assert!(peak < 1 << 27, "{how} {amount}: {peak}");
        }
    }
}

#[test]
fn hundred_thousand_empty_writes_use_no_memory() {
    assert_eq!(around(&abuse("write-nothing", 100_000)).output(), "written");
}

#[test]
fn standard_input_is_empty() {
    for amount in [0, 1, u64::MAX] {
        let seen = around_both(&abuse("input", amount));
        assert!(seen.output().starts_with("Err"), "{amount}: {}", seen.output());
    }
}

#[test]
fn extreme_file_times_and_sizes_never_crash() {
    for seconds in [0, 1 << 33, 1 << 62, u64::MAX] {
        let case =
            Case::new(HOSTILE_ABUSE, "extreme_times").input(json!({"how": "", "amount": seconds}));
        let seen = around(&case.allow(SideEffects::Write).arrange(|world| {
            world.file("file.txt", "inside");
        }));
        assert!(seen.output().ends_with(", quota"), "{seconds}: {}", seen.output());
        seen.left("file.txt", Some("inside"));
    }
}
