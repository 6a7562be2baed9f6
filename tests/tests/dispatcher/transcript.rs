//! A conversation stays valid: every call in it has an answer, however the call ended.

use palisade::{Call, CallId, CancellationToken, ToolResult, Transcript, json};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::stage::class;

use super::{stage, waiting, writing};

/// A transcript that records what is appended.
#[derive(Default)]
struct Conversation {
    answers: Vec<(String, String, String)>,
    executions: Vec<(String, String)>,
}

impl Transcript for Conversation {
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
    let (stage, mut conversation) = (stage(), Conversation::default());
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
    let stage = Stage::new(&[], |builder| {
        builder.confirmer(std::sync::Arc::new(palisade::confirm::DenyAll))
    });
    let mut conversation = Conversation::default();
    let _ =
        block_on(stage.host.dispatch_into(&stage.session(), vec![writing("w")], &mut conversation));
    assert_eq!(conversation.answers[0].2, "the user denied this operation");
}

#[test]
fn dropped_message_leaves_an_answer_to_each_call() {
    let (stage, mut conversation) = (stage(), Conversation::default());
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
    let (stage, mut conversation) = (stage(), Conversation::default());
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
