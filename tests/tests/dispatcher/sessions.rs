//! Sessions: the tools they list, their concurrency limits, and cancellation of all their calls.

use std::sync::Arc;
use std::time::Duration;

use palisade::formats::{Format, Strictness};
use palisade::{Advertised, Call, CallId, json};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::guest::DISPATCHER_GATE;
use palisade_tests::stage::class;

use super::{on_driven_clock, stage, waiting};

#[test]
fn session_shows_its_tools_and_others_still_answer() {
    let stage = stage();
    let names = |session| -> Vec<String> {
        stage
            .host
            .definitions(session)
            .iter()
            .map(|definition| definition.name().to_string())
            .collect()
    };
    let only =
        stage.host.new_session("a").advertise(Advertised::Only(vec!["calculate".into()])).build();
    let except =
        stage.host.new_session("b").advertise(Advertised::Except(vec!["read_file".into()])).build();
    assert_eq!(names(&only), ["calculate"]);
    assert_eq!(names(&except).len(), stage.host.registry().len() - 1);
    assert!(!names(&except).contains(&"read_file".to_owned()));
    let exported = stage.host.export(&only, Format::Anthropic, Strictness::AsIs);
    assert_eq!(exported.definitions.as_array().map(Vec::len), Some(1));
    stage.world.file("f", "still here");
    let old = block_on(stage.host.dispatch(&only, Call::new("read_file", json!({"path": "f"}))));
    assert_eq!(old.output().as_deref(), Some("still here"), "a tool of an old transcript");
}

#[test]
fn tool_cap_delays_no_other_tool() {
    let stage = Stage::new(&[DISPATCHER_GATE], |builder| builder.tool_concurrency("wait_for", 1));
    let session = stage.session();
    block_on(async {
        let calls: Vec<_> =
            ["a", "b", "c"].iter().map(|id| stage.begin(&session, waiting(id))).collect();
        stage.started(1).await;
        let other = stage
            .host
            .dispatch(&session, Call::new("calculate", json!({"expression": "6 * 7"})))
            .await;
        assert_eq!(other.output().as_deref(), Some("42"));
        assert_eq!((stage.which_started().len(), session.in_flight()), (1, 3));
        stage.world.file("open", "go");
        for call in calls {
            assert!(call.await.unwrap().is_success());
        }
    });
}

#[test]
fn sessions_have_separate_caps() {
    let stage = stage();
    let (one, other) = (stage.session(), stage.session());
    block_on(async {
        let calls: Vec<_> = (0..8)
            .map(|n| stage.begin(if n < 4 { &one } else { &other }, waiting(&n.to_string())))
            .collect();
        stage.started(8).await;
        stage.world.file("open", "go");
        for call in calls {
            assert!(call.await.unwrap().is_success());
        }
    });
}

#[test]
fn queue_timeout_after_a_minute_uses_no_call_time() {
    let stage = stage();
    let session = stage.host.new_session("s").concurrency(1).build();
    on_driven_clock(async {
        let holds =
            Call::new("wait_for", json!({"path": "open"})).with_timeout(Duration::from_secs(600));
        let _holds = stage.begin(&session, holds);
        stage.started(1).await;
        let begun = tokio::time::Instant::now();
        let result = stage.host.dispatch(&session, waiting("late")).await;
        assert_eq!(
            (class(&result), begun.elapsed()),
            ("resource_exhausted", Duration::from_secs(60))
        );
        let error = &result.to_json()["error"];
        assert_eq!(
            (&error["detail"]["limit"], &error["detail"]["value"]),
            (&json!("queue"), &json!(60_000))
        );
        assert_eq!(result.duration(), Duration::ZERO);
        session.close();
    });
    assert_eq!(stage.recorder.names_of("late"), ["tool.failed"]);
}

#[test]
fn calls_outside_a_session_share_a_cap_per_message() {
    let stage = stage();
    block_on(async {
        let session = stage.host.session().clone();
        let singles: Vec<_> =
            (0..6).map(|n| stage.begin(&session, waiting(&n.to_string()))).collect();
        stage.started(6).await;
        let (host, own) = (stage.host.clone(), session.clone());
        let calls = (6..12).map(|n| waiting(&n.to_string())).collect();
        let message = tokio::spawn(async move { host.dispatch_all(&own, calls).await });
        stage.started(10).await;
        assert_eq!(stage.which_started().len(), 10);
        stage.world.file("open", "go");
        assert!(message.await.unwrap().iter().all(palisade::ToolResult::is_success));
        for single in singles {
            assert!(single.await.unwrap().is_success());
        }
    });
}

#[test]
fn tool_cap_applies_to_a_message_outside_a_session() {
    let stage = Stage::new(&[DISPATCHER_GATE], |builder| {
        builder.tool_concurrency("wait_for", 1).concurrency(2)
    });
    let session = stage.host.session().clone();
    block_on(async {
        let (host, own) = (stage.host.clone(), session.clone());
        let mut calls: Vec<_> = ["a", "b"].iter().map(|id| waiting(id)).collect();
        calls.push(Call::new("calculate", json!({"expression": "1"})).with_id("c"));
        let message = tokio::spawn(async move { host.dispatch_all(&own, calls).await });
        stage.started(1).await;
        stage
            .recorder
            .until(|events| events.iter().any(palisade::events::Event::is_terminal))
            .await;
        assert_eq!(
            (stage.which_started().len(), session.in_flight()),
            (1, 2),
            "the calculation is done, one call waits"
        );
        stage.world.file("open", "go");
        assert!(message.await.unwrap().iter().all(palisade::ToolResult::is_success));
    });
}

