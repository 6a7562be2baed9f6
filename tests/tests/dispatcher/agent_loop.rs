//! The agent loop of the examples, run against a scripted model.

use palisade::formats::Provider;
use palisade::{Transcript, json};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::guest::CONTRACT_OUTCOME;
use serde_json::Value;

#[allow(dead_code, reason = "its `main` is the example")]
#[path = "../../../examples/embed/src/bin/agent_loop.rs"]
mod example;

use example::{End, Finish, Script, run};

/// Runs the loop with these turns of the model.
fn run_loop(turns: &[&[(&str, Value)]], most: usize) -> (End, Script, Transcript) {
    let finish = Finish::factory().unwrap();
    let stage = Stage::new(&[CONTRACT_OUTCOME], |builder| builder.tool(finish));
    stage.world.file("note.txt", "noted");
    let (session, mut model) = (stage.session(), Script::of(turns));
    let mut transcript = Transcript::new(Provider::OpenAi);
    transcript.push(json!({"role": "user", "content": "Read the note."}));
    let end = block_on(run(&stage.host, &session, &mut model, &mut transcript, most)).unwrap();
    (end, model, transcript)
}

fn reading() -> (&'static str, Value) {
    ("read_file", json!({"path": "note.txt"}))
}

#[test]
fn model_gets_every_answer_until_it_asks_for_no_tool() {
    let (end, model, transcript) = run_loop(&[&[reading(), ("no_such_tool", json!({}))]], 8);
    assert_eq!((end, model.requests.len()), (End::Answered, 2));
    let messages = transcript.messages();
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant"]);
    assert_eq!(messages[2]["content"], "noted");
    assert_eq!(messages[3]["tool_call_id"], "call_no_such_tool");
    assert_eq!(model.requests[1]["messages"].as_array().unwrap()[..], messages[..4]);
    assert!(model.requests[1]["tools"].to_string().contains("read_file"));
    assert_eq!(transcript.executions()[0].turn_id.as_deref(), Some("turn-1"));
}

#[test]
fn tool_that_says_so_ends_the_loop() {
    // A native tool, and a plugin of a third party beside another call of the same message.
    let finish = ("finish", json!({"summary": "It is noted."}));
    for last in [vec![finish], vec![("report", json!({})), reading()]] {
        let (end, model, transcript) = run_loop(&[&[reading()], &last, &[reading()]], 8);
        assert_eq!((end, model.requests.len()), (End::Stopped, 2), "the model is not asked again");
        let executions = transcript.executions();
        assert_eq!(executions.len(), 1 + last.len(), "all calls of the message are answered");
        assert_eq!(executions[1].result["metadata"]["stop_loop"], true);
        let read = serde_json::to_string(transcript.messages()).unwrap();
        assert!(!read.contains("stop_loop"), "the model reads no metadata: {read}");
    }
}

#[test]
fn loop_ends_after_its_turns() {
    let turns: [&[(&str, Value)]; 4] = [&[reading()], &[reading()], &[reading()], &[reading()]];
    let (end, model, _) = run_loop(&turns, 3);
    assert_eq!((end, model.requests.len()), (End::OutOfTurns, 3));
}
