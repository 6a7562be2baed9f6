//! Guests with too much output, and malformed results.

use palisade_tests::oracle::{around, around_both};
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::wat::Told;
use palisade_tests::{Observed, Wat};

use super::{ENOUGH, abuse, case, raw};

/// The variants of a text block and of a JSON block.
const TEXT: u32 = 0;
const JSON: u32 = 1;
/// The number of repeated messages, more than the host passes on.
const MANY: u64 = if cfg!(debug_assertions) { 300_000 } else { 1_000_000 };
/// The address of a long answer in the guest.
const FAR: u32 = 131_072;

/// The bytes that are kept of both streams together.
const KEPT: u64 = 2 * (256 << 10);

#[test]
fn standard_output_flood_is_dropped_and_counted() {
    if leaves_out(&[Group::B]) {
        return;
    }
    // A GiB takes too long in a debug build; the optimised long runs use it.
    let flood = if cfg!(debug_assertions) { 1 << 28 } else { 1 << 30 };
    let seen = around(&abuse("flood", flood).timeout(ENOUGH * 3));
    assert_eq!(seen.output(), "flooded");
    assert_eq!(seen.result["usage"]["truncated_bytes"], flood - KEPT);
    assert_eq!(around_both(&abuse("flood", 65_536)).result["usage"]["truncated_bytes"], 0);
}

#[test]
fn standard_output_stays_open_after_its_limit() {
    let lines = 16 << 10;
    let seen = around(&abuse("print", lines).timeout(ENOUGH * 3));
    assert_eq!(seen.output(), "printed");
    assert_eq!(seen.result["usage"]["truncated_bytes"], (lines << 10) - KEPT);
    assert_eq!(around(&abuse("print", 100)).result["usage"]["truncated_bytes"], 0);
}

/// Returns a plugin that answers with `length` letters.
fn long(length: u32) -> Wat {
    let fill = format!(
        "(drop (memory.grow (i32.const 100))) (memory.fill (i32.const {FAR}) (i32.const 120) (i32.const {length}))"
    );
    raw().answering_block(&fill, TEXT, FAR, length)
}

#[test]
fn result_at_its_limit_passes_and_one_byte_more_fails() {
    assert_eq!(around(&case(&long(4 << 20))).output().len(), 4 << 20);
    assert_eq!(around_both(&case(&long((4 << 20) + 1))).limit(), "result");
}

/// Returns the result of a plugin that answers with this block of JSON.
#[track_caller]
fn said(json: &str) -> Observed {
    let escaped: String = json.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let plugin = raw().extra(&format!("(data (i32.const 512) \"{escaped}\")"));
    around(&case(&plugin.answering_block("", JSON, 512, u32::try_from(json.len()).unwrap())))
}

#[test]
fn invalid_json_result_breaks_the_contract_unquoted() {
    for json in [
        "leaked-words",
        "{\"leaked-words\":",
        "{} leaked-words",
        "{\"leaked-words\":1,\"leaked-words\":2}",
        "\"\\ud800 leaked-words\"",
        "1e999",
        "-1e999",
        "",
        " ",
        "NaN",
        "{'leaked-words':1}",
        "[1,]",
        "\u{feff}{}",
        "\"leaked-words\u{0}\"",
        "01",
    ] {
        let seen = said(json);
        assert_eq!(seen.kind(), "contract", "{json}");
        // The message quotes a duplicate key once.
        let repeated = seen.result.to_string().matches("leaked-words").count();
        assert!(repeated <= usize::from(json.contains(",\"leaked")), "{json}: {:#}", seen.result);
    }
    assert_eq!(said("{\"a\": [1, \"\\ud83d\\ude00\"]}").output(), "{\"a\":[1,\"😀\"]}");
}

