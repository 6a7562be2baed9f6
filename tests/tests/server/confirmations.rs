//! The confirmation request flow of the dispatcher's specification (§5.3) over HTTP and SSE.

use crate::served;
use palisade_tests::World;
use palisade_tests::api::{Api, until, write};
use palisade_tests::event_stream::EventStream;
use serde_json::{Value, json};
use std::thread::JoinHandle;

/// Starts a write of a client while the operator reads events, and returns the one that asks.
fn asked(api: &Api, events: &mut EventStream, id: &str, path: &str) -> (JoinHandle<Value>, Value) {
    let call = api.client.begin_call("s1", &write(id, path));
    let question = events.of_call("tool.confirmation_requested", id);
    (call, question)
}

#[test]
fn answer_over_http_lets_a_call_run_or_ends_it() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    let mut attached = api.client.events("/sessions/s1/events?after=0");
    let (call, question) = asked(&api, &mut events, "c1", "a.txt");
    // The members that the event has in the specification.
    assert_eq!(question["tool_name"], "write_file", "{question}");
    assert_eq!(question["side_effects"], "write", "{question}");
    assert_eq!(question["projected_modifications"], json!(["a.txt"]), "{question}");
    assert!(question["input_summary"].as_str().unwrap().contains("a.txt"), "{question}");
    assert_eq!(world.read("a.txt"), None, "nothing has begun");
    let answer = api.operator.decide(&question, "allow");
    assert_eq!(answer.status, 200, "{answer:?}");
    let taken = answer.message();
    assert_eq!(
        (&taken["decision"], &taken["answered_by"], &taken["request_id"]),
        (&json!("allow"), &json!("operator"), &question["request_id"]),
    );
    assert_eq!(call.join().unwrap()["success"], true);
    assert_eq!(world.read("a.txt").as_deref(), Some("written\n"));
    let (call, question) = asked(&api, &mut events, "c2", "b.txt");
    assert_eq!(api.operator.decide(&question, "deny").status, 200);
    assert_eq!(call.join().unwrap()["error"]["class"], "user_denied");
    assert_eq!(world.read("b.txt"), None);
    // Everybody attached to the session saw the questions and what became of them.
    for (id, decision, last) in [("c1", "allow", "completed"), ("c2", "deny", "failed")] {
        let _ = attached.of_call("tool.confirmation_requested", id);
        let resolved = attached.of_call("tool.confirmation_resolved", id);
        assert_eq!(resolved["decision"], decision, "{resolved}");
        let _ = attached.of_call(&format!("tool.{last}"), id);
    }
}

#[test]
fn input_that_is_too_long_to_be_shown_says_so() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    let content = "\n".repeat(700_000);
    let body =
        json!({"id": "c1", "tool": "write_file", "input": {"path": "a.txt", "content": content}});
    let call = api.client.begin_call("s1", &body);
    let question = events.of_call("tool.confirmation_requested", "c1");
    let id = question["request_id"].as_str().unwrap();
    let page = api.operator.get(&format!("/confirmations/{id}")).message();
    assert_eq!((&page["input"], &page["input_truncated"]), (&json!(null), &json!(true)), "{page}");
    assert!(page["input_bytes"].as_u64() > Some(1_400_000), "{page}");
    let note = page["files"][0]["note"].as_str().unwrap();
    assert!(note.contains("too long to be compared"), "{note}");
    assert_eq!(api.operator.decide(&question, "deny").status, 200);
    assert_eq!(call.join().unwrap()["success"], false);
}

#[test]
fn always_answers_for_the_tool_in_this_session_only() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    let (call, question) = asked(&api, &mut events, "c1", "a.txt");
    assert_eq!(api.operator.decide(&question, "always").status, 200);
    assert_eq!(call.join().unwrap()["success"], true);
    assert_eq!(api.client.call("s1", &write("c2", "b.txt"))["success"], true, "without a question");
    api.session("s2");
    let call = api.client.begin_call("s2", &write("c3", "c.txt"));
    let question = events.of_call("tool.confirmation_requested", "c3");
    assert_eq!(api.operator.decide(&question, "deny").status, 200);
    assert_eq!(call.join().unwrap()["success"], false);
}