#[test]
fn cancelled_turn_ends_its_calls_and_the_next_works() {
    let stage = stage();
    let (session, other) = (stage.session(), stage.session());
    block_on(async {
        let calls: Vec<_> =
            (0..6).map(|n| stage.begin(&session, waiting(&format!("c{n}")))).collect();
        let neighbour = stage.begin(&other, waiting("n"));
        stage.started(5).await;
        assert_eq!(session.cancel_all(), 6);
        for call in calls {
            assert_eq!(class(&call.await.unwrap()), "cancelled");
        }
        assert!(!neighbour.is_finished(), "another session's calls go on");
        stage.world.file("open", "go");
        assert!(neighbour.await.unwrap().is_success());
        assert!(stage.host.dispatch(&session, waiting("next")).await.is_success());
    });
    (0..6).for_each(|n| stage.ended_once(&format!("c{n}")));
}

#[test]
fn calls_of_a_session_are_cancelled_by_the_sessions_id() {
    let stage = stage();
    let session = |id: &str| stage.host.new_session(id).build();
    // Callers choose the ids, so two sessions may share one.
    let (one, same, other) = (session("turn-1"), session("turn-1"), session("turn-2"));
    block_on(async {
        let ended = [stage.begin(&one, waiting("a")), stage.begin(&same, waiting("b"))];
        let goes_on = stage.begin(&other, waiting("c"));
        stage.started(3).await;
        assert_eq!(stage.host.cancel_session("no such session"), 0);
        assert_eq!(stage.host.cancel_session("turn-1"), 2);
        for call in ended {
            assert_eq!(class(&call.await.unwrap()), "cancelled");
        }
        assert_eq!(stage.host.cancel_session("turn-1"), 0, "nothing is in flight any more");
        stage.world.file("open", "go");
        assert!(goes_on.await.unwrap().is_success());
        assert!(stage.host.dispatch(&one, waiting("next")).await.is_success(), "it is not closed");
    });
    ["a", "b"].iter().for_each(|id| stage.ended_once(id));
}

#[test]
fn sessions_are_found_by_their_id_while_somebody_holds_them() {
    let stage = stage();
    let found = |id: &str| stage.host.sessions(id).len();
    let (one, other) = (stage.host.new_session("s").build(), stage.host.new_session("s").build());
    assert_eq!((found("s"), found("t")), (2, 0));
    let again = stage.host.sessions("s").remove(0);
    assert!(Arc::ptr_eq(again.id().unwrap(), one.id().unwrap()), "in the order of their creation");
    drop((one, other));
    assert_eq!(found("s"), 1, "a clone holds the first one");
    drop(again);
    assert_eq!(found("s"), 0);
    let long = "x".repeat(1_000);
    let _kept = stage.host.new_session(&long).build();
    assert_eq!(found(&long), 1, "a long id is cut in the same way");
}

#[test]
fn single_call_is_cancelled_by_its_id() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let (one, other) =
            (stage.begin(&session, waiting("one")), stage.begin(&session, waiting("other")));
        stage.started(2).await;
        assert!(!session.cancel(&CallId::new("nobody")));
        assert!(session.cancel(&CallId::new("one")));
        assert_eq!(class(&one.await.unwrap()), "cancelled");
        assert!(!session.cancel(&CallId::new("one")), "it has ended");
        stage.world.file("open", "go");
        assert!(other.await.unwrap().is_success());
    });
    stage.ended_once("one");
}

#[test]
fn call_has_its_given_timeout() {
    let stage = stage();
    let time = Duration::from_secs(7);
    let result =
        on_driven_clock(stage.host.dispatch(&stage.session(), waiting("c").with_timeout(time)));
    assert_eq!(class(&result), "timeout");
    assert_eq!(result.to_json()["error"]["detail"]["value_ms"], 7000);
    assert_eq!(
        result.content().first().map(|block| block.as_text().into_owned()).as_deref(),
        Some("started")
    );
}

#[test]
fn caller_timeout_overrides_the_operators() {
    let stage = Stage::new(&[DISPATCHER_GATE], |builder| {
        builder.tool_timeout("wait_for", Duration::from_secs(2))
    });
    let tool = stage.host.registry().get("wait_for").unwrap();
    assert_eq!(stage.host.time_limit(&tool, None), Duration::from_secs(2));
    assert_eq!(stage.host.time_limit(&tool, Some(Duration::from_secs(9))), Duration::from_secs(9));
    let result = on_driven_clock(stage.host.dispatch(&stage.session(), waiting("c")));
    assert_eq!(result.to_json()["error"]["detail"]["value_ms"], 2000);
}

#[test]
fn dropped_message_ends_all_its_calls() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let calls = ["a", "b", "c", "d", "e"].iter().map(|id| waiting(id)).collect();
        tokio::select! {
            _ = stage.host.dispatch_all(&session, calls) => panic!("the gate stays closed"),
            () = stage.started(4) => {}
        }
        stage
            .recorder
            .until(|events| events.iter().filter(|event| event.is_terminal()).count() >= 4)
            .await;
        assert_eq!(session.in_flight(), 0);
    });
    ["a", "b", "c", "d"].iter().for_each(|id| stage.ended_once(id));
}
