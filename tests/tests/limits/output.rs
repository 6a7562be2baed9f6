//! Limits on output: a result beyond its limit is an error, all other output is dropped and
//! counted.

use palisade::events::Event;
use palisade_tests::guest::LIMITS_OUTPUT;
use palisade_tests::{Case, Observed};
use serde_json::json;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn say(tool: &str, bytes: u64) -> Observed {
    Case::new(LIMITS_OUTPUT, tool).input(json!({"bytes": bytes})).check()
}

fn truncated(seen: &Observed) -> u64 {
    seen.result["usage"]["truncated_bytes"].as_u64().unwrap()
}

/// Returns the number of matching events and the total length of their text.
fn heard(seen: &Observed, length: impl Fn(&Event) -> Option<usize>) -> (usize, u64) {
    let lengths: Vec<usize> = seen.events.iter().filter_map(length).collect();
    (lengths.len(), lengths.iter().sum::<usize>() as u64)
}

fn logged(event: &Event) -> Option<usize> {
    if let Event::Log(_, _, message) = event { Some(message.len()) } else { None }
}

fn emitted(event: &Event) -> Option<usize> {
    if let Event::OutputDelta(_, chunk) = event { Some(chunk.len()) } else { None }
}

#[test]
fn result_obeyed() {
    assert_eq!(say("text", 4 * MIB - KIB).output().len() as u64, 4 * MIB - KIB);
    say("files", 4 * MIB - KIB).modified(&[]);
}

#[test]
fn result_violated() {
    for (tool, bytes) in [
        ("text", 4 * MIB + 1),
        ("blocks", 4 * MIB + KIB),
        ("metadata", 4 * MIB),
        ("files", 4 * MIB),
    ] {
        let seen = say(tool, bytes);
        assert_eq!(
            (seen.limit(), &seen.result["error"]["detail"]["value"]),
            ("result", &json!(4 * MIB)),
            "{tool}"
        );
    }
}

#[test]
fn oversized_result_is_not_copied() {
    assert_eq!(say("text", 16 * MIB).limit(), "hostcall_data");
}

#[test]
fn standard_output_obeyed() {
    let seen = say("print", 256 * KIB);
    assert_eq!((seen.output(), truncated(&seen)), ("printed", 0));
}

#[test]
fn standard_output_violated() {
    let seen = say("print", 300 * KIB);
    // Both streams lose the bytes beyond 256 KiB, and the call succeeds.
    assert_eq!((seen.output(), truncated(&seen)), ("printed", 2 * 44 * KIB));
}

#[test]
fn log_obeyed() {
    let seen = say("log", 256 * KIB);
    assert_eq!((seen.output(), truncated(&seen)), ("logged", 0));
    assert_eq!(heard(&seen, logged), (256, 256 * KIB));
}

#[test]
fn log_violated() {
    let seen = say("log", 300 * KIB);
    assert_eq!((seen.output(), truncated(&seen)), ("logged", 44 * KIB));
    assert_eq!(heard(&seen, logged), (256, 256 * KIB));
}

#[test]
fn one_message_obeyed() {
    let seen = say("log_one", 4 * KIB);
    assert_eq!((heard(&seen, logged), truncated(&seen)), ((1, 4 * KIB), 0));
}

#[test]
fn one_message_violated() {
    let seen = say("log_one", 5 * KIB);
    assert_eq!((heard(&seen, logged), truncated(&seen)), ((1, 4 * KIB), KIB));
}

#[test]
fn emitted_text_obeyed() {
    let seen = say("emit", MIB);
    assert_eq!((heard(&seen, emitted), truncated(&seen)), ((1024, MIB), 0));
}

#[test]
fn emitted_text_violated() {
    let seen = say("emit", MIB + 10 * KIB);
    assert_eq!((heard(&seen, emitted), truncated(&seen)), ((1024, MIB), 10 * KIB));
}

#[test]
fn guest_may_report_progress_10_000_times() {
    let seen = say("progress", 10_000);
    assert_eq!(seen.events.iter().filter(|event| event.name() == "tool.progress").count(), 10_000);
}

#[test]
fn progress_violated() {
    let seen = say("progress", 10_100);
    assert_eq!(seen.output(), "progressed");
    assert_eq!(seen.events.iter().filter(|event| event.name() == "tool.progress").count(), 10_000);
}
