//! Malformed results below the SDK, which a component can return but no Rust type can express.

use palisade_tests::wat::Told;
use palisade_tests::{Case, Observed, Plugins, Wat};

fn call(plugin: &Wat) -> Observed {
    Case::new(Plugins::Component("raw".to_owned(), plugin.build()), "raw").check()
}

fn raw() -> Wat {
    Wat::new(Told::new("raw"))
}

#[test]
fn text_format_plugin_runs_like_any_other() {
    assert_eq!(call(&raw()).output(), "done");
}

#[test]
fn invalid_utf8_text_is_a_trap() {
    // Overwrites the text `done` with four bytes that are invalid in UTF-8.
    let seen = call(&raw().execute("(i32.store (i32.const 1024) (i32.const -1)) {done}"));
    assert_eq!(seen.kind(), "trap");
}

#[test]
fn result_beyond_the_memory_is_a_trap() {
    assert_eq!(call(&raw().execute("(i32.const -64)")).kind(), "trap");
    assert_eq!(call(&raw().execute("(i32.const 1)")).kind(), "trap");
}

#[test]
fn list_longer_than_the_memory_is_a_trap() {
    // The second word of the output is the length of the list of blocks.
    let seen = call(
        &raw().execute("(i32.store (i32.add {done} (i32.const 8)) (i32.const 0x7ffffff)) {done}"),
    );
    assert!(
        ["trap"].contains(&seen.result["error"]["detail"]["kind"].as_str().unwrap_or("none")),
        "{:#}",
        seen.result
    );
}

#[test]
fn undefined_variant_case_is_a_trap() {
    assert_eq!(call(&raw().execute("(i32.store8 {done} (i32.const 9)) {done}")).kind(), "trap");
}

#[test]
fn guests_own_trap_is_reported_as_a_trap() {
    let seen = call(&raw().execute("unreachable"));
    assert_eq!((seen.kind(), seen.message("execution_error")), ("trap", "the plugin crashed"));
}
