//! From a model's reply to the messages that answer it, in one call.

use palisade::formats::{Provider, ToolUse, read_calls, write_results};
use palisade::policy::Policy;
use palisade::{Session, SideEffects, Transcript, json};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use serde_json::Value;
use std::convert::identity;

use super::{stage, waiting, writing};

/// Reads a provider's recorded reply: three calls that succeed and two that fail.
fn recorded(provider: Provider) -> String {
    let file = format!("{}/replies/{provider}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(file).unwrap()
}

/// Returns a session in which writing tools run unasked.
fn unasked(stage: &Stage) -> Session {
    let policy = Policy::default().allowing(SideEffects::Write);
    stage.host.new_session("unasked").policy(policy).build()
}

/// Returns a reply of Anthropic's with these calls: id, tool, input.
fn asking(calls: &[(&str, &str, Value)]) -> String {
    let blocks: Vec<Value> = calls
        .iter()
        .map(
            |(id, tool, input)| json!({"type": "tool_use", "id": id, "name": tool, "input": input}),
        )
        .collect();
    json!({"role": "assistant", "content": blocks}).to_string()
}

#[test]
fn reply_of_each_provider_is_answered_in_one_call() {
    for provider in Provider::ALL {
        let stage = stage();
        stage.world.file("notes.txt", "remember the milk\nOPEN: buy it\n");
        let (session, reply) = (stage.session(), recorded(provider));
        let mut transcript = Transcript::new(provider);
        let work = stage.host.dispatch_reply(&session, &reply, &mut transcript, identity);
        let results = block_on(work).unwrap();
        assert_eq!((results.len(), transcript.executions().len()), (5, 5), "{provider}");
        let calls = read_calls(provider, &reply).unwrap();
        let answered: Vec<_> = calls.into_iter().zip(results).collect();
        let (answers, _) = write_results(provider, &answered);
        let answers = answers.as_array().unwrap().clone();
        let (model, tail) =
            transcript.messages().split_at(transcript.messages().len() - answers.len());
        assert_eq!(tail, answers, "{provider}");
        // A further reading finds the same calls in the model's own messages.
        let asked = read_calls(provider, &Value::from(model.to_vec()).to_string()).unwrap();
        let names = |calls: Vec<&str>| calls.join(" ");
        assert_eq!(
            names(asked.iter().map(ToolUse::name).collect()),
            names(answered.iter().map(|(call, _)| call.name()).collect()),
            "{provider}"
        );
        // With the answers behind them, no call is left.
        let all = Value::from(transcript.messages().to_vec()).to_string();
        assert_eq!(read_calls(provider, &all).unwrap().len(), 0, "{provider}");
    }
}

#[test]
fn reply_without_calls_is_the_end_and_a_bad_reply_changes_nothing() {
    let stage = stage();
    let (session, mut transcript) = (stage.session(), Transcript::new(Provider::OpenAi));
    let mut take = |reply: &str| {
        let done = block_on(stage.host.dispatch_reply(&session, reply, &mut transcript, identity));
        (done.map(|results| results.len()).ok(), transcript.messages().len())
    };
    assert_eq!(take("not JSON"), (None, 0));
    assert_eq!(take(r#"{"error": {"message": "quota"}}"#), (None, 0));
    assert_eq!(
        take(r#"{"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}"#),
        (Some(0), 1)
    );
}

#[test]
fn execution_has_what_the_model_does_not_read() {
    let stage = stage();
    let (session, mut transcript) = (unasked(&stage), Transcript::new(Provider::Anthropic));
    let reply = asking(&[("w", "write_file", json!({"path": "made.txt", "content": "made"}))]);
    let prepare =
        |call: palisade::Call| call.with_turn("t-1").with_context(json!({"key": "secret"}));
    let work = stage.host.dispatch_reply(&session, &reply, &mut transcript, prepare);
    assert_eq!(block_on(work).unwrap().len(), 1);
    let execution = &transcript.executions()[0];
    assert_eq!((&*execution.call_id, &*execution.tool), ("w", "write_file"));
    assert_eq!(execution.turn_id.as_deref(), Some("t-1"));
    assert_eq!(execution.result["files_modified"], json!(["made.txt"]));
    assert_eq!(execution.input, r#"{"content":"made","path":"made.txt"}"#);
    let stored = serde_json::to_string(&transcript).unwrap();
    assert!(!stored.contains("secret"), "a call's context is not stored: {stored}");
}

#[test]
fn dropped_reply_leaves_a_transcript_that_continues() {
    let stage = stage();
    let (session, mut transcript) = (unasked(&stage), Transcript::new(Provider::Anthropic));
    let reply = asking(&[
        ("a", "wait_for", json!({"path": "open"})),
        ("w", "write_file", json!({"path": "made.txt", "content": "made"})),
    ]);
    block_on(async {
        let done = stage.recorder.until(|events| {
            events.iter().any(|event| {
                event.is_terminal() && event.subject().is_some_and(|it| it.call_id.as_str() == "w")
            })
        });
        tokio::select! {
            _ = stage.host.dispatch_reply(&session, &reply, &mut transcript, identity) => panic!("one call waits"),
            () = async { tokio::join!(stage.started(1), done); } => {}
        }
    });
    let ends: Vec<(&str, &Value)> = transcript
        .executions()
        .iter()
        .map(|execution| (&*execution.call_id, &execution.result["success"]))
        .collect();
    assert_eq!(ends, [("a", &json!(false)), ("w", &json!(true))]);
    let stored = serde_json::to_string(&transcript).unwrap();
    let mut restored: Transcript = serde_json::from_str(&stored).unwrap();
    assert_eq!(restored, transcript);
    let all = Value::from(restored.messages().to_vec()).to_string();
    assert_eq!(read_calls(Provider::Anthropic, &all).unwrap().len(), 0, "every call is answered");
    let next = asking(&[("b", "read_file", json!({"path": "made.txt"}))]);
    let work = stage.host.dispatch_reply(&session, &next, &mut restored, identity);
    assert_eq!(block_on(work).unwrap()[0].output().as_deref(), Some("made"));
}

#[test]
fn transcript_takes_calls_that_came_from_no_reply() {
    let stage = stage();
    stage.world.file("open", "opened");
    for provider in Provider::ALL {
        let (session, mut transcript) = (unasked(&stage), Transcript::new(provider));
        let calls = vec![waiting("a"), writing("w")];
        let _ = block_on(stage.host.dispatch_into(&session, calls, &mut transcript));
        let told = serde_json::to_string(transcript.messages()).unwrap();
        assert!(told.contains("opened") && told.contains("made.txt"), "{provider}: {told}");
        assert_eq!(transcript.executions().len(), 2, "{provider}");
    }
}
