//! Text that leaves the host: events of one line each, no control sequences, and no details of the
//! host's machine.

use palisade_tests::sample::{Group, leaves_out};
use std::collections::BTreeSet;

use palisade::{Call, CallId, Conversation, ToolResult, events::Event};
use palisade_tests::guest::{HOSTILE_ABUSE, HOSTILE_PROBE};
use palisade_tests::oracle::{Oracle, around_both};
use palisade_tests::{Case, Program, World};
use serde_json::{Value, json};

use super::{ENOUGH, SHORT, abuse};

#[test]
fn every_guest_message_is_one_escaped_event_line() {
    let case = abuse("say-odd-things", 0);
    let world = case.world();
    let file = world.outer().join("events.jsonl");
    let program = case.program(&world).args(["--events"]).args([&file]);
    let _ = program.run().exits_with(0);
    let text = std::fs::read_to_string(file).unwrap();
    let mut names = BTreeSet::new();
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let event: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        names.insert(event["event"].as_str().unwrap().to_owned());
        assert!(
            !line.contains(['\u{1b}', '\u{7}', '\r', '\u{0}', '\u{2028}', '\u{2029}', '\u{202e}']),
            "{line:?}"
        );
    }
    assert!(names.contains("tool.completed") && names.contains("tool.called"), "{names:?}");
    assert_eq!(text.matches("\"event\":\"tool.completed\"").count(), 1, "{text}");
}

#[test]
fn ids_and_names_are_one_escaped_line() {
    let world = World::new();
    for name in
        ["no\nsuch\r\u{2028}tool", "\u{1b}]52;c;aGVsbG8=\u{7}", "{\"event\":\"tool.completed\"}"]
    {
        let file = world.outer().join("events.jsonl");
        let program = Program::new(&world)
            .args(["call", name, "{}", "--no-builtin", "--events"])
            .args([&file]);
        let ran = program.run().exits_with(3);
        assert!(!ran.stderr.contains(['\u{1b}', '\u{7}', '\r', '\u{2028}']), "{:?}", ran.stderr);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text:?}");
        assert!(!text.contains(['\u{1b}', '\u{7}', '\r', '\u{2028}']), "{text:?}");
        std::fs::remove_file(file).unwrap();
    }
}

/// Returns text that no guest may learn: host paths, and home directories from the environment.
fn of_the_host(world: &World) -> Vec<String> {
    let mut secrets =
        vec![world.outer().to_string_lossy().into_owned(), env!("CARGO_MANIFEST_DIR").to_owned()];
    secrets.extend(
        ["HOME", "CARGO_HOME", "RUSTUP_HOME"]
            .iter()
            .filter_map(|name| std::env::var(name).ok())
            .filter(|value| value.len() > 4),
    );
    secrets
}

#[test]
fn guest_errors_disclose_nothing_of_the_machine() {
    let seen = around_both(
        &Case::new(HOSTILE_ABUSE, "abuse").input(json!({"how": "look-around"})).timeout(ENOUGH),
    );
    assert!(!seen.output().is_empty(), "the guest reports its findings");
    assert_eq!(seen.results().count(), 2, "through the library and through the program");
    for (world, result) in seen.results() {
        for secret in of_the_host(world) {
            assert!(!result.to_string().contains(&secret), "{secret}: {result:#}");
        }
    }
    let input = json!({"ops": ["open", "readlink", "readdir", "rename-to"], "paths": ["missing", "out", "out/x", "../x", "/etc/hostname"]});
    let case = Case::new(HOSTILE_PROBE, "probe_read").input(input).timeout(ENOUGH);
    let seen = around_both(&case.arrange(|world| drop(world.link("out", "@/outside").read(""))));
    assert!(!seen.output().is_empty());
    for (world, result) in seen.results() {
        assert!(!result.to_string().contains(&*world.outer().to_string_lossy()), "{result:#}");
    }
}

