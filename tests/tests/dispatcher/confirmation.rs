//! Confirmation requests: only the first answer counts, for one request, and every confirmer learns
//! the outcome.

use std::sync::Arc;
use std::time::Duration;

use palisade::{
    Call, CallId, HostBuilder, SideEffects,
    confirm::{Answer, AnswerRefused, ConfirmFn, ConfirmationQueue, DenyAll, FirstOf, Resolution},
    events::Event,
    json,
    policy::{Mode, Policy},
    sandbox::PluginSettings,
};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::guest::DISPATCHER_GATE;
use palisade_tests::stage::class;

use super::{on_driven_clock, stage, tool_of, writing};

/// Returns the decisions on a call, as the events report them.
fn settled(stage: &Stage, call: &str) -> Vec<Resolution> {
    let decision = |event: &Event| match event {
        Event::ConfirmationResolved(_, _, decision) => Some(*decision),
        _ => None,
    };
    stage.recorder.events_of(call).iter().filter_map(decision).collect()
}

#[test]
fn question_has_all_facts_for_the_decision() {
    let stage = stage();
    block_on(async {
        let call = Call::new(
            "write_file",
            json!({"path": "./sub/../note.txt", "content": "x".repeat(5000)}),
        )
        .with_turn("t-7");
        let waiting = stage.begin(&stage.session(), call.with_id("w"));
        let question = stage.confirmations.next().await;
        assert_eq!(
            (question.tool.as_str(), question.side_effects),
            ("write_file", SideEffects::Write)
        );
        assert_eq!(
            (question.session_id.as_deref(), question.turn_id.as_deref()),
            (Some("session-1"), Some("t-7"))
        );
        assert_eq!(question.projected_modifications, ["note.txt"], "as for the call");
        assert!(
            question.input_summary.contains("characters …") && question.input_summary.len() < 1200
        );
        assert_eq!(question.valid_for, Duration::from_secs(300));
        assert_eq!(
            question.digest,
            stage
                .host
                .plugins()
                .iter()
                .find(|p| p.name() == "files")
                .map(palisade::plugins::Plugin::digest)
        );
        stage.confirmations.answer(&question.id, Answer::Deny).unwrap();
        let _ = waiting.await;
    });
}

#[test]
fn call_refused_regardless_causes_no_question() {
    let stage =
        Stage::new(&[], |builder| builder.confirmer(Arc::new(ConfirmFn::new(|_| Answer::Allow))));
    let call = Call::new("write_file", json!({"path": ".git/hook", "content": "x"})).with_id("w");
    let result = block_on(async { stage.begin(&stage.session(), call).await.unwrap() });
    assert_eq!(result.to_json()["error"]["detail"], json!({"reason": "protected", "tree": ".git"}));
    assert_eq!(settled(&stage, "w"), []);
}

#[test]
fn first_answer_wins_and_the_second_learns_it() {
    let stage = stage();
    block_on(async {
        let waiting = stage.begin(&stage.session(), writing("w"));
        let question = stage.confirmations.next().await;
        stage.confirmations.answer(&question.id, Answer::Deny).unwrap();
        let late = stage.confirmations.clone().answer(&question.id, Answer::Allow);
        assert_eq!(late, Err(AnswerRefused::AlreadyAnswered(Answer::Deny)));
        assert_eq!(class(&waiting.await.unwrap()), "user_denied");
    });
    assert_eq!(settled(&stage, "w"), [Resolution::Answered(Answer::Deny)]);
    assert_eq!(stage.world.read("made.txt"), None);
}

#[test]
fn first_of_several_confirmers_wins_and_others_learn_it() {
    let (one, other) = (ConfirmationQueue::default(), ConfirmationQueue::default());
    let both = FirstOf::new(vec![Arc::new(one.clone()), Arc::new(other.clone())]);
    let stage = Stage::new(&[], |builder| builder.confirmer(Arc::new(both)));
    block_on(async {
        let waiting = stage.begin(&stage.session(), writing("w"));
        let (question, same) = (one.next().await, other.next().await);
        assert_eq!(question, same);
        other.answer(&same.id, Answer::Allow).unwrap();
        assert!(waiting.await.unwrap().is_success());
        assert_eq!(one.answer(&question.id, Answer::Deny), Err(AnswerRefused::Withdrawn));
        assert!(one.pending().is_empty() && other.pending().is_empty());
    });
    assert_eq!(settled(&stage, "w"), [Resolution::Answered(Answer::Allow)]);
}

#[test]
fn allow_counts_once() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        for id in ["first", "second"] {
            let waiting = stage.begin(&session, writing(id));
            let question = stage.confirmations.next().await;
            assert_eq!(question.call_id.as_str(), id);
            stage.confirmations.answer(&question.id, Answer::Allow).unwrap();
            assert!(waiting.await.unwrap().is_success());
        }
    });
}

