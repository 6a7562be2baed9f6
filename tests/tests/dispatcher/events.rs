//! Events: their form, one terminal event for each call, and subscribers that never block a call.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use palisade::events::{JsonLines, LinesError, STREAM_EVENTS, WAITING_LINES};
use palisade::{
    Call,
    confirm::Answer,
    events::{Envelope, Subscriber},
    json,
};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::guest::{CONTRACT_HOST, DISPATCHER_GATE};
use serde_json::Value;

use super::{stage, writing};

/// The keys that every line starts with, in this order.
const KEYS: [&str; 9] = [
    "v",
    "seq",
    "time",
    "event",
    "session_id",
    "turn_id",
    "tool_use_id",
    "tool_name",
    "side_effects",
];

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// Makes `times` short calls.
fn calculate(stage: &Stage, times: usize) {
    let session = stage.session();
    block_on(async {
        for _ in 0..times {
            let call = Call::new("calculate", json!({"expression": "1 + 1"}));
            assert!(stage.host.dispatch(&session, call).await.is_success());
        }
    });
}

#[test]
fn event_lines_start_with_the_common_keys() {
    let stage = stage();
    let mut stream = stage.host.events();
    block_on(async {
        let call = stage.begin(&stage.session(), writing("w").with_turn("turn-1"));
        stage.confirmations.answer(&stage.confirmations.next().await.id, Answer::Allow).unwrap();
        assert!(call.await.unwrap().is_success());
    });
    let mut seen = Vec::new();
    while let Some(event) = stream.try_next() {
        let text = event.to_line();
        assert!(text.ends_with("}\n") && text.lines().count() == 1, "one line: {text:?}");
        let places: Vec<_> = KEYS.iter().map(|key| text.find(&format!("\"{key}\":"))).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{text}");
        let line = read(&text);
        assert_eq!(
            (&line["v"], &line["session_id"], &line["turn_id"]),
            (&json!(1), &json!("session-1"), &json!("turn-1"))
        );
        assert_eq!((&line["tool_use_id"], &line["tool_name"]), (&json!("w"), &json!("write_file")));
        assert_eq!(line["side_effects"], "write", "the declared class is in every line");
        assert!(
            line["time"].as_str().is_some_and(|time| time.ends_with('Z') && time.contains('T'))
        );
        seen.push(line);
    }
    assert!(seen.windows(2).all(|pair| pair[0]["seq"].as_u64() < pair[1]["seq"].as_u64()));
    let [asked, answered, called, completed] = &seen[..] else { panic!("{seen:#?}") };
    assert_eq!(
        (&asked["event"], &asked["projected_modifications"]),
        (&json!("tool.confirmation_requested"), &json!(["made.txt"]))
    );
    assert!(asked["input_summary"].is_string() && asked["request_id"] == answered["request_id"]);
    assert_eq!(
        (&answered["event"], &answered["decision"]),
        (&json!("tool.confirmation_resolved"), &json!("allow"))
    );
    assert_eq!(called["event"], "tool.called");
    assert_eq!(
        (&completed["event"], &completed["success"]),
        (&json!("tool.completed"), &json!(true))
    );
    assert!(completed["duration_ms"].as_f64().is_some_and(|ms| ms > 0.0));
}

#[test]
fn messages_of_a_running_tool_are_in_the_stream() {
    let stage = Stage::new(&[CONTRACT_HOST], |builder| builder);
    let mut stream = stage.host.events();
    assert!(block_on(stage.host.call("speak", "{}", json!({}))).is_success());
    let lines: Vec<Value> =
        std::iter::from_fn(|| stream.try_next()).map(|event| read(&event.to_line())).collect();
    let said = |name: &str, key: &str| -> Vec<Value> {
        lines.iter().filter(|line| line["event"] == name).map(|line| line[key].clone()).collect()
    };
    assert_eq!(said("tool.log", "level"), ["trace", "debug", "info", "warn", "error"]);
    assert_eq!(said("tool.output_delta", "partial_output"), ["first ", "second"]);
    assert_eq!(said("tool.progress", "done"), [json!(1.0), json!(2.0)]);
}

#[test]
fn loaded_and_rejected_plugins_are_events() {
    struct Lines(Mutex<Vec<Value>>);
    impl Subscriber for Lines {
        fn receive(&self, event: &Envelope) {
            self.0.lock().unwrap().push(read(&event.to_line()));
        }
    }
    let (lines, directory) = (Arc::new(Lines(Mutex::default())), tempfile::tempdir().unwrap());
    std::fs::write(directory.path().join("broken.wasm"), "no component").unwrap();
    let host = palisade::Host::builder()
        .workspace(directory.path())
        .plugins(directory.path())
        .subscriber(lines.clone());
    let host = host
        .plugin_file(DISPATCHER_GATE.file())
        .cache(palisade::CacheMode::Directory(palisade_tests::guest::cache()));
    let host = host.build().unwrap();
    let lines = lines.0.lock().unwrap();
    let of = |name: &str| lines.iter().filter(|line| line["event"] == name).collect::<Vec<_>>();
    assert_eq!(of("plugin.loaded").len(), host.plugins().len());
    let gate =
        of("plugin.loaded").into_iter().find(|line| line["plugin"] == "dispatcher_gate").unwrap();
    assert!(gate["tools"].as_array().unwrap().contains(&json!("wait_for")));
    assert!(gate["digest"].as_str().unwrap().starts_with("sha256:"));
    let [rejected] = of("plugin.rejected")[..] else { panic!("{lines:#?}") };
    assert!(
        rejected["file"].as_str().unwrap().ends_with("broken.wasm")
            && rejected["reason"].is_string()
    );
}