#[test]
fn result_breaking_its_schema_breaks_the_contract() {
    let told = Told {
        output: Some(
            r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#
                .to_owned(),
        ),
        ..Told::new("raw")
    };
    let answer = |json: &str| {
        let escaped: String = json.bytes().map(|byte| format!("\\{byte:02x}")).collect();
        let plugin = Wat::new(told.clone()).extra(&format!("(data (i32.const 512) \"{escaped}\")"));
        around(&case(&plugin.answering_block("", JSON, 512, u32::try_from(json.len()).unwrap())))
    };
    assert_eq!(answer(r#"{"n": "secret-value"}"#).kind(), "contract");
    assert_eq!(answer("[]").kind(), "contract");
    assert!(!answer(r#"{"n": "secret-value"}"#).result.to_string().contains("secret-value"));
    assert_eq!(answer(r#"{"n": 1}"#).output(), r#"{"n":1}"#);
}

/// Returns the result of an answer with `depth` opening and `closed` closing brackets.
fn deep(depth: u32, closed: u32) -> Observed {
    let fill = format!(
        "(drop (memory.grow (i32.const 20))) (memory.fill (i32.const {FAR}) (i32.const 91) (i32.const {depth}))
         (memory.fill (i32.const {}) (i32.const 93) (i32.const {closed}))",
        FAR + depth
    );
    around(&case(&raw().answering_block(&fill, JSON, FAR, depth + closed)))
}

#[test]
fn result_of_100_000_brackets_breaks_the_contract() {
    for (depth, closed) in [(100_000, 100_000), (100_000, 0), (65, 65)] {
        assert_eq!(deep(depth, closed).kind(), "contract", "{depth}");
    }
    assert_eq!(deep(64, 64).result["success"], true);
}

#[test]
fn invalid_utf8_text_fails_the_call() {
    let plugin = raw().extra("(data (i32.const 512) \"\\ff\\fe\\c0\\80\")");
    assert_eq!(around_both(&case(&plugin.answering_block("", TEXT, 512, 4))).kind(), "trap");
}

#[test]
fn result_outside_the_memory_fails_the_call() {
    for (at, length) in [(u32::MAX, 1), (0, u32::MAX), (0x7fff_0000, 65536), (u32::MAX - 4, 16)] {
        let seen = around(&case(&raw().answering_block("", TEXT, at, length)));
        // Either the copy limit or the bounds check fails first.
        let class = seen.result["error"]["class"].as_str();
        assert!(class == Some("resource_exhausted") || seen.kind() == "trap", "{at} {length}");
    }
    for address in ["-1", "0x7ffffffc", "3"] {
        let seen = around(&case(&raw().execute(&format!("(i32.const {address})"))));
        assert_eq!(seen.kind(), "trap", "{address}");
    }
}

#[test]
fn undefined_variant_case_fails_the_call() {
    assert_eq!(around(&case(&raw().answering_block("", 6, 512, 0))).kind(), "trap");
    assert_eq!(around(&case(&raw().answering("", &[(256, 7)]))).kind(), "trap");
}

#[test]
fn exit_is_never_success() {
    let exit = |name: &str, parameter: &str, code: &str| {
        raw()
            .importing(&format!(
                "(import \"wasi:cli/exit@0.2.6\" (instance $exit (export \"{name}\" (func (param \"{}\" {parameter})))))
                 (core func $leave (canon lower (func $exit \"{name}\")))",
                if name == "exit" { "status" } else { "status-code" }
            ))
            .core_importing("(import \"exit\" \"leave\" (func $leave (param i32)))")
            .with("(with \"exit\" (instance (export \"leave\" (func $leave))))")
            .execute(&format!("(call $leave (i32.const {code})) {{done}}"))
    };
    for code in ["0", "1"] {
        let seen = around_both(&case(&exit("exit", "(result)", code)));
        assert_eq!((seen.kind(), seen.message("execution_error")), ("trap", "the plugin crashed"));
    }
}

#[test]
fn endless_log_messages_are_dropped_and_counted() {
    if leaves_out(&[Group::F]) {
        return;
    }
    let seen = around(&abuse("say-often", MANY));
    assert_eq!(
        (seen.output(), &seen.result["usage"]["truncated_bytes"]),
        ("said", &serde_json::json!(MANY - (256 << 10)))
    );
    let seen = around(&abuse("emit-often", MANY));
    assert_eq!(
        (seen.output(), &seen.result["usage"]["truncated_bytes"]),
        ("emitted", &serde_json::json!((2 * MANY).saturating_sub(1 << 20)))
    );
    let seen = around(&abuse("step-often", MANY));
    let steps = seen.events.iter().filter(|event| event.name() == "tool.progress").count();
    assert_eq!((seen.output(), steps), ("stepped", 10_000));
    assert_eq!(around_both(&abuse("say-often", 100)).result["usage"]["truncated_bytes"], 0);
}

#[test]
fn log_message_of_16_mib_is_not_copied() {
    assert_eq!(around(&abuse("say", 16 << 20)).limit(), "hostcall_data");
    assert_eq!(around(&abuse("say", 4 << 10)).output(), "said");
}
