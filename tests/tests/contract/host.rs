//! Logs, progress and output of a running tool, as events.

use palisade::events::Event;
use palisade::execution::{Progress, Severity};
use palisade_tests::guest::CONTRACT_HOST;
use palisade_tests::{Case, Observed, Program, World};

fn speak() -> Observed {
    Case::new(CONTRACT_HOST, "speak").check()
}

#[test]
fn every_log_level_is_an_event() {
    let logged = |event: &Event| match event {
        Event::Log(_, severity, message) => Some((*severity, message.clone())),
        _ => None,
    };
    let heard: Vec<_> = speak().events.iter().filter_map(logged).collect();
    let expected = [
        (Severity::Trace, "one"),
        (Severity::Debug, "two"),
        (Severity::Info, "three"),
        (Severity::Warn, "four"),
        (Severity::Error, "five"),
    ];
    assert_eq!(heard, expected.map(|(severity, message)| (severity, message.to_owned())));
}

#[test]
fn progress_is_an_event_and_non_finite_is_ignored() {
    let progressed = |event: &Event| match event {
        Event::Progress(_, progress) => Some(progress.clone()),
        _ => None,
    };
    let heard: Vec<Progress> = speak().events.iter().filter_map(progressed).collect();
    let half = Progress { done: 2.0, total: Some(4.0), message: Some("half".to_owned()) };
    assert_eq!(heard, [Progress { done: 1.0, total: None, message: None }, half]);
}

#[test]
fn emitted_text_is_an_immediate_event_outside_the_output() {
    let seen = speak();
    let emitted = |event: &Event| match event {
        Event::OutputDelta(_, chunk) => Some(chunk.clone()),
        _ => None,
    };
    let heard: Vec<String> = seen.events.iter().filter_map(emitted).collect();
    assert_eq!(heard, ["first ", "second"]);
    assert_eq!(seen.output(), "cancelled: false");
}

#[test]
fn events_start_and_end_with_the_named_call() {
    let events = speak().events;
    assert_eq!(events.first().map(Event::name), Some("tool.called"));
    assert_eq!(events.last().map(Event::name), Some("tool.completed"));
    let first = events[0].subject().unwrap();
    assert_eq!(&*first.tool, "speak");
    assert!(events.iter().all(|event| event.subject() == Some(first)));
}

#[test]
fn program_shows_the_log_only_with_verbose() {
    let world = World::new();
    let call = |more: &[&str]| {
        let program = Program::new(&world)
            .args(["--no-builtin", "--plugins"])
            .args([CONTRACT_HOST.directory()]);
        program.args(["call", "speak"]).args(more.iter().copied()).run().exits_with(0)
    };
    let verbose = call(&["--verbose"]);
    verbose.stderr_contains(&[
        "trace: one",
        "debug: two",
        "info: three",
        "warn: four",
        "error: five",
    ]);
    assert_eq!(verbose.stdout, "cancelled: false");
    assert_eq!(call(&[]).stdout, "cancelled: false");
}
