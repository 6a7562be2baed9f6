//! The tests that section 10.1 of the dispatcher's specification requires, by their names, through
//! the library and with real plugins. Their counterparts for the program are in
//! `program/required.rs`.

use std::time::Duration;

use palisade::{
    Call, CallId, Definition, SideEffects, ToolOutput,
    confirm::Answer,
    events::Event,
    json,
    policy::{Mode, Policy},
};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::guest::{CANCEL_POLL, CONTAINMENT_RAW, CONTRACT_END, DISPATCHER_GATE};
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
        let refused = refused.duplicate().unwrap();
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

/// The traceback of a native error is the chain of its causes, that of a guest its stack.
#[test]
fn tool_exception_wrapping() {
    let stage = Stage::new(&[CONTRACT_END], |builder| builder);
    let registry = stage.host.registry();
    registry.register(Native::new("panics", |_, _| panic!("the secret is 1")).factory()).unwrap();
    let error = || {
        let cause = std::io::Error::other("the secret is 2");
        Err(std::io::Error::other(Wrapped("the secret is not here", cause)).into())
    };
    registry.register(Native::new("errs", move |_, _| error()).factory()).unwrap();
    for (tool, input, logged) in [
        ("panics", json!({}), &["the call panicked", "the secret is 1"][..]),
        ("errs", json!({}), &["the secret is not here", "the secret is 2"]),
        ("end", json!({"how": "panic"}), &["these are my last words", "wasm backtrace"]),
    ] {
        let call = Call::new(tool, input).with_id(tool);
        let (result, log) =
            super::logs::logged(|| block_on(stage.host.dispatch(&stage.session(), call)));
        let error = result.error().unwrap();
        assert_eq!(
            (error.class().as_str(), error.is_user_visible()),
            ("execution_error", false),
            "{tool}"
        );
        let events = stage.recorder.events_of(tool);
        assert!(matches!(events.last(), Some(Event::Failed(..))), "{tool}: {events:?}");
        let shown = [result.to_json(), result.to_block()].map(|json| json.to_string());
        for text in [&shown[..], &[result.to_string(), format!("{events:?}")]].concat() {
            assert!(!text.contains("secret") && !text.contains("last words"), "{tool}: {text}");
        }
        let id = format!("id={tool}");
        let told = log
            .lines()
            .find(|line| line.contains("ERROR") && line.contains(&id))
            .unwrap_or_else(|| panic!("{tool}: no line in {log}"));
        assert!(logged.iter().all(|part| told.contains(part)), "{tool}: {told}");
    }
}

/// An error with a cause.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Wrapped(&'static str, #[source] std::io::Error);

/// Stricter than the specification: a guest that bypasses the file API and opens paths itself is
/// refused, and each refusal is logged for debugging. Only the embedder's own native code is
/// trusted.
#[test]
fn workspace_scoped_file_api_enforcement() {
    let stage = Stage::new(&[CONTAINMENT_RAW], |builder| {
        builder.policy(Policy::default().allowing(SideEffects::Execute)).tool(shell())
    });
    stage.world.file("inside.txt", "of the workspace").file("sub/inner.txt", "deep inside");
    let before = stage.world.outside();
    let outside = ["../secret.txt", "/etc/passwd", "sub/../../secret.txt"];
    let open = |path: &str| json!({"op": "open", "path": path, "to": "", "follow": true});
    let attempts: Vec<_> = outside.iter().chain(&["inside.txt"]).map(|path| open(path)).collect();
    let call = Call::new("raw_read", json!({"attempts": attempts})).with_id("direct");
    let (guest, log) =
        super::logs::logged(|| block_on(stage.host.dispatch(&stage.session(), call)));
    let answers: Vec<String> = serde_json::from_str(&guest.output().unwrap()).unwrap();
    let [refused @ .., opened] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(opened, "of the workspace", "the guest opens files itself");
    assert_eq!(refused.len(), outside.len());
    assert!(refused.iter().all(|answer| answer.starts_with("refused: ")), "{answers:?}");
    let logged =
        |line: &&str| line.contains("id=direct") && line.contains("file operation refused");
    assert_eq!(log.lines().filter(logged).count(), outside.len(), "{log}");
    let secret = stage.world.outer().join("secret.txt");
    for (command, allowed) in [
        (format!("cat '{}'", secret.display()), false),
        ("cat ../secret.txt".into(), false),
        ("echo x > ../new.txt".into(), false),
        ("cat inside.txt".into(), true),
    ] {
        let shell = block_on(stage.host.call("shell", json!({"command": command}), json!({})));
        assert_eq!(shell.is_success(), allowed, "{command}: {shell}");
        assert!(!shell.to_json().to_string().contains(SECRET), "{shell}");
    }
    assert_eq!(stage.world.outside(), before);
}

