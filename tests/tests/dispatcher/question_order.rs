//! The order of the questions about the calls of a message, and the questions that an answer to
//! another one settles.

use palisade::confirm::Answer;
use palisade::{Call, json};
use palisade_tests::case::block_on;
use palisade_tests::stage::class;

use super::{stage, writing};

/// Returns the calls of one message that write these files. The input of the first one takes long
/// to check, on another thread, while the others ask at once.
fn message(files: &[&str]) -> Vec<Call> {
    let write = |(index, file): (usize, &&str)| {
        let more = vec![json!([0]); if index == 0 { 20_000 } else { 0 }];
        let input = json!({"path": file, "content": "x", "more": more});
        Call::new("write_file", input).with_id(file)
    };
    files.iter().enumerate().map(write).collect()
}

#[test]
fn questions_of_a_message_come_in_the_order_of_its_calls() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let answers = async {
            for file in ["a", "b", "c"] {
                let question = stage.confirmations.next().await;
                assert_eq!(question.call_id.as_str(), file);
                stage.confirmations.answer(&question.id, Answer::Deny).unwrap();
            }
        };
        let calls = stage.host.dispatch_all(&session, message(&["a", "b", "c"]));
        let (results, ()) = tokio::join!(calls, answers);
        assert!(results.iter().all(|result| class(result) == "user_denied"));
    });
}

#[test]
fn earlier_call_without_a_question_delays_no_question() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let mut calls = vec![super::waiting("first")];
        calls.push(Call::new("write_file", json!({"path": 7})).with_id("invalid"));
        calls.push(writing("asked"));
        let running = stage.host.dispatch_all(&session, calls);
        let answer = async {
            let question = stage.confirmations.next().await;
            assert_eq!(question.call_id.as_str(), "asked");
            stage.confirmations.answer(&question.id, Answer::Allow).unwrap();
            std::fs::write(stage.world.root().join("open"), "").unwrap();
        };
        let (results, ()) = tokio::join!(running, answer);
        assert!(results[0].is_success() && results[2].is_success(), "{results:?}");
    });
}

#[test]
fn question_that_an_always_settles_is_not_returned() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let mut asked = Vec::new();
        let answers = async {
            loop {
                let question = stage.confirmations.next().await;
                asked.push(question.call_id.as_str().to_owned());
                // All calls have asked by then.
                while stage.confirmations.pending().len() < 3 {
                    tokio::task::yield_now().await;
                }
                stage.confirmations.answer(&question.id, Answer::Always).unwrap();
            }
        };
        let results = tokio::select! {
            results = stage.host.dispatch_all(&session, message(&["a", "b", "c"])) => results,
            () = answers => unreachable!("the loop has no end"),
        };
        assert!(results.iter().all(palisade::ToolResult::is_success), "{results:?}");
        assert_eq!(asked, ["a"]);
    });
}

#[test]
fn question_that_an_answer_does_not_settle_is_returned_after_it() {
    let stage = stage();
    let (session, other) = (stage.session(), stage.host.new_session("session-1").build());
    block_on(async {
        // Two sessions of one id: their questions look alike.
        let (one, two) =
            (stage.begin(&session, writing("one")), stage.begin(&other, writing("two")));
        while stage.confirmations.pending().len() < 2 {
            tokio::task::yield_now().await;
        }
        for answer in [Answer::Always, Answer::Deny] {
            let question = stage.confirmations.next().await;
            stage.confirmations.answer(&question.id, answer).unwrap();
        }
        assert!(one.await.unwrap().is_success());
        assert_eq!(class(&two.await.unwrap()), "user_denied");
    });
}