#[test]
fn second_answer_is_told_what_won() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    let (call, question) = asked(&api, &mut events, "c1", "a.txt");
    assert_eq!(api.operator.decide(&question, "deny").status, 200);
    let late = api.operator.decide(&question, "allow");
    let problem = late.message();
    assert_eq!((late.status, &problem["code"]), (409, &json!("already_answered")), "{late:?}");
    assert_eq!(problem["resolution"]["decision"], "deny", "{problem}");
    assert_eq!(problem["resolution"]["answered_by"], "operator", "{problem}");
    assert_eq!(call.join().unwrap()["error"]["class"], "user_denied");
    assert_eq!(world.read("a.txt"), None, "the loser changes nothing");
}

#[test]
fn of_many_answers_at_once_exactly_one_wins() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    for round in 0..10 {
        let path = format!("{round}.txt");
        let (call, question) = asked(&api, &mut events, &format!("c{round}"), &path);
        let voters: Vec<_> = ["allow", "deny", "allow", "deny"]
            .map(|decision| {
                let (operator, question) = (api.operator.clone(), question.clone());
                std::thread::spawn(move || (decision, operator.decide(&question, decision)))
            })
            .into();
        let answers: Vec<_> = voters.into_iter().map(|voter| voter.join().unwrap()).collect();
        let won: Vec<&str> = answers
            .iter()
            .filter(|(_, it)| it.status == 200)
            .map(|(decision, _)| *decision)
            .collect();
        let [won] = won[..] else { panic!("{answers:?}") };
        for (_, lost) in answers.iter().filter(|(_, it)| it.status != 200) {
            assert_eq!(
                (lost.status, &lost.message()["resolution"]["decision"]),
                (409, &json!(won))
            );
        }
        assert_eq!(call.join().unwrap()["success"], won == "allow");
        assert_eq!(world.read(&path).is_some(), won == "allow", "the effect is what won");
    }
}

#[test]
fn answer_after_the_time_is_told_so() {
    let world = World::new();
    let own = world.home().join(".config/palisade");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("palisade.toml"), "[confirm]\ntimeout = \"1s\"\n").unwrap();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    let (call, question) = asked(&api, &mut events, "c1", "a.txt");
    assert_eq!(call.join().unwrap()["error"]["class"], "confirmation_timeout");
    let late = api.operator.decide(&question, "allow");
    let problem = late.message();
    assert_eq!((late.status, &problem["code"]), (410, &json!("confirmation_expired")), "{late:?}");
    assert_eq!(problem["resolution"]["decision"], "timeout", "{problem}");
    assert_eq!(world.read("a.txt"), None);
}

#[test]
fn answer_for_another_session_or_turn_or_question_is_not_found() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    let (call, question) = asked(&api, &mut events, "c1", "a.txt");
    for (key, other) in [("session_id", "s2"), ("turn_id", "t2"), ("request_id", "cr_none")] {
        let mut elsewhere = question.clone();
        elsewhere[key] = json!(other);
        let answer = api.operator.decide(&elsewhere, "allow");
        assert_eq!(answer.status, 404, "{key}: {answer:?}");
    }
    for body in ["{}", r#"{"decision": "yes"}"#, r#"{"decision": "allow", "more": 1}"#] {
        let id = question["request_id"].as_str().unwrap();
        let path = format!("/sessions/s1/turns/t1/confirmations/{id}");
        assert_eq!(api.operator.send("POST", &path, body).status, 422, "{body}");
    }
    assert_eq!(world.read("a.txt"), None);
    assert_eq!(api.operator.decide(&question, "deny").status, 200);
    let _ = call.join().unwrap();
}

#[test]
fn question_is_listed_with_the_difference_it_would_make_and_then_no_more() {
    let world = World::new();
    world.file("a.txt", "before\n");
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events");
    let (call, question) = asked(&api, &mut events, "c1", "a.txt");
    let id = question["request_id"].as_str().unwrap();
    let listed = api.operator.get("/confirmations").message();
    assert_eq!(listed["items"][0]["request_id"], id, "{listed}");
    let page = api.operator.get(&format!("/confirmations/{id}")).message();
    let diff = page["files"][0]["diff"].as_str().unwrap();
    assert!(diff.contains("-before\n") && diff.contains("+written\n"), "{diff}");
    assert_eq!(page["files"][0]["change"], "modify", "{page}");
    assert_eq!(api.operator.decide(&question, "allow").status, 200);
    let _ = call.join().unwrap();
    assert_eq!(api.operator.get("/confirmations").message()["items"], json!([]));
    until("the journal has the answer", || {
        let past = api.operator.get(&format!("/confirmations/{id}")).message();
        past["resolution"]["decision"] == "allow" && past["files"].is_null()
    });
}