#[test]
fn code_of_the_embedder_may_open_any_file_and_its_file_api_none_outside() {
    let stage = stage();
    let definition =
        Definition::new("opens", "Opens.", SideEffects::Read, json!({"type": "object"}));
    let tool = Native::new("opens", |_, context| {
        let secret = context.workspace().root().join("../secret.txt");
        let text = std::fs::read_to_string(&secret)?;
        let by_api = context.files().read("../secret.txt").unwrap_err();
        Ok(ToolOutput::text(format!("{text}; {by_api}")))
    });
    stage.host.registry().register(tool.defined(definition.unwrap()).factory()).unwrap();
    let result = block_on(stage.host.call("opens", "{}", json!({})));
    let said = result.output().unwrap();
    assert!(said.starts_with(SECRET) && said.contains("escapes the workspace boundary"), "{said}");
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

/// The declared classes of the built-in tools: what each can do at most.
const BUILT_IN: [(&str, &str); 9] = [
    ("read_file", "read"),
    ("list_dir", "read"),
    ("find_files", "read"),
    ("search_files", "read"),
    ("calculate", "none"),
    ("write_file", "write"),
    ("patch_file", "write"),
    ("delete_file", "write"),
    ("shell", "execute"),
];

#[test]
fn side_effect_classification_matches_event_payload() {
    let all = SideEffects::ALL.into_iter().fold(Policy::default(), Policy::allowing);
    let stage = Stage::new(&[DISPATCHER_GATE], |builder| builder.policy(all).tool(shell()));
    stage.world.file("f.txt", "text");
    let of_gate = SideEffects::ALL.map(|class| (tool_of(class), class.as_str()));
    let of_gate = of_gate.iter().map(|(tool, class)| (tool.as_str(), *class));
    for (name, class) in BUILT_IN.into_iter().chain(of_gate) {
        let input = match name {
            "read_file" => json!({"path": "f.txt"}),
            "list_dir" => json!({}),
            "write_file" => json!({"path": "g.txt", "content": ""}),
            "patch_file" => json!({"path": "f.txt", "old": "text", "new": "new"}),
            "delete_file" => json!({"path": "g.txt"}),
            "find_files" | "search_files" => json!({"pattern": "x"}),
            "calculate" => json!({"expression": "1"}),
            "shell" => json!({"command": "true"}),
            _ => json!({"number": 1}),
        };
        let mut stream = stage.host.events();
        let call = Call::new(name, input).with_id(name);
        let result = block_on(stage.host.dispatch(&stage.session(), call));
        assert!(result.is_success(), "{name}: {result}");
        let lines = super::lines(&mut stream);
        let called = lines.iter().find(|line| line["event"] == "tool.called");
        assert!(called.is_some(), "{name}: {lines:#?}");
        assert!(lines.iter().all(|line| line["side_effects"] == class), "{name}: {lines:#?}");
        let declared = stage.host.registry().get(name).unwrap().definition().side_effects();
        assert_eq!(declared.as_str(), class, "{name}");
    }
    let known = stage.host.registry().len();
    assert_eq!(known, BUILT_IN.len() + SideEffects::ALL.len() + 1, "all but `wait_for`");
}