#[test]
fn always_applies_to_tool_and_session_including_waiting_calls() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let (first, second) =
            (stage.begin(&session, writing("first")), stage.begin(&session, writing("second")));
        let question = stage.confirmations.next().await;
        let _other = stage.confirmations.next().await;
        stage.confirmations.answer(&question.id, Answer::Always).unwrap();
        assert!(first.await.unwrap().is_success() && second.await.unwrap().is_success());
        assert!(stage.host.dispatch(&session, writing("third")).await.is_success());
        assert_eq!(stage.recorder.names_of("third"), ["tool.called", "tool.completed"]);
        assert!(stage.confirmations.pending().is_empty(), "the second question was withdrawn");
        // Another tool of the same plugin and class, and the same tool in another session, still
        // need confirmation.
        let other_tool = Call::new("delete_file", json!({"path": "made.txt"}));
        for (session, call) in [
            (&session, other_tool),
            (&stage.host.new_session("another").build(), writing("fourth")),
        ] {
            let waiting = stage.begin(session, call);
            stage.confirmations.answer(&stage.confirmations.next().await.id, Answer::Deny).unwrap();
            assert_eq!(class(&waiting.await.unwrap()), "user_denied");
        }
    });
    assert_eq!(settled(&stage, "second"), [Resolution::AllowedMeanwhile]);
}

/// Two files with the same bytes are two plugins, each with settings of its own.
#[test]
fn always_applies_to_no_other_plugin_with_the_same_code() {
    let files = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| files.path().join(format!("{name}.wasm")));
    for path in &paths {
        std::fs::copy(DISPATCHER_GATE.file(), path).unwrap();
    }
    let stage = Stage::new(&[], |builder| {
        let own = PluginSettings::default().with_prefix("two_").unwrap();
        let builder = paths.iter().fold(builder, HostBuilder::plugin_file);
        builder.plugin_settings("two", own)
    });
    let session = stage.session();
    let tool = tool_of(SideEffects::Write);
    let call = |tool: &str| Call::new(tool, json!({"number": 1}));
    block_on(async {
        let first = stage.begin(&session, call(&tool));
        stage.confirmations.answer(&stage.confirmations.next().await.id, Answer::Always).unwrap();
        assert!(first.await.unwrap().is_success());
        let other = stage.begin(&session, call(&format!("two_{tool}")));
        stage.confirmations.answer(&stage.confirmations.next().await.id, Answer::Deny).unwrap();
        assert_eq!(class(&other.await.unwrap()), "user_denied");
    });
}

#[test]
fn question_without_an_answer_is_refused_as_such() {
    let stage =
        Stage::new(&[], |builder| builder.confirmer(Arc::new(ConfirmFn::new(|_| Answer::None))));
    let result = block_on(async { stage.begin(&stage.session(), writing("w")).await.unwrap() });
    assert_eq!(class(&result), "user_denied");
    let said = result.error().unwrap().message();
    assert!(said.contains("got no answer (its input ended, or it was closed)"), "{said}");
    assert_eq!(settled(&stage, "w"), [Resolution::Answered(Answer::None)]);
}

#[test]
fn always_does_not_lift_a_deny() {
    let policy = Policy::default().with_tool("write_file", Mode::Deny);
    let stage = Stage::new(&[], |builder| {
        builder.policy(policy).confirmer(Arc::new(ConfirmFn::new(|_| Answer::Always)))
    });
    let result = block_on(stage.host.dispatch(&stage.session(), writing("w")));
    assert_eq!(class(&result), "permission_denied");
    assert_eq!(stage.recorder.names_of("w"), ["tool.failed"]);
}

#[test]
fn allow_counts_as_always_for_prompt_once() {
    let policy = Policy::default().with_class(SideEffects::Write, Mode::PromptOnce);
    let stage = Stage::new(&[], |builder| builder.policy(policy));
    let session = stage.session();
    block_on(async {
        let waiting = stage.begin(&session, writing("first"));
        stage.confirmations.answer(&stage.confirmations.next().await.id, Answer::Allow).unwrap();
        assert!(waiting.await.unwrap().is_success());
        assert!(stage.host.dispatch(&session, writing("second")).await.is_success());
    });
    assert_eq!(stage.recorder.names_of("second"), ["tool.called", "tool.completed"]);
}

