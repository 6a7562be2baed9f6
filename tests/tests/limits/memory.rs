//! Limits on the total memory of a call.

use palisade_tests::guest::LIMITS_MEMORY;
use palisade_tests::{Case, Observed};
use serde_json::json;

fn call(tool: &str, mib: u64, limit: u64) -> Observed {
    Case::new(LIMITS_MEMORY, tool).input(json!({"mib": mib})).memory_mib(limit).check()
}

#[test]
fn memory_obeyed() {
    let seen = call("take", 16, 32);
    assert_eq!(seen.output(), "16777216 bytes");
    let peak = seen.result["usage"]["peak_memory_bytes"].as_u64().unwrap();
    assert!((16 << 20..=32 << 20).contains(&peak), "{peak}");
}

#[test]
fn memory_violated() {
    let seen = call("take", 64, 32);
    assert_eq!(seen.limit(), "memory");
    assert_eq!(seen.result["error"]["detail"]["value"], 32 << 20);
    assert!(seen.message("resource_exhausted").contains("limits.memory"), "{:#}", seen.result);
    let peak = seen.result["usage"]["peak_memory_bytes"].as_u64().unwrap();
    assert!(peak <= 32 << 20, "{peak}");
}

#[test]
fn default_memory_obeyed() {
    assert_eq!(
        Case::new(LIMITS_MEMORY, "take").input(json!({"mib": 100})).check().output(),
        "104857600 bytes"
    );
}

#[test]
fn default_memory_violated() {
    let seen = Case::new(LIMITS_MEMORY, "take").input(json!({"mib": 128})).check();
    assert_eq!(
        (seen.limit(), &seen.result["error"]["detail"]["value"]),
        ("memory", &json!(128 << 20))
    );
}

#[test]
fn guest_handling_refused_memory_succeeds() {
    assert_eq!(call("ask", 64, 32).output(), "refused, without harm");
    assert_eq!(call("ask", 8, 32).output(), "granted");
}
