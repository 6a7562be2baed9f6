//! Guests that compute forever: in a call, in a start function, while they are described, and while
//! they allocate memory for arguments.

use palisade::{CacheMode, Host, plugins::Shipped};
use palisade_tests::guest::{HOSTILE_ECHO, cache};
use palisade_tests::oracle::{self, Oracle, around, around_both, served};
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::{Observed, Wat};
use serde_json::json;

use super::{ENOUGH, SHORT, case, raw};

#[track_caller]
fn was_stopped(seen: &Observed) {
    assert_eq!(seen.error("timeout")["detail"], json!({"limit": "timeout", "value_ms": 300}));
}

#[test]
fn loop_is_stopped_in_time() {
    was_stopped(&around_both(&case(&raw().execute("(loop (br 0)) unreachable")).timeout(SHORT)));
    let counted = "(local $n i32) (loop (br_if 0 (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000000)))) {done}";
    assert_eq!(around_both(&case(&raw().execute(counted))).output(), "done");
}

#[test]
fn loops_of_every_shape_are_stopped_in_time() {
    for code in [
        "(loop (drop (call $again)) (br 0)) unreachable",
        "(loop (br_table 0 0 (i32.const 0))) unreachable",
        "(drop (return_call $again)) unreachable",
        "(call $again)",
    ] {
        let plugin = raw().execute(code).extra(&format!(
            "(func $again (result i32) {})",
            if code.contains("loop") { "(i32.const 0)" } else { "(return_call $again)" }
        ));
        was_stopped(&around(&case(&plugin).timeout(SHORT)));
    }
}

/// The engine checks no deadline when a call returns. Without inserted checks, the returns from
/// this recursion take seconds.
#[test]
fn returns_from_a_recursion_are_stopped_in_time() {
    // The loop never runs, so that it is no check.
    let straight = "(global.set $root (f64.sqrt (global.get $root)))".repeat(80);
    let straight = format!("{straight} (if (i32.const 0) (then (loop)))").repeat(1_200);
    let plugin = raw().execute("(call $deep (i32.const 6000)) unreachable").extra(&format!(
        "(global $root (mut f64) (f64.const 2)) (func $deep (param i32) \
         (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1))))) {straight})"
    ));
    was_stopped(&around(&case(&plugin).timeout(SHORT)));
}

/// A memory of zeros before the core module, so that the core module calls the host by itself.
const LOG: &str = r#"(import "palisade:tool/host@0.1.0" (instance $host
    (type $level' (enum "trace" "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $level')))
    (export "log" (func (param "level" $level) (param "message" string)))))
  (core module $zeros (memory (export "memory") 20))
  (core instance $zeros (instantiate $zeros))
  (core func $log (canon lower (func $host "log") (memory (core memory $zeros "memory"))))
  (core instance $lowered (export "log" (func $log)))"#;

