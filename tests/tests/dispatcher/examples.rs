//! The worked examples 9.1 to 9.5 of the dispatcher's specification, on the shipped tools and the
//! real shell.

use std::time::Duration;

use palisade::{Call, SideEffects, confirm::Answer, events::Event, json, policy::Policy};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::native::shell;
use palisade_tests::stage::class;
use tokio::time::Instant;

use super::stage;

#[test]
fn example_9_1_happy_path() {
    let stage = stage();
    stage.world.file("README.md", "# Project Foo\n");
    let call = Call::new("read_file", json!({"path": "README.md"})).with_id("tu_01HZ_a");
    let result = block_on(stage.host.dispatch(&stage.session(), call));
    let text = json!({"type": "text", "text": "# Project Foo\n"});
    assert_eq!(
        result.to_block(),
        json!({"tool_use_id": "tu_01HZ_a", "content": [text], "is_error": false})
    );
    let events = stage.recorder.events_of("tu_01HZ_a");
    assert_eq!(stage.recorder.names_of("tu_01HZ_a"), ["tool.called", "tool.completed"]);
    let subject = events[0].subject().unwrap();
    assert_eq!((&*subject.tool, subject.side_effects), ("read_file", Some(SideEffects::Read)));
}

#[test]
fn example_9_2_workspace_escape_rejection() {
    let stage = stage();
    let call = Call::new("read_file", json!({"path": "../../etc/passwd"})).with_id("tu_01HZ_b");
    let result = block_on(stage.host.dispatch(&stage.session(), call));
    assert_eq!(class(&result), "permission_denied");
    assert!(
        result.to_string().contains("`../../etc/passwd` escapes the workspace boundary"),
        "{result}"
    );
    assert_eq!(result.to_block()["is_error"], true);
    let [Event::Failed(_, failure)] = &stage.recorder.events_of("tu_01HZ_b")[..] else {
        panic!("one event, a failure")
    };
    assert_eq!(failure.class.as_str(), "permission_denied");
}

#[test]
fn example_9_3_user_denied_write() {
    let stage = stage();
    let mut stream = stage.host.events();
    let call = Call::new("write_file", json!({"path": "src/auth.ts", "content": "..."}))
        .with_id("tu_01HZ_c");
    let result = block_on(async {
        let waiting = stage.begin(&stage.session(), call);
        let question = stage.confirmations.next().await;
        assert_eq!(question.projected_modifications, ["src/auth.ts"]);
        stage.confirmations.answer(&question.id, Answer::Deny).unwrap();
        waiting.await.unwrap()
    });
    let text = json!({"type": "text", "text": "the user denied this operation"});
    assert_eq!(
        result.to_block(),
        json!({"tool_use_id": "tu_01HZ_c", "content": [text], "is_error": true})
    );
    let names = ["tool.confirmation_requested", "tool.confirmation_resolved", "tool.failed"];
    assert_eq!(stage.recorder.names_of("tu_01HZ_c"), names);
    let lines = super::lines(&mut stream);
    let [asked, resolved, failed] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!(
        (&asked["tool_name"], &asked["projected_modifications"]),
        (&json!("write_file"), &json!(["src/auth.ts"]))
    );
    assert!(asked["input_summary"].as_str().unwrap().contains("src/auth.ts"), "{asked}");
    assert_eq!(
        (&resolved["request_id"], &resolved["decision"]),
        (&asked["request_id"], &json!("deny"))
    );
    assert_eq!(failed["error_class"], "user_denied", "{failed}");
    assert!(lines.iter().all(|line| line["tool_use_id"] == "tu_01HZ_c"), "{lines:#?}");
    assert!(stage.world.inside().is_empty());
}

#[test]
fn example_9_4_cancellation_mid_shell() {
    let stage = Stage::new(&[], |builder| {
        builder.policy(Policy::default().allowing(SideEffects::Execute)).tool(shell())
    });
    let session = stage.session();
    // A long-running command that ignores SIGTERM.
    let command = "trap '' TERM; echo installing; while :; do sleep 1000; done";
    let result = block_on(async {
        let call = stage
            .begin(&session, Call::new("shell", json!({"command": command})).with_id("tu_01HZ_d"));
        stage
            .recorder
            .until(|events| events.iter().any(|event| event.name() == "tool.output_delta"))
            .await;
        // From here on only timers are pending: the clock advances to the SIGKILL.
        tokio::time::pause();
        let begun = Instant::now();
        assert_eq!(session.cancel_all(), 1);
        let result = call.await.unwrap();
        let took = begun.elapsed();
        assert!(
            (Duration::from_secs(5)..Duration::from_secs(30)).contains(&took),
            "SIGKILL comes 5 s after SIGTERM: {took:?}"
        );
        result
    });
    assert_eq!((class(&result), result.command_executed()), ("cancelled", Some(command)));
    assert_eq!(result.to_block()["is_error"], true);
    assert!(result.content()[0].as_text().contains("installing"), "{:?}", result.content());
    let last = stage.recorder.events_of("tu_01HZ_d").pop();
    let Some(Event::Failed(_, failure)) = last else { panic!("{last:?}") };
    assert!(failure.partial_output.is_some_and(|text| text.contains("installing")));
    stage.ended_once("tu_01HZ_d");
}

#[test]
fn example_9_5_concurrent_dispatch() {
    let stage = stage();
    let names = ["e", "f", "g"];
    let files = ["a.txt", "b.txt", "c.txt"];
    for file in files {
        stage.world.file(file, format!("text of {file}"));
    }
    let call = |(id, file): (&&str, &&str)| {
        Call::new("read_file", json!({"path": file})).with_id(&format!("tu_01HZ_{id}"))
    };
    let calls = names.iter().zip(&files).map(call).collect();
    let results = block_on(stage.host.dispatch_all(&stage.session(), calls));
    assert_eq!(results.len(), names.len());
    for ((result, id), file) in results.iter().zip(names).zip(files) {
        assert_eq!(result.call_id().as_str(), format!("tu_01HZ_{id}"));
        assert_eq!(result.output().as_deref(), Some(&*format!("text of {file}")));
        assert_eq!(
            stage.recorder.names_of(result.call_id().as_str()),
            ["tool.called", "tool.completed"]
        );
    }
}
