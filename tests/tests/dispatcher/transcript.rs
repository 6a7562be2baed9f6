//! A conversation stays valid: every call in it has an answer, however the call ended.

use std::path::PathBuf;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};

use palisade::events::Event;
use palisade::policy::Policy;
use palisade::{
    Call, CallId, CancellationToken, Conversation, Session, SideEffects, ToolResult, json,
};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::events::Recorder;
use palisade_tests::guest::DISPATCHER_GATE;
use palisade_tests::stage::class;

use super::{stage, waiting, writing};

/// A conversation that records what is appended.
#[derive(Default)]
struct Recorded {
    answers: Vec<(String, String, String)>,
    executions: Vec<(String, String)>,
}

impl Conversation for Recorded {
    fn append_tool(&mut self, call_id: &CallId, tool: &str, content: &str) {
        self.answers.push((call_id.to_string(), tool.to_owned(), content.to_owned()));
    }

    fn append_tool_execution(&mut self, call: &Call, result: &ToolResult) {
        self.executions.push((call.id().to_string(), class(result).to_owned()));
    }
}

/// Returns calls that end in every possible way, under their ids.
fn calls(stage: &Stage) -> Vec<Call> {
    stage.world.file("note.txt", "noted");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    vec![
        Call::new("read_file", json!({"path": "note.txt"})).with_id("fine"),
        Call::new("no_such_tool", json!({})).with_id("unknown"),
        Call::new("read_file", json!({})).with_id("invalid"),
        Call::new("read_file", "not JSON").with_id("broken"),
        Call::new("read_file", json!({"path": "../x"})).with_id("outside"),
        waiting("cancelled").with_cancellation(cancelled),
    ]
}

#[test]
fn results_are_appended_in_call_order_under_their_ids() {
    let (stage, mut conversation) = (stage(), Recorded::default());
    let results =
        block_on(stage.host.dispatch_into(&stage.session(), calls(&stage), &mut conversation));
    let ended: Vec<(&str, &str)> =
        conversation.executions.iter().map(|(id, class)| (&**id, &**class)).collect();
    let expected = [
        ("fine", ""),
        ("unknown", "not_found"),
        ("invalid", "validation_error"),
        ("broken", "validation_error"),
        ("outside", "permission_denied"),
        ("cancelled", "cancelled"),
    ];
    assert_eq!(ended, expected);
    assert_eq!(conversation.answers[0], ("fine".into(), "read_file".into(), "noted".into()));
    assert!(conversation.answers[1].2.contains("no_such_tool"));
    assert_eq!((conversation.answers.len(), results.len()), (expected.len(), expected.len()));
    for (answer, result) in conversation.answers.iter().zip(&results) {
        assert_eq!(
            (answer.0.as_str(), answer.2.as_str()),
            (result.call_id().as_str(), result.to_string().as_str())
        );
    }
}

#[test]
fn refusal_is_an_answer() {
    let stage = Stage::new(&[], |builder| builder.confirmer(Arc::new(palisade::confirm::DenyAll)));
    let mut conversation = Recorded::default();
    let _ =
        block_on(stage.host.dispatch_into(&stage.session(), vec![writing("w")], &mut conversation));
    assert_eq!(conversation.answers[0].2, "the user denied this operation");
}

#[test]
fn dropped_message_leaves_an_answer_to_each_call() {
    let (stage, mut conversation) = (stage(), Recorded::default());
    let session = stage.session();
    block_on(async {
        let calls = vec![waiting("a"), waiting("b")];
        tokio::select! {
            _ = stage.host.dispatch_into(&session, calls, &mut conversation) => panic!("the gate stays closed"),
            () = stage.started(2) => {}
        }
    });
    assert_eq!(
        conversation.executions,
        [("a".into(), "cancelled".into()), ("b".into(), "cancelled".into())]
    );
}

#[test]
fn partial_output_is_part_of_the_answer() {
    let (stage, mut conversation) = (stage(), Recorded::default());
    let session = stage.session();
    block_on(async {
        let work = stage.host.dispatch_into(&session, vec![waiting("a")], &mut conversation);
        let stop = async {
            stage.started(1).await;
            session.cancel_all();
        };
        tokio::join!(work, stop)
    });
    assert_eq!(conversation.answers[0].2, "the call was cancelled\nstarted");
}

/// An appended result: id, class, changed files.
type Appended = (String, String, Vec<PathBuf>);

/// A conversation that others can look at meanwhile.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<Appended>>>);

impl Shared {
    fn ends(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().iter().map(|(id, class, _)| (id.clone(), class.clone())).collect()
    }
}

impl Conversation for Shared {
    fn append_tool(&mut self, _: &CallId, _: &str, _: &str) {}

    fn append_tool_execution(&mut self, call: &Call, result: &ToolResult) {
        let entry =
            (call.id().to_string(), class(result).to_owned(), result.files_modified().to_vec());
        self.0.lock().unwrap().push(entry);
    }
}