#[test]
fn answer_after_cancellation_starts_nothing() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let waiting = stage.begin(&session, writing("w"));
        let question = stage.confirmations.next().await;
        assert!(session.cancel(&CallId::new("w")));
        assert_eq!(class(&waiting.await.unwrap()), "cancelled");
        assert_eq!(
            stage.confirmations.answer(&question.id, Answer::Allow),
            Err(AnswerRefused::Withdrawn)
        );
    });
    assert_eq!(settled(&stage, "w"), [Resolution::Withdrawn]);
    assert_eq!(stage.world.read("made.txt"), None);
    stage.ended_once("w");
}

#[test]
fn answer_after_timeout_starts_nothing() {
    let stage = stage();
    on_driven_clock(async {
        let waiting = stage.begin(&stage.session(), writing("w"));
        let question = stage.confirmations.next().await;
        let begun = tokio::time::Instant::now();
        assert_eq!(class(&waiting.await.unwrap()), "confirmation_timeout");
        assert_eq!(begun.elapsed(), Duration::from_secs(300), "the default is five minutes");
        assert_eq!(
            stage.confirmations.answer(&question.id, Answer::Allow),
            Err(AnswerRefused::Withdrawn)
        );
    });
    assert_eq!(settled(&stage, "w"), [Resolution::TimedOut]);
    assert_eq!(stage.world.read("made.txt"), None);
}

#[test]
fn lost_client_leaves_the_question_to_others() {
    let (lost, stays) = (ConfirmationQueue::default(), ConfirmationQueue::default());
    let both = FirstOf::new(vec![Arc::new(lost.clone()), Arc::new(stays.clone())]);
    let stage = Stage::new(&[], |builder| builder.confirmer(Arc::new(both)));
    block_on(async {
        let waiting = stage.begin(&stage.session(), writing("w"));
        let _shown = lost.next().await;
        drop(lost);
        stays.answer(&stays.next().await.id, Answer::Allow).unwrap();
        assert!(waiting.await.unwrap().is_success());
    });
}

#[test]
fn dropped_caller_withdraws_its_question() {
    let stage = stage();
    block_on(async {
        let waiting = stage.begin(&stage.session(), writing("w"));
        let question = stage.confirmations.next().await;
        waiting.abort();
        let _ = waiting.await;
        assert_eq!(
            stage.confirmations.answer(&question.id, Answer::Allow),
            Err(AnswerRefused::Withdrawn)
        );
    });
    assert_eq!(settled(&stage, "w"), [Resolution::Withdrawn]);
    let names = ["tool.confirmation_requested", "tool.confirmation_resolved", "tool.failed"];
    assert_eq!(stage.recorder.names_of("w"), names);
}

#[test]
fn allowance_expires_while_its_call_is_queued() {
    let stage = Stage::new(&[DISPATCHER_GATE], |builder| {
        builder.tool_concurrency("of_write", 1).confirmation_timeout(Duration::from_secs(10))
    });
    let session = stage.host.new_session("s").concurrency(1).build();
    on_driven_clock(async {
        let _holds = stage.begin(&session, super::waiting("holds"));
        stage.started(1).await;
        let waiting = stage.begin(
            &session,
            Call::new(tool_of(SideEffects::Write), json!({"number": 1})).with_id("w"),
        );
        stage.confirmations.answer(&stage.confirmations.next().await.id, Answer::Allow).unwrap();
        tokio::time::sleep(Duration::from_secs(11)).await;
        stage.world.file("open", "go");
        assert_eq!(class(&waiting.await.unwrap()), "confirmation_timeout");
    });
    assert_eq!(stage.world.read("written.txt"), None);
    stage.ended_once("w");
}

#[test]
fn deny_all_answers_like_a_person() {
    let stage = Stage::new(&[], |builder| builder.confirmer(Arc::new(DenyAll)));
    let result = block_on(stage.host.dispatch(&stage.session(), writing("w")));
    assert_eq!(class(&result), "user_denied");
    assert_eq!(settled(&stage, "w"), [Resolution::Answered(Answer::Deny)]);
}

#[test]
fn no_confirmer_causes_no_question_event() {
    let nobody = FirstOf::new(vec![
        Arc::new(palisade::confirm::NoConfirmer),
        Arc::new(palisade::confirm::NoConfirmer),
    ]);
    let stage = Stage::new(&[], |builder| builder.confirmer(Arc::new(nobody)));
    let result = block_on(stage.host.dispatch(&stage.session(), writing("w")));
    assert_eq!(class(&result), "permission_denied");
    assert_eq!(result.to_json()["error"]["detail"]["reason"], "no_confirmer");
    assert_eq!(stage.recorder.names_of("w"), ["tool.failed"]);
}

#[test]
fn unknown_question_cannot_be_answered() {
    let unknown = ConfirmationQueue::default()
        .answer(&palisade::confirm::RequestId::new("cr_0"), Answer::Allow);
    assert_eq!(unknown, Err(AnswerRefused::Unknown));
}
