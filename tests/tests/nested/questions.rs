//! Questions about nested calls: each is asked by itself, and names what makes the call.

use super::{granting, making, results};
use palisade::confirm::Answer;
use palisade::events::Event;
use palisade::{Call, json};
use std::time::Duration;

fn write(path: &str, place: &str) -> serde_json::Value {
    let input = json!({"path": path, "content": "x"});
    json!({"tool": "write_file", "input": input, "place": place})
}

#[tokio::test]
async fn each_nested_write_is_asked_about_with_its_program() {
    let stage = granting(&["write_file"], |builder| builder);
    let calls = json!([write("a.txt", "line 3"), write("b.txt", "line 9\u{202e}")]);
    let running = stage.begin(&stage.session(), making(&calls));
    let first = stage.confirmations.next().await;
    let caller = first.called_by.clone().unwrap();
    assert_eq!((caller.call_id.as_str(), caller.tool.as_str()), ("outer", "nested_run"));
    assert_eq!(caller.plugin.as_deref(), Some("nested_calls"));
    assert_eq!(caller.to_string(), r#"nested_run (plugin nested_calls), at "line 3""#);
    assert_eq!(first.call_id.as_str(), "outer.1");
    assert_eq!(first.projected_modifications, ["a.txt"]);
    assert!(stage.world.read("a.txt").is_none(), "nothing runs before the answer");
    stage.confirmations.answer(&first.id, Answer::Allow).unwrap();
    let second = stage.confirmations.next().await;
    assert!(second.called_by.unwrap().to_string().ends_with("line 9\\u{202e}\""));
    stage.confirmations.answer(&second.id, Answer::Deny).unwrap();
    let results = results(&running.await.unwrap());
    assert_eq!([&*results[0].0, &*results[1].0], ["", "user_denied"]);
    assert!(stage.world.read("a.txt").is_some() && stage.world.read("b.txt").is_none());
}

#[tokio::test]
async fn nested_write_is_refused_if_nobody_can_be_asked() {
    let stage = granting(&["write_file"], |builder| {
        builder.confirmer(std::sync::Arc::new(palisade::confirm::NoConfirmer))
    });
    let call = making(&json!([write("a.txt", "line 1")]));
    let result = stage.host.dispatch(&stage.session(), call).await;
    assert_eq!(results(&result)[0].0, "permission_denied");
    assert!(stage.world.read("a.txt").is_none());
}

#[tokio::test]
async fn questions_of_calls_at_once_are_asked_in_order() {
    let stage = granting(&["write_file"], |builder| builder);
    let calls: Vec<_> = (0..6).map(|n| write(&format!("{n}.txt"), "here")).collect();
    let input = json!({"calls": calls, "order": "at_once"});
    let running = stage.begin(&stage.session(), Call::new("nested_run", input).with_id("outer"));
    for number in 0..6 {
        let request = stage.confirmations.next().await;
        assert_eq!(request.projected_modifications, [format!("{number}.txt")]);
        let answer = if number % 2 == 0 { Answer::Allow } else { Answer::Deny };
        stage.confirmations.answer(&request.id, answer).unwrap();
    }
    let classes: Vec<_> = results(&running.await.unwrap()).into_iter().map(|it| it.0).collect();
    assert_eq!(classes, ["", "user_denied", "", "user_denied", "", "user_denied"]);
}

#[tokio::test]
async fn time_for_an_answer_is_not_the_time_of_the_program() {
    let stage = granting(&["write_file"], |builder| builder);
    let time = Duration::from_millis(800);
    let call = making(&json!([write("a.txt", "line 1")])).with_timeout(time);
    let running = stage.begin(&stage.session(), call);
    let request = stage.confirmations.next().await;
    tokio::time::sleep(time + Duration::from_millis(400)).await;
    stage.confirmations.answer(&request.id, Answer::Allow).unwrap();
    let result = running.await.unwrap();
    assert_eq!(results(&result)[0].0, "", "{result}");
    assert!(result.duration() < time, "{:?}", result.duration());
}

#[tokio::test]
async fn cancelled_program_takes_its_question_back() {
    let stage = granting(&["write_file"], |builder| builder);
    let session = stage.session();
    let running = stage.begin(&session, making(&json!([write("a.txt", "line 1")])));
    let request = stage.confirmations.next().await;
    assert_eq!(session.cancel_all(), 2);
    let result = running.await.unwrap();
    assert_eq!(result.error().unwrap().class().as_str(), "cancelled");
    assert!(stage.confirmations.answer(&request.id, Answer::Allow).is_err());
    assert!(stage.world.read("a.txt").is_none());
    let ends = |event: &&Event| event.is_terminal();
    let events = stage.recorder.events();
    let ended: Vec<_> =
        events.iter().filter(ends).map(|it| it.subject().unwrap().call_id.to_string()).collect();
    assert_eq!(ended, ["outer.1", "outer"], "the inner call ends first");
}
