//! The invariant of the dispatcher: under any order of starts, questions, answers, cancellations
//! and timeouts, each call has one result and one terminal event.
//!
//! The guests and the shell are real; the clock is paused, so every timer fires soon.

use std::time::Duration;

use palisade::{
    Call, CallId, Session, SideEffects, ToolResult, confirm::Answer, json, policy::Policy,
};
use palisade_tests::Stage;
use palisade_tests::guest::DISPATCHER_GATE;
use palisade_tests::native::shell;
use palisade_tests::uniform::check_events;
use proptest::prelude::*;
use proptest::test_runner::Config;
use tokio::task::JoinHandle;

use super::on_driven_clock;

/// The work of a call.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Waits,
    Calculates,
    Writes,
    Shell(&'static str),
    Unknown,
    Invalid,
}

/// One step; numbers are indices into the calls or questions at hand.
#[derive(Debug, Clone, Copy)]
enum Step {
    Begin(Kind),
    Answer(usize, Answer),
    Cancel(usize),
    CancelAll,
    GoAway(usize),
    LetTimePass(u64),
    OpenTheGate,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Waits),
        Just(Kind::Calculates),
        Just(Kind::Writes),
        Just(Kind::Shell("echo hello")),
        Just(Kind::Shell("echo begun; exec sleep 1000")),
        Just(Kind::Shell("trap '' TERM; echo deaf; while :; do sleep 1000; done")),
        Just(Kind::Unknown),
        Just(Kind::Invalid),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let answer = prop_oneof![Just(Answer::Allow), Just(Answer::Deny), Just(Answer::Always)];
    prop_oneof![
        6 => kind().prop_map(Step::Begin),
        4 => (0..8_usize, answer).prop_map(|(which, answer)| Step::Answer(which, answer)),
        2 => (0..8_usize).prop_map(Step::Cancel),
        1 => Just(Step::CancelAll),
        1 => (0..8_usize).prop_map(Step::GoAway),
        4 => (0..60_u64).prop_map(Step::LetTimePass),
        1 => Just(Step::OpenTheGate),
    ]
}

fn call(kind: Kind, id: &str) -> Call {
    let (tool, input) = match kind {
        Kind::Waits => ("wait_for", json!({"path": "open"})),
        Kind::Calculates => ("calculate", json!({"expression": "6 * 7"})),
        Kind::Writes => ("write_file", json!({"path": "made.txt", "content": id})),
        Kind::Shell(command) => ("shell", json!({"command": command})),
        Kind::Unknown => ("no_such_tool", json!({})),
        Kind::Invalid => ("read_file", json!({"path": 7})),
    };
    Call::new(tool, input).with_id(id).with_timeout(Duration::from_millis(200))
}

/// A call with its id, and its task unless its caller has gone away.
type Begun = (String, Option<JoinHandle<ToolResult>>);

/// The state of one random run.
struct Play<'a> {
    stage: &'a Stage,
    session: Session,
    calls: Vec<Begun>,
}

/// Returns true if a call has begun and not ended.
fn is_under_way((_, handle): &Begun) -> bool {
    handle.as_ref().is_some_and(|handle| !handle.is_finished())
}

impl Play<'_> {
    async fn step(&mut self, step: Step) {
        match step {
            Step::Begin(kind) => {
                let id = format!("c{}", self.calls.len());
                let handle = self.stage.begin(&self.session, call(kind, &id));
                self.calls.push((id, Some(handle)));
            }
            Step::Answer(which, answer) => {
                let asked = self.stage.confirmations.pending();
                if let Some(question) = asked.iter().cycle().nth(which) {
                    self.stage.confirmations.answer(&question.id, answer).unwrap();
                    let left = self.stage.confirmations.pending();
                    assert!(
                        left.iter().all(|other| other.id != question.id),
                        "{question:?} is answered"
                    );
                }
            }
            Step::Cancel(which) => {
                let is_under_way = self.calls.get(which).is_some_and(is_under_way);
                assert_eq!(
                    self.session.cancel(&CallId::new(&format!("c{which}"))),
                    is_under_way,
                    "c{which}"
                );
            }
            Step::CancelAll => {
                assert_eq!(
                    self.session.cancel_all(),
                    self.calls.iter().filter(|call| is_under_way(call)).count()
                );
            }
            Step::GoAway(which) => {
                if let Some(handle) =
                    self.calls.get_mut(which).and_then(|(_, handle)| handle.take())
                {
                    handle.abort();
                    // A call that has ended before returns its result; none panics.
                    assert!(
                        handle.await.err().is_none_or(|error| error.is_cancelled()),
                        "c{which}"
                    );
                }
            }
            Step::LetTimePass(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::OpenTheGate => {
                self.stage.world.file("open", "go");
            }
        }
        tokio::task::yield_now().await;
    }

    async fn end(self) {
        // Each call has ended by now or is cancelled here; none may hang.
        self.session.cancel_all();
        let mut returned = Vec::new();
        for (id, handle) in self.calls {
            if let Some(handle) = handle {
                let result = handle.await.unwrap();
                assert_eq!(result.call_id().as_str(), id);
                check_events(&result.to_json(), &self.stage.recorder.events_of(&id));
                returned.push(id);
            }
        }
        assert_eq!(self.session.in_flight(), 0);
        // A future that was dropped before its first poll emits no event.
        assert_eq!(
            self.stage.recorder.unended(returned.iter().map(String::as_str)),
            Vec::<String>::new()
        );
        assert!(self.stage.confirmations.pending().is_empty());
    }
}

proptest! {
    #![proptest_config(Config { cases: 48, failure_persistence: None, ..Config::default() })]
    #[test]
    fn every_interleaving_has_one_result_and_one_terminal_event(steps in prop::collection::vec(step(), 1..16)) {
        let policy = Policy::default().with_class(SideEffects::Execute, palisade::policy::Mode::Auto);
        let stage = Stage::new(&[DISPATCHER_GATE], |builder| {
            builder.policy(policy).tool(shell()).concurrency(2).confirmation_timeout(Duration::from_millis(50))
        });
        on_driven_clock(async {
            let mut play = Play { stage: &stage, session: stage.session(), calls: Vec::new() };
            for step in steps {
                play.step(step).await;
            }
            play.end().await;
        });
    }
}
