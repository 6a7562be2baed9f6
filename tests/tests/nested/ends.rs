//! Ends of programs and their calls: deadlines, cancellations, and no deadlock.

use super::{granting, making, results};
use palisade::policy::Policy;
use palisade::{Call, CallMode, SideEffects, json};
use std::time::Duration;

/// The deadline of a program that never ends: its calls begin before it, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn deadline_of_the_program_ends_its_call() {
    let stage = granting(&["nested_spin"], |builder| builder);
    let call = making(&json!([{"tool": "nested_spin", "input": {}}])).with_timeout(DEADLINE);
    let result = stage.host.dispatch(&stage.session(), call).await;
    assert_eq!(result.error().unwrap().class().as_str(), "timeout");
    stage.ended_once("outer.1");
    stage.ended_once("outer");
}

/// Runs more calls that never end than run at once, and then a write, and checks that the write
/// never starts.
async fn waiting_calls_do_not_start(mode: CallMode) {
    let stage = granting(&["nested_spin", "write_file"], |builder| {
        builder.policy(Policy::default().allowing(SideEffects::Write)).call_mode(mode)
    });
    let spin = json!({"tool": "nested_spin", "input": {}});
    let write = json!({"tool": "write_file", "input": {"path": "late.txt", "content": "x"}});
    let calls: Vec<_> = std::iter::repeat_n(spin, 8).chain([write]).collect();
    let input = json!({"calls": calls, "order": "at_once"});
    let call = Call::new("nested_run", input).with_timeout(DEADLINE);
    let result = stage.host.dispatch(&stage.session(), call.with_id("outer")).await;
    assert_eq!(result.error().unwrap().class().as_str(), "timeout");
    let has_begun = |number: &usize| {
        let names = stage.recorder.names_of(&format!("outer.{number}"));
        stage.ended_once(&format!("outer.{number}"));
        names.contains(&"tool.called")
    };
    let begun: Vec<usize> = (1..=9).filter(has_begun).collect();
    assert_eq!(begun, [1, 2, 3, 4], "{mode:?}");
    assert!(!stage.world.root().join("late.txt").exists(), "{mode:?}");
}

#[tokio::test]
async fn call_that_waits_beyond_the_deadline_of_its_program_does_not_start() {
    waiting_calls_do_not_start(CallMode::InPlace).await;
    waiting_calls_do_not_start(CallMode::OWN_THREADS).await;
}

#[tokio::test]
async fn cancelled_program_ends_its_running_call_first() {
    let stage = granting(&["nested_spin"], |builder| builder);
    let call = making(&json!([{"tool": "nested_spin", "input": {}}]));
    let cancel = call.cancellation().clone();
    let running = stage.begin(&stage.session(), call);
    stage.recorder.until(|events| events.len() >= 2).await;
    cancel.cancel();
    let result = running.await.unwrap();
    assert_eq!(result.error().unwrap().class().as_str(), "cancelled");
    let terminal = stage.recorder.terminal();
    let ended: Vec<_> =
        terminal.iter().map(|event| event.subject().unwrap().call_id.to_string()).collect();
    assert_eq!(ended, ["outer.1", "outer"]);
}

#[tokio::test]
async fn dropped_program_ends_its_running_call() {
    let stage = granting(&["nested_spin"], |builder| builder);
    let running =
        stage.begin(&stage.session(), making(&json!([{"tool": "nested_spin", "input": {}}])));
    stage.recorder.until(|events| events.len() >= 2).await;
    running.abort();
    assert!(running.await.is_err());
    stage.ended_once("outer.1");
    stage.ended_once("outer");
}

/// Four calls hold all slots of a session, and 64 all threads; each makes a call that needs one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_never_wait_for_themselves() {
    for mode in [CallMode::InPlace, CallMode::OwnThreads { threads: 4, lost: 4 }] {
        let stage = granting(&["read_file"], |builder| builder.call_mode(mode));
        stage.world.file("a.txt", "text");
        let session = stage.session();
        let calls: Vec<_> = (0..4)
            .map(|n| json!({"tool": "read_file", "input": {"path": "a.txt"}, "place": n.to_string()}))
            .collect();
        let input = json!({"calls": calls, "order": "at_once"});
        let programs: Vec<_> = (0..16)
            .map(|_| stage.begin(&session, Call::new("nested_read", input.clone())))
            .collect();
        for program in programs {
            let result = program.await.unwrap();
            assert!(results(&result).iter().all(|(class, _)| class.is_empty()), "{result}");
        }
    }
}

/// More programs than there are sandboxes, each of which makes a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_in_all_sandboxes_still_call() {
    let stage = granting(&["calculate"], |builder| builder.concurrency(256));
    let session = stage.host.new_session("many").build();
    let calls = json!([{"tool": "calculate", "input": {"expression": "6 * 7"}}]);
    let programs: Vec<_> = (0..300)
        .map(|_| stage.begin(&session, Call::new("nested_run", json!({"calls": calls}))))
        .collect();
    for program in programs {
        let result = program.await.unwrap();
        assert_eq!(results(&result)[0].1, "42", "{result}");
    }
}