#[test]
fn failed_call_discloses_no_host_path_or_backtrace() {
    let case = abuse("splice", u64::MAX);
    let oracle = Oracle::for_case(&case);
    for how in ["zeroes", "random", "poll-copies", "no-such-way", "fail"] {
        let heard = std::sync::Mutex::new(Vec::new());
        let result = oracle.watch(ENOUGH, |stage| {
            let (host, recorder) = (stage.host.clone(), stage.recorder.clone());
            let call = Call::new("abuse", json!({"how": how, "amount": u64::MAX}));
            let heard = &heard;
            async move {
                let result = host.dispatch(host.session(), call).await;
                *heard.lock().unwrap() = recorder.events();
                result
            }
        });
        let told = format!(
            "{} {:?}",
            result.to_json(),
            heard
                .into_inner()
                .unwrap()
                .iter()
                .filter(|event| !matches!(event, Event::Log(..)))
                .collect::<Vec<_>>()
        );
        for secret in of_the_host(&oracle.stage.world).into_iter().chain([
            ".rs:".to_owned(),
            "wasm backtrace".to_owned(),
            "0x".to_owned(),
        ]) {
            assert!(!told.contains(&secret), "{how}: {secret}: {told}");
        }
    }
}

#[test]
fn call_messages_are_cut_and_counted() {
    let seen = around_both(&abuse("say", 1 << 20));
    assert_eq!(seen.result["usage"]["truncated_bytes"], (1 << 20) - (4 << 10));
    let spoken: usize = seen
        .events
        .iter()
        .map(|event| if let Event::Log(_, _, text) = event { text.len() } else { 0 })
        .sum();
    assert!(spoken <= 4 << 10, "{spoken}");
}

/// A conversation that counts the bytes of each answer.
#[derive(Default)]
struct Counted {
    answers: Vec<usize>,
}

impl Conversation for Counted {
    fn append_tool(&mut self, _: &CallId, _: &str, content: &str) {
        self.answers.push(content.len());
    }

    fn append_tool_execution(&mut self, _: &Call, _: &ToolResult) {}
}

/// Dispatches messages of three calls each in one session, and returns the size of each answer.
fn conversation(oracle: &Oracle, messages: usize, call: impl Fn(usize) -> Call) -> Vec<usize> {
    let counted = std::sync::Mutex::new(Vec::new());
    oracle.watch(ENOUGH * 3, |stage| {
        let (host, counted) = (stage.host.clone(), &counted);
        let calls: Vec<Vec<Call>> = (0..messages)
            .map(|message| (0..3).map(|number| call(3 * message + number)).collect())
            .collect();
        async move {
            let (session, mut conversation) = (host.new_session("s").build(), Counted::default());
            for message in calls {
                let _ = host.dispatch_into(&session, message, &mut conversation).await;
            }
            *counted.lock().unwrap() = conversation.answers;
        }
    });
    counted.into_inner().unwrap()
}

#[test]
fn call_adds_bounded_text_to_a_conversation() {
    if leaves_out(&[Group::H]) {
        return;
    }
    let oracle = Oracle::for_case(&abuse("emit-often", 0));
    // The guest emits 160 KiB and then times out, so the answer is the end of that output and a
    // message. The oracle checks the memory that remains in use.
    let emits = Call::new("abuse", json!({"how": "emit-and-sleep", "amount": 80 << 10}));
    let calls = |number: usize| emits.clone().with_id(&format!("c{number}")).with_timeout(SHORT);
    let answers = conversation(&oracle, 5, calls);
    assert_eq!(answers.len(), 15);
    assert!(answers.iter().all(|bytes| (64 << 10..65 << 10).contains(bytes)), "{answers:?}");
    // A successful call contributes its whole output.
    let says = |number: usize| {
        Call::new("echo", json!({"text": "x".repeat(1000)})).with_id(&format!("c{number}"))
    };
    assert_eq!(conversation(&oracle, 5, says), [1000; 15]);
}
