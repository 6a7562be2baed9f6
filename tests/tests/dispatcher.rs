//! Tests the dispatch pipeline for every kind of tool: sessions, policy, confirmation, events,
//! cancellation, transcripts and the agent loop of the examples.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "dispatcher/agent_loop.rs"]
mod agent_loop;
#[path = "dispatcher/cancellation.rs"]
mod cancellation;
#[path = "dispatcher/confirmation.rs"]
mod confirmation;
#[path = "dispatcher/gate.rs"]
mod dispatcher_gate;
#[path = "dispatcher/displayed.rs"]
mod displayed;
#[path = "dispatcher/embedder.rs"]
mod embedder;
#[path = "dispatcher/events.rs"]
mod events;
#[path = "dispatcher/examples.rs"]
mod examples;
#[path = "dispatcher/interleavings.rs"]
mod interleavings;
#[path = "dispatcher/logs.rs"]
mod logs;
#[path = "dispatcher/native.rs"]
mod native;
#[path = "dispatcher/question_order.rs"]
mod question_order;
#[path = "dispatcher/recorder.rs"]
mod recorder;
#[path = "dispatcher/reply.rs"]
mod reply;
#[path = "dispatcher/required.rs"]
mod required;
#[path = "dispatcher/sessions.rs"]
mod sessions;
#[path = "dispatcher/stopping.rs"]
mod stopping;
#[path = "dispatcher/transcript.rs"]
mod transcript;
#[path = "dispatcher/visible.rs"]
mod visible;

use palisade::events::EventStream;
use palisade::{Call, SideEffects, json};
use palisade_tests::guest::DISPATCHER_GATE;
use palisade_tests::{Stage, is_tested};
use serde_json::Value;

palisade_tests::foreach_dispatcher!(is_tested);

/// Runs work on tokio's paused clock, which advances to the next timer when all tasks are idle.
fn on_driven_clock<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

/// Returns a host with the shipped tools and the gate guest, which asks before every write.
fn stage() -> Stage {
    Stage::new(&[DISPATCHER_GATE], |builder| builder)
}

/// Returns a call that waits until the workspace has the file `open`.
fn waiting(id: &str) -> Call {
    Call::new("wait_for", json!({"path": "open"})).with_id(id)
}

/// Returns the events that are waiting in a stream, as their lines.
fn lines(stream: &mut EventStream) -> Vec<Value> {
    let event = || stream.try_next().map(|event| serde_json::from_str(&event.to_line()).unwrap());
    std::iter::from_fn(event).collect()
}

fn writing(id: &str) -> Call {
    Call::new("write_file", json!({"path": "made.txt", "content": "made"})).with_id(id)
}

/// Returns the name of the gate's tool of one class.
fn tool_of(class: SideEffects) -> String {
    format!("of_{class}")
}