#[test]
fn host_calls_behind_the_returns_of_a_recursion_are_stopped_in_time() {
    const TEXT: &str = "(i32.const 0) (i32.const 0) (i32.const 1000000)";
    let indirect = format!("(call_indirect (param i32 i32 i32) {TEXT} (i32.const 0))");
    let tail_calls =
        "(func $tail (return_call $log (i32.const 0) (i32.const 0) (i32.const 1000000)))";
    for (fields, call, calls, depth) in [
        ("", format!("(call $log {TEXT})"), 100, 1_000),
        // As few as the straight code between two checks has none for.
        ("(table funcref (elem $log))", indirect, 3, 6_000),
        (tail_calls, "(call $tail)".to_owned(), 3, 6_000),
    ] {
        let plugin = raw()
            .importing(LOG)
            .core_importing(r#"(import "e" "log" (func $log (param i32 i32 i32)))"#)
            .with(r#"(with "e" (instance $lowered))"#)
            .execute(&format!("(call $deep (i32.const {depth})) unreachable"))
            .extra(&format!(
                "{fields} (func $deep (param i32) \
                 (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1))))) {})",
                call.repeat(calls)
            ));
        was_stopped(&around(&case(&plugin).timeout(SHORT)));
    }
}

#[test]
fn looping_start_function_counts_against_the_timeout() {
    was_stopped(&around_both(&case(&raw().starting("(loop (br 0))")).timeout(SHORT)));
    assert_eq!(around(&case(&raw().starting("nop"))).output(), "done");
}

#[test]
fn trapping_start_function_fails_the_call() {
    assert_eq!(around_both(&case(&raw().starting("unreachable"))).kind(), "trap");
}

#[test]
fn looping_or_trapping_description_rejects_only_its_plugin() {
    if leaves_out(&[Group::F]) {
        return;
    }
    for code in ["(loop (br 0)) unreachable", "unreachable"] {
        let bad = raw().definitions(code).build();
        let loaded = oracle::loading(ENOUGH, |world| {
            std::fs::write(world.plugins().join("a-bad.wasm"), &bad).unwrap();
            std::fs::copy(HOSTILE_ECHO.file(), world.plugins().join("good.wasm")).unwrap();
        });
        assert_eq!(loaded.tools, ["echo"]);
        assert!(
            loaded.reason().contains("asking it for its tools failed"),
            "{:?}",
            loaded.rejected
        );
    }
}

/// Returns a plugin with this allocator for arguments from the host.
fn giving(code: &str) -> Wat {
    raw().realloc(code)
}

#[test]
fn endless_argument_allocation_ends_with_the_call() {
    was_stopped(&around_both(&case(&giving("(loop (br 0)) unreachable")).timeout(SHORT)));
    assert_eq!(around(&case(&raw())).output(), "done");
}

#[test]
fn invalid_argument_allocation_fails_the_call() {
    for code in [
        "unreachable",
        "(i32.const -8)",
        "(i32.const 0x7ffffff0)",
        "(i32.const 3)",
        "(i32.const -1)",
    ] {
        assert_eq!(around(&case(&giving(code))).kind(), "trap", "{code}");
    }
}

#[test]
fn argument_allocation_cannot_call_the_host() {
    let plugin = giving("(drop (call $now)) (i32.const 4096)").with_clock();
    assert_eq!(around_both(&case(&plugin)).kind(), "trap");
}

#[test]
fn overlapping_argument_allocation_harms_only_the_guest() {
    // All allocations share one address, so the arguments are garbage; the guest does not read
    // them.
    assert_eq!(around(&case(&giving("(i32.const 65536)"))).output(), "done");
}

#[test]
fn endless_memory_fill_is_stopped_in_time() {
    let grow = "(drop (memory.grow (i32.const 500)))";
    for bulk in [
        "(memory.fill (i32.const 65536) (i32.const 7) (i32.const 30000000))",
        "(memory.copy (i32.const 65536) (i32.const 131072) (i32.const 30000000))",
        "(memory.copy (i32.const 131072) (i32.const 65536) (i32.const 30000000))",
    ] {
        let endless = raw().execute(&format!("{grow} (loop {bulk} (br 0)) unreachable"));
        was_stopped(&around(&case(&endless).timeout(SHORT)));
        assert_eq!(
            around(&case(&raw().execute(&format!("{grow} {bulk} {{done}}")))).output(),
            "done"
        );
    }
}

#[test]
fn pings_are_answered_beside_endless_memory_fills() {
    let endless = "(drop (memory.grow (i32.const 1600)))
        (loop (memory.fill (i32.const 65536) (i32.const 7) (i32.const 104857600)) (br 0)) unreachable";
    let told = served(&case(&raw().execute(endless)).timeout(SHORT), 4);
    assert_eq!(told.answers.len(), 4);
}

/// Two components, of which one passes a text of 80 MiB to the other. The engine's own code copies
/// it.
const COPYING: &str = r#"
  (component $receiver
    (core module $main
      (memory (export "memory") 0)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32)
        (if (i32.eqz (memory.size)) (then (drop (memory.grow (i32.const 650)))))
        (i32.const 64))
      (func (export "take") (param i32 i32)))
    (core instance $main (instantiate $main))
    (func (export "take") (param "text" string)
      (canon lift (core func $main "take")
        (memory (core memory $main "memory")) (realloc (core func $main "realloc")))))
  (component $sender
    (import "take" (func $take (param "text" string)))
    (core module $memory (memory (export "memory") 0))
    (core instance $memory (instantiate $memory))
    (core func $take' (canon lower (func $take)
      (memory (core memory $memory "memory")) string-encoding=utf16))
    (core module $main
      (import "imports" "memory" (memory 0))
      (import "imports" "take" (func $take (param i32 i32)))
      (func (export "give") (param $length i32)
        (if (i32.eqz (memory.size)) (then (drop (memory.grow (i32.const 1300)))))
        (call $take (i32.const 0) (local.get $length))))
    (core instance $main (instantiate $main (with "imports" (instance
      (export "memory" (memory $memory "memory")) (export "take" (func $take'))))))
    (func (export "give") (param "length" u32) (canon lift (core func $main "give"))))
  (instance $receiver (instantiate $receiver))
  (instance $sender (instantiate $sender (with "take" (func $receiver "take"))))"#;

#[test]
fn endless_copies_between_components_are_stopped_in_time() {
    let copying = |code: &str| {
        let import = r#"(import "give" (func $give (param "length" u32)))
            (core func $give' (canon lower (func $give)))"#;
        case(
            &raw()
                .importing(import)
                .core_importing(r#"(import "sender" "give" (func $give (param i32)))"#)
                .with(r#"(with "sender" (instance (export "give" (func $give'))))"#)
                .composed(COPYING, r#"(with "give" (func $sender "give"))"#)
                .execute(code),
        )
    };
    let give = "(call $give (i32.const 42000000))";
    was_stopped(&around(&copying(&format!("(loop {give} (br 0)) unreachable")).timeout(SHORT)));
    assert_eq!(around(&copying(&format!("{give} {{done}}"))).output(), "done");
}

#[test]
fn infinite_recursion_is_a_failure() {
    let down = "(func $down (param i64) (result i64) (i64.add (call $down (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))";
    let seen =
        around_both(&case(&raw().extra(down).execute("(drop (call $down (i64.const 0))) {done}")));
    assert_eq!((seen.kind(), seen.message("execution_error")), ("trap", "the plugin crashed"));
}

#[test]
fn infinite_recursion_through_the_host_is_a_failure() {
    let down = "(func $down (result i64) (i64.add (call $now) (call $down)))";
    let seen = around(&case(&raw().with_clock().extra(down).execute("(drop (call $down)) {done}")));
    assert_eq!((seen.kind(), seen.message("execution_error")), ("trap", "the plugin crashed"));
}

#[test]
fn thousand_hosts_leave_no_thread() {
    if leaves_out(&[Group::C]) {
        return;
    }
    Oracle::new(|_, builder| builder).watch(ENOUGH, |stage| {
        for _ in 0..1000 {
            let builder = Host::builder().workspace(stage.world.root()).shipped(Shipped::LeftOut);
            drop(builder.cache(CacheMode::Directory(cache())).build().unwrap());
        }
        async {}
    });
}
