//! The tests that section 10.1 of the dispatcher's specification requires, by their names, through
//! the library and with real plugins. Their counterparts for the program are in
//! `program/required.rs`.

use std::time::Duration;

use palisade::{
    Call, CallId, Definition, SideEffects,
    confirm::Answer,
    events::Event,
    json,
    policy::{Mode, Policy},
};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::guest::{CANCEL_POLL, CONTAINMENT_RAW, DISPATCHER_GATE};
use palisade_tests::native::{Native, echo, shell};
use palisade_tests::stage::class;
use palisade_tests::world::SECRET;

use super::{on_driven_clock, stage, tool_of, waiting, writing};

#[test]
fn tool_registration_validation() {
    for (schema, place) in [
        (json!({"type": "string"}), "object"),
        (json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/s"}}}), "$ref"),
        (json!({"type": "object", "$dynamicRef": "#a"}), "$dynamicRef"),
        (json!({"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}), "pattern"),
    ] {
        let refused =
            Definition::new("t", "A tool.", SideEffects::None, schema).unwrap_err().to_string();
        assert!(refused.contains(place), "{refused}");
    }
}

#[test]
fn duplicate_name_rejection() {
    let stage = stage();
    let registry = stage.host.registry();
    registry.register(echo("mine")).unwrap();
    for taken in ["mine", "read_file"] {
        let refused = registry.register(echo(taken)).map(drop).unwrap_err();
        assert_eq!(refused.name(), taken);
        assert!(
            refused.to_string().contains("already exists") && !registry.has(refused.suggestion()),
            "{refused}"
        );
    }
}

#[test]
fn input_validation() {
    let stage = stage();
    for side_effects in SideEffects::ALL {
        for (number, input) in
            [json!({"number": "one"}), json!({}), json!([])].into_iter().enumerate()
        {
            let id = format!("{side_effects}-{number}");
            let call = Call::new(tool_of(side_effects), input).with_id(&id);
            let result = block_on(stage.host.dispatch(&stage.session(), call));
            assert_eq!(class(&result), "validation_error");
            assert!(!result.error().unwrap().errors().is_empty());
            assert_eq!(result.to_block()["is_error"], true);
            assert_eq!(stage.recorder.names_of(&id), ["tool.input_invalid"]);
        }
    }
}

#[test]
fn workspace_boundary_enforcement() {
    let stage =
        Stage::new(&[], |builder| builder.policy(Policy::default().allowing(SideEffects::Write)));
    stage.world.link("out", "@/secret.txt").link("folder", "@/outside");
    let absolute = stage.world.outer().join("secret.txt").to_string_lossy().into_owned();
    let before = stage.world.outside();
    for path in [
        "../secret.txt",
        "a/../../secret.txt",
        &absolute,
        "out",
        "folder/secret.txt",
        "/etc/passwd",
    ] {
        for (tool, input) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            ("patch_file", json!({"path": path, "old": "a", "new": "b"})),
            ("list_dir", json!({"path": path})),
        ] {
            let result = block_on(
                stage.host.dispatch(&stage.session(), Call::new(tool, input).with_id("c")),
            );
            assert_eq!(class(&result), "permission_denied", "{tool} {path}: {result}");
        }
    }
    assert_eq!(stage.world.outside(), before);
    assert_eq!(stage.recorder.names_of("c"), ["tool.failed"; 6 * 4]);
}

#[test]
fn confirmation_prompt_and_user_allow() {
    let stage = stage();
    let result = block_on(async {
        let call = stage.begin(&stage.session(), writing("w"));
        let question = stage.confirmations.next().await;
        assert_eq!(
            (question.tool.as_str(), question.side_effects),
            ("write_file", SideEffects::Write)
        );
        assert_eq!(question.projected_modifications, ["made.txt"]);
        assert_eq!(stage.world.read("made.txt"), None, "nothing is done before the answer");
        assert_eq!(stage.recorder.names_of("w"), ["tool.confirmation_requested"]);
        stage.confirmations.answer(&question.id, Answer::Allow).unwrap();
        call.await.unwrap()
    });
    assert!(result.is_success(), "{result}");
    assert_eq!(stage.world.read("made.txt").as_deref(), Some("made"));
    let names = [
        "tool.confirmation_requested",
        "tool.confirmation_resolved",
        "tool.called",
        "tool.completed",
    ];
    assert_eq!(stage.recorder.names_of("w"), names);
}

#[test]
fn confirmation_prompt_and_user_deny() {
    let stage = stage();
    let result = block_on(async {
        let call = stage.begin(&stage.session(), writing("w"));
        let question = stage.confirmations.next().await;
        stage.confirmations.answer(&question.id, Answer::Deny).unwrap();
        call.await.unwrap()
    });
    assert_eq!(class(&result), "user_denied");
    assert_eq!(stage.world.read("made.txt"), None);
    let names = ["tool.confirmation_requested", "tool.confirmation_resolved", "tool.failed"];
    assert_eq!(stage.recorder.names_of("w"), names);
}

#[test]
fn confirmation_timeout() {
    let stage = Stage::new(&[], |builder| builder.confirmation_timeout(Duration::from_secs(1)));
    let result = on_driven_clock(async {
        let begun = tokio::time::Instant::now();
        let result = stage.host.dispatch(&stage.session(), writing("w")).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
        result
    });
    assert_eq!(class(&result), "confirmation_timeout");
    assert_eq!(result.duration(), Duration::ZERO, "the call's own clock has not run");
    assert_eq!(stage.world.read("made.txt"), None);
    stage.ended_once("w");
}

#[test]
fn concurrent_tool_calls() {
    let stage = stage();
    let session = stage.session();
    let ids = ["a", "b", "c", "d", "e", "f"];
    block_on(async {
        let calls = ids.iter().map(|id| waiting(id)).collect();
        let (host, own) = (stage.host.clone(), session.clone());
        let all = tokio::spawn(async move { host.dispatch_all(&own, calls).await });
        stage.started(4).await;
        let called =
            || stage.recorder.names().iter().filter(|name| **name == "tool.called").count();
        assert_eq!((called(), session.in_flight()), (4, 6), "four run, two wait");
        stage.world.file("open", "go");
        let results = all.await.unwrap();
        let order: Vec<_> = results.iter().map(|result| result.call_id().as_str()).collect();
        assert_eq!(order, ids, "in the requested order");
        assert!(results.iter().all(|result| result.output().as_deref() == Some("go")));
        assert_eq!((called(), session.in_flight()), (6, 0));
    });
    ids.iter().for_each(|id| stage.ended_once(id));
}

#[test]
fn cancellation_honors_cancel_event() {
    let stage = Stage::new(&[CANCEL_POLL], |builder| builder);
    let session = stage.session();
    let result = block_on(async {
        let call = stage.begin(&session, Call::new("pretend", "{}").with_id("c"));
        stage.started(1).await;
        assert!(session.cancel(&CallId::new("c")));
        call.await.unwrap()
    });
    assert_eq!(class(&result), "cancelled");
    assert!(
        matches!(stage.recorder.events_of("c").last(), Some(Event::Failed(_, failure)) if failure.class.as_str() == "cancelled")
    );
    stage.ended_once("c");
}

#[test]
fn shell_cancellation_via_sigterm_sigkill() {
    let stage = Stage::new(&[], |builder| {
        builder.policy(Policy::default().allowing(SideEffects::Execute)).tool(shell())
    });
    let session = stage.session();
    // The polite command exits on SIGTERM; the deaf one ignores it and is killed 5 s later.
    let polite = "trap 'echo told to go; exit 9' TERM; echo begun; while :; do sleep 0.01; done";
    let deaf = "trap '' TERM; echo begun; while :; do sleep 0.01; done";
    for (id, command, signal, at_least, said) in [
        ("polite", polite, None, Duration::ZERO, "told to go"),
        ("deaf", deaf, Some(9), Duration::from_secs(5), "begun"),
    ] {
        let (result, took) = block_on(async {
            let call =
                stage.begin(&session, Call::new("shell", json!({"command": command})).with_id(id));
            let begun = |event: &Event| matches!(event, Event::OutputDelta(subject, _) if subject.call_id.as_str() == id);
            stage.recorder.until(|events| events.iter().any(begun)).await;
            let begun = std::time::Instant::now();
            assert!(session.cancel(&CallId::new(id)));
            (call.await.unwrap(), begun.elapsed())
        });
        assert_eq!(class(&result), "cancelled", "{id}");
        assert!(took >= at_least && took < at_least + Duration::from_secs(4), "{id}: {took:?}");
        assert_eq!(result.metadata()["signal"], json!(signal), "{id}: {:?}", result.metadata());
        assert!(result.content()[0].as_text().contains(said), "{id}: {:?}", result.content());
        stage.ended_once(id);
    }
}

#[test]
fn tool_exception_wrapping() {
    let stage = stage();
    stage
        .host
        .registry()
        .register(Native::new("panics", |_, _| panic!("the developer's secret")).factory())
        .unwrap();
    let error = || Err(std::io::Error::other("the developer's secret").into());
    stage.host.registry().register(Native::new("errs", move |_, _| error()).factory()).unwrap();
    for tool in ["panics", "errs"] {
        let (result, log) =
            super::logs::logged(|| block_on(stage.host.call(tool, "{}", json!({}))));
        let error = result.error().unwrap();
        assert_eq!(
            (error.class().as_str(), error.is_user_visible()),
            ("execution_error", false),
            "{tool}"
        );
        assert!(!result.to_json().to_string().contains("secret"), "{tool}: {result}");
        let told = log
            .lines()
            .any(|line| line.contains("ERROR") && line.contains("the developer's secret"));
        assert!(told, "{tool}: {log}");
    }
}

/// Stricter than the specification: a tool that bypasses the file API is stopped, not only logged.
#[test]
fn workspace_scoped_file_api_enforcement() {
    let stage = Stage::new(&[CONTAINMENT_RAW], |builder| {
        builder.policy(Policy::default().allowing(SideEffects::Execute)).tool(shell())
    });
    let before = stage.world.outside();
    let attempts: Vec<_> = ["../secret.txt", "/etc/passwd", "a/../../secret.txt"]
        .iter()
        .map(|path| json!({"op": "open", "path": path, "to": "", "follow": true}))
        .collect();
    let guest = block_on(stage.host.call("raw_read", json!({"attempts": attempts}), json!({})));
    let answers = guest.output().unwrap().into_owned();
    assert!(!answers.contains(SECRET) && !answers.contains("root:"), "{answers}");
    let secret = stage.world.outer().join("secret.txt");
    for command in [
        format!("cat '{}'", secret.display()),
        "cat ../secret.txt".into(),
        "echo x > ../new.txt".into(),
    ] {
        let shell = block_on(stage.host.call("shell", json!({"command": command}), json!({})));
        assert!(shell.is_failure(), "{command}: {shell}");
        assert!(!shell.to_json().to_string().contains(SECRET), "{shell}");
    }
    assert_eq!(stage.world.outside(), before);
}

#[test]
fn trusted_workspace_lowers_the_bar() {
    let policy = Policy::default().trusting([(SideEffects::Execute, Mode::Prompt)]);
    let stage = Stage::new(&[DISPATCHER_GATE], |builder| builder.policy(policy));
    block_on(async {
        let written = stage.host.dispatch(&stage.session(), writing("w")).await;
        assert!(written.is_success(), "{written}");
        assert_eq!(stage.recorder.names_of("w"), ["tool.called", "tool.completed"]);
        let call = stage.begin(
            &stage.session(),
            Call::new(tool_of(SideEffects::Execute), json!({"number": 1})).with_id("x"),
        );
        let question = stage.confirmations.next().await;
        assert_eq!(question.side_effects, SideEffects::Execute);
        stage.confirmations.answer(&question.id, Answer::Allow).unwrap();
        assert!(call.await.unwrap().is_success());
    });
}

#[test]
fn side_effect_classification_matches_event_payload() {
    let all = SideEffects::ALL.into_iter().fold(Policy::default(), Policy::allowing);
    let stage = Stage::new(&[DISPATCHER_GATE], |builder| builder.policy(all).tool(shell()));
    stage.world.file("f.txt", "text");
    for tool in stage.host.registry().tools() {
        let (definition, name) = (tool.definition(), tool.definition().name().as_str());
        let input = match name {
            "wait_for" | "read_file" => json!({"path": "f.txt"}),
            "list_dir" => json!({}),
            "write_file" => json!({"path": "g.txt", "content": ""}),
            "patch_file" => json!({"path": "f.txt", "old": "text", "new": "text"}),
            "delete_file" => json!({"path": "g.txt"}),
            "find_files" | "search_files" => json!({"pattern": "x"}),
            "calculate" => json!({"expression": "1"}),
            "shell" => json!({"command": "true"}),
            _ => json!({"number": 1}),
        };
        let _ =
            block_on(stage.host.dispatch(&stage.session(), Call::new(name, input).with_id(name)));
        let events = stage.recorder.events_of(name);
        assert!(
            events.iter().any(|event| event.name() == "tool.called"),
            "{name}: {:?}",
            stage.recorder.names_of(name)
        );
        for event in &events {
            assert_eq!(
                event.subject().unwrap().side_effects,
                Some(definition.side_effects()),
                "{name}: {}",
                event.name()
            );
        }
    }
}