#[test]
fn unread_stream_delays_no_call_and_counts_losses() {
    let stage = stage();
    let mut stream = stage.host.events();
    calculate(&stage, STREAM_EVENTS);
    let kept = std::iter::from_fn(|| stream.try_next()).count();
    assert_eq!(
        (kept, stream.missed()),
        (STREAM_EVENTS, STREAM_EVENTS as u64),
        "two events for each call"
    );
}

#[test]
fn dropped_stream_receives_nothing() {
    let (world, stage) = (palisade_tests::World::new(), stage());
    drop((world, stage.host.events()));
    let host = palisade::Host::builder()
        .workspace(stage.world.root())
        .shipped(palisade::plugins::Shipped::LeftOut)
        .build()
        .unwrap();
    let stream = host.events();
    assert!(host.event_bus().is_watched());
    drop(stream);
    assert!(!host.event_bus().is_watched(), "without a subscriber no event is built");
}

#[test]
fn any_number_of_streams_can_be_read() {
    use futures_core::Stream as _;
    let stage = stage();
    let (mut one, mut other) = (stage.host.events(), stage.host.events());
    calculate(&stage, 1);
    block_on(async {
        let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut one).poll_next(cx)).await;
        assert_eq!(next, other.next().await);
        assert_eq!(next.unwrap().event.name(), "tool.called");
    });
}

/// A writer that blocks until the test releases it.
struct Stuck {
    blocked: Sender<()>,
    release: Receiver<()>,
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.blocked.send(());
        let _ = self.release.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn stuck_event_file_delays_no_call_and_counts_losses() {
    let stage = stage();
    let (blocked, is_blocked) = channel();
    let (let_go, release) = channel();
    let lines = JsonLines::new(Stuck { blocked, release }).unwrap();
    stage.host.event_bus().subscribe(lines.clone());
    calculate(&stage, 1);
    is_blocked.recv().unwrap();
    calculate(&stage, WAITING_LINES / 2 + 9);
    assert!(
        matches!(lines.finish(Duration::ZERO), Err(LinesError::Stalled)),
        "the wait is bounded"
    );
    drop(let_go);
    // Two lines a call, 20 more than the queue holds. The blocked writer has taken one or both
    // lines of the first call.
    assert!(
        matches!(lines.finish(Duration::from_secs(60)), Err(LinesError::Lost(lost)) if (18..=19).contains(&lost))
    );
}

#[test]
fn chatter_never_displaces_terminal_events() {
    let stage = Stage::new(&[palisade_tests::guest::LIMITS_OUTPUT], |builder| builder);
    let (blocked, _is_blocked) = channel();
    let (let_go, release) = channel();
    let lines = JsonLines::new(Stuck { blocked, release }).unwrap();
    let (mut stream, calls) = (stage.host.events(), 3);
    stage.host.event_bus().subscribe(lines.clone());
    for _ in 0..calls {
        let _ = block_on(stage.host.call("progress", json!({"bytes": 20_000}), json!({})));
    }
    let heard: Vec<_> = std::iter::from_fn(|| stream.try_next()).collect();
    assert!(stream.missed() > 0, "the events exceed the queue");
    assert_eq!(heard.iter().filter(|event| event.event.is_terminal()).count(), calls);
    drop(let_go);
    let lost = stage.recorder.events().len() as u64;
    assert!(
        matches!(lines.finish(Duration::from_secs(60)), Err(LinesError::Lost(some)) if some < lost - 2 * calls as u64)
    );
}

#[test]
fn full_disk_is_reported_at_the_end() {
    let stage = stage();
    let lines =
        JsonLines::new(std::fs::File::options().write(true).open("/dev/full").unwrap()).unwrap();
    stage.host.event_bus().subscribe(lines.clone());
    calculate(&stage, 3);
    assert!(matches!(lines.finish(Duration::from_secs(60)), Err(LinesError::Write(_))));
}

#[test]
fn unstarted_call_has_only_its_terminal_event() {
    let stage = stage();
    let session = stage.session();
    for (id, tool, input, name) in [
        ("unknown", "no_such_tool", json!({}), "tool.failed"),
        ("invalid", "calculate", json!({}), "tool.input_invalid"),
        ("outside", "read_file", json!({"path": "../x"}), "tool.failed"),
    ] {
        let _ = block_on(stage.host.dispatch(&session, Call::new(tool, input).with_id(id)));
        assert_eq!(stage.recorder.names_of(id), [name], "{id}");
    }
}