/// Returns a session in which writing tools run unasked.
fn unasked(stage: &Stage) -> Session {
    let policy = Policy::default().allowing(SideEffects::Write);
    stage.host.new_session("unasked").policy(policy).build()
}

fn ended(id: &str, class: &str) -> (String, String) {
    (id.to_owned(), class.to_owned())
}

/// Returns true if the event says that this call has completed.
fn completes(event: &Event, id: &str) -> bool {
    matches!(event, Event::Completed(subject, _) if subject.call_id.as_str() == id)
}

#[test]
fn completed_call_keeps_its_result_when_the_message_is_dropped() {
    for (calls, expected) in [
        (vec![writing("w"), waiting("a")], [ended("w", ""), ended("a", "cancelled")]),
        (vec![waiting("a"), writing("w")], [ended("a", "cancelled"), ended("w", "")]),
    ] {
        let (stage, mut shared) = (stage(), Shared::default());
        let session = unasked(&stage);
        block_on(async {
            let done = stage.recorder.until(|events| events.iter().any(|it| completes(it, "w")));
            let both = async { tokio::join!(done, stage.started(1)) };
            tokio::select! {
                _ = stage.host.dispatch_into(&session, calls, &mut shared) => panic!("one call waits"),
                _ = both => {}
            }
        });
        assert_eq!(shared.ends(), expected);
        let entries = shared.0.lock().unwrap();
        let written = entries.iter().find(|(id, ..)| id == "w").unwrap();
        assert_eq!(written.2, [PathBuf::from("made.txt")]);
        assert_eq!(stage.world.read("made.txt").as_deref(), Some("made"));
    }
}

#[test]
fn result_is_appended_as_soon_as_all_before_it_have_ended() {
    let (stage, mut shared) = (stage(), Shared::default());
    let (seen, session) = (shared.clone(), stage.session());
    stage.world.file("note.txt", "noted");
    let quick = |id: &str| Call::new("read_file", json!({"path": "note.txt"})).with_id(id);
    let calls = vec![quick("first"), waiting("second"), quick("third")];
    block_on(async {
        let work = stage.host.dispatch_into(&session, calls, &mut shared);
        let look = async {
            stage.recorder.until(|events| events.iter().any(|it| completes(it, "third"))).await;
            while seen.ends().is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(seen.ends(), [ended("first", "")]);
            stage.world.file("open", "opened");
        };
        tokio::join!(work, look);
    });
    assert_eq!(seen.ends(), ["first", "second", "third"].map(|id| ended(id, "")));
}

/// The message is dropped on one thread while a call ends on another: the event is on its way.
#[test]
fn record_and_event_agree_when_the_message_is_dropped_at_the_end_of_a_call() {
    let (says, hears) = sync_channel(0);
    let (lets_go, let_go) = channel::<()>();
    let gate = Mutex::new((says, let_go));
    let recorder = Recorder::reacting(move |event| {
        if completes(event, "w") {
            let gate = gate.lock().unwrap();
            gate.0.send(()).unwrap();
            gate.1.recv().unwrap();
        }
    });
    let stage = Stage::with_recorder(recorder, &[DISPATCHER_GATE], |builder| builder);
    let (mut shared, session) = (Shared::default(), unasked(&stage));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let calls = vec![writing("w")];
        let message = stage.host.dispatch_into(&session, calls, &mut shared);
        let event = tokio::task::spawn_blocking(move || hears.recv().unwrap());
        tokio::select! {
            biased;
            _ = message => panic!("the event is held back"),
            event = event => event.unwrap(),
        }
    });
    // Before an assertion: the runtime waits for the call's thread.
    let ends = shared.ends();
    lets_go.send(()).unwrap();
    assert_eq!(ends, [ended("w", "")]);
    stage.ended_once("w");
}

#[test]
fn record_of_a_call_that_was_cut_off_has_its_output_so_far() {
    let (stage, mut conversation) = (stage(), Recorded::default());
    let session = stage.session();
    block_on(async {
        let calls = vec![waiting("a")];
        tokio::select! {
            _ = stage.host.dispatch_into(&session, calls, &mut conversation) => panic!("the gate stays closed"),
            () = stage.started(1) => {}
        }
    });
    assert_eq!(conversation.answers[0].2, "the call was cancelled\nstarted");
}

#[test]
fn call_that_never_began_has_a_terminal_event() {
    let (stage, mut conversation) = (stage(), Recorded::default());
    let session = stage.session();
    block_on(async {
        let calls = vec![waiting("a"), waiting("b")];
        let message = stage.host.dispatch_into(&session, calls, &mut conversation);
        tokio::pin!(message);
        // One poll creates the tasks, and no task runs before the message is dropped.
        std::future::poll_fn(|context| {
            assert!(message.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    });
    for id in ["a", "b"] {
        stage.ended_once(id);
    }
}
