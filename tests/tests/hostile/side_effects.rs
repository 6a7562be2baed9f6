//! Plugins that misstate their effects, and confirmation requests that try to hide something from
//! the person asked.

use palisade_tests::sample::{Group, leaves_out};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palisade::{
    CacheMode, Call, Host, SideEffects, ToolResult,
    confirm::{Answer, ConfirmFn},
    plugins::Shipped,
    policy::{Mode, Policy},
};
use palisade_tests::case::block_on;
use palisade_tests::guest::{DISPATCHER_GATE, HOSTILE_ABUSE, HOSTILE_PROBE, cache};
use palisade_tests::oracle::{self, Oracle, around_both};
use palisade_tests::stage::class;
use palisade_tests::wat::Told;
use palisade_tests::{Case, Stage, Wat, World};
use serde_json::{Value, json};

use super::{ENOUGH, SHORT};

/// Fills the workspace.
fn furnished(world: &World) {
    world.file("file.txt", "inside").file("here.txt", "here");
}

#[test]
fn read_tool_cannot_write_and_write_tool_can() {
    let case = |tool: &str| {
        let input = json!({"ops": ["create", "truncate", "append", "unlink", "mkdir"], "paths": ["file.txt"]});
        Case::new(HOSTILE_PROBE, tool)
            .input(input)
            .allow(SideEffects::Write)
            .timeout(ENOUGH)
            .arrange(furnished)
    };
    let seen = around_both(&case("probe_read"));
    assert!(seen.output().matches("not-permitted").count() == 5, "{}", seen.output());
    seen.changed_nothing().modified(&[]);
    let seen = around_both(&case("probe_write"));
    assert!(seen.output().matches("done").count() == 5, "{}", seen.output());
}

#[test]
fn class_none_has_no_files_network_or_environment() {
    let seen = around_both(
        &Case::new(HOSTILE_ABUSE, "abuse")
            .input(json!({"how": "look-around"}))
            .timeout(ENOUGH)
            .arrange(furnished),
    );
    assert!(
        !seen.output().contains("inside") && !seen.output().contains("PATH"),
        "{}",
        seen.output()
    );
    assert!(!seen.output().contains("Ok(["), "{}", seen.output());
}

#[test]
fn allowance_of_one_plugin_does_not_apply_to_its_namesake() {
    // Two plugins with the same name and class but different digests: an allowance for one must not
    // cover the other.
    let bytes = |text: &str| {
        Wat::new(Told { class: 2, description: text.to_owned(), ..Told::new("raw") }).build()
    };
    let asked = |bytes: Vec<u8>| {
        let oracle = Oracle::new(|world, builder| {
            std::fs::write(world.plugins().join("raw.wasm"), bytes).unwrap();
            builder.plugins(world.plugins())
        });
        let digests = std::sync::Mutex::new(Vec::new());
        oracle.watch(ENOUGH, |stage: &Stage| {
            let (host, confirmations, recorder) =
                (stage.host.clone(), stage.confirmations.clone(), stage.recorder.clone());
            let digests = &digests;
            async move {
                let session = host.new_session("s").build();
                let call = host.dispatch(&session, Call::new("raw", json!({})));
                let answer = async {
                    let question = confirmations.next().await;
                    digests.lock().unwrap().push(question.digest.map(|digest| digest.to_string()));
                    confirmations.answer(&question.id, Answer::Always).unwrap();
                };
                let (first, ()) = tokio::join!(call, answer);
                let second = host.dispatch(&session, Call::new("raw", json!({}))).await;
                let asked = recorder
                    .names()
                    .iter()
                    .filter(|name| **name == "tool.confirmation_requested")
                    .count();
                assert_eq!(asked, 1, "always applies to this tool");
                vec![first, second]
            }
        });
        digests.into_inner().unwrap().pop().unwrap()
    };
    assert_ne!(asked(bytes("A tool.")), asked(bytes("A tool, updated.")));
}

/// Builds a host with this one plugin and a confirmer that counts its questions and answers
/// "always".
fn hosting(world: &World, asked: &Arc<AtomicUsize>, told: Told) -> Host {
    std::fs::write(world.plugins().join("raw.wasm"), Wat::new(told).build()).unwrap();
    let asked = asked.clone();
    let always = ConfirmFn::new(move |_| {
        asked.fetch_add(1, Ordering::SeqCst);
        Answer::Always
    });
    let builder =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(world.plugins());
    builder.cache(CacheMode::Directory(cache())).confirmer(Arc::new(always)).build().unwrap()
}

#[test]
fn always_allowance_ends_with_any_update() {
    let (world, asked) = (World::new(), Arc::new(AtomicUsize::new(0)));
    let told = || Told { class: 2, ..Told::new("raw") };
    let updates = [
        ("the same again", told(), 0),
        ("another description", Told { description: "A tool, updated.".to_owned(), ..told() }, 1),
        (
            "another schema",
            told().with_input(r#"{"type": "object", "properties": {"more": {}}}"#),
            1,
        ),
        ("another title", Told { title: Some("Raw".to_owned()), ..told() }, 1),
        ("more effects", Told { class: 3, ..told() }, 1),
        ("the first again", told(), 0),
    ];
    let first = hosting(&world, &asked, told());
    // One session for all hosts, since remembered answers belong to the session.
    let session = first.new_session("s").build();
    let call = |host: &Host| block_on(host.dispatch(&session, Call::new("raw", json!({}))));
    assert!(call(&first).is_success() && call(&first).is_success());
    assert_eq!(asked.swap(0, Ordering::SeqCst), 1, "always applies to this tool");
    for (what, told, questions) in updates {
        let host = hosting(&world, &asked, told);
        assert!(call(&host).is_success(), "{what}");
        assert_eq!(asked.swap(0, Ordering::SeqCst), questions, "{what}");
        assert!(call(&first).is_success(), "the old one runs on");
        assert_eq!(asked.swap(0, Ordering::SeqCst), 0, "{what}");
    }
}

#[test]
fn update_denied_by_the_policy_causes_no_question() {
    let (world, asked) = (World::new(), Arc::new(AtomicUsize::new(0)));
    let first = hosting(&world, &asked, Told { class: 1, ..Told::new("raw") });
    let policy = Policy::default().with_class(SideEffects::Execute, Mode::Deny);
    let session = first.new_session("s").policy(policy).build();
    let call = |host: &Host| block_on(host.dispatch(&session, Call::new("raw", json!({}))));
    assert!(call(&first).is_success());
    let result = call(&hosting(&world, &asked, Told { class: 3, ..Told::new("raw") }));
    assert_eq!((class(&result), asked.load(Ordering::SeqCst)), ("permission_denied", 0));
}

#[test]
fn unanswered_question_times_out_and_nothing_runs() {
    let oracle = Oracle::new(|_, builder| {
        builder.plugins(DISPATCHER_GATE.directory()).confirmation_timeout(SHORT)
    });
    let result = oracle.call(&Call::new("of_write", json!({"number": 1})), SHORT);
    assert_eq!(class(&result), "confirmation_timeout");
    assert!(!oracle.stage.world.root().join("written.txt").exists());
}

#[test]
fn wrong_or_second_answer_has_no_effect() {
    let oracle = Oracle::new(|_, builder| builder.plugins(DISPATCHER_GATE.directory()));
    let results = oracle.watch(ENOUGH, |stage: &Stage| {
        let (host, confirmations) = (stage.host.clone(), stage.confirmations.clone());
        async move {
            let call = |number: i64| host.call("of_write", json!({"number": number}), json!({}));
            let answers = async {
                let (one, other) = (confirmations.next().await, confirmations.next().await);
                assert_ne!(one.id, other.id);
                confirmations.answer(&one.id, Answer::Deny).unwrap();
                assert!(confirmations.answer(&one.id, Answer::Allow).is_err());
                confirmations.answer(&other.id, Answer::Deny).unwrap();
            };
            let (one, other, ()) = tokio::join!(call(1), call(2), answers);
            vec![one, other]
        }
    });
    assert!(
        results.iter().all(|result: &ToolResult| class(result) == "user_denied"),
        "{results:?}"
    );
    assert!(!oracle.stage.world.root().join("written.txt").exists());
}

/// Returns the question for this input: its summary and its projected modifications.
fn question(number: &Value) -> (String, Vec<String>) {
    let oracle = Oracle::new(|_, builder| builder);
    let seen = std::sync::Mutex::new((String::new(), Vec::new()));
    oracle.watch(ENOUGH, |stage: &Stage| {
        let host =
            Host::builder().workspace(stage.world.root()).cache(CacheMode::Directory(cache()));
        let confirmations = palisade::confirm::ConfirmationQueue::default();
        let builder = host.confirmer(Arc::new(confirmations.clone()));
        let host =
            std::thread::scope(|scope| scope.spawn(|| builder.build()).join()).unwrap().unwrap();
        let (seen, number) = (&seen, number.clone());
        async move {
            let call = host.call("write_file", number, json!({}));
            let answer = async {
                let question = confirmations.next().await;
                *seen.lock().unwrap() =
                    (question.input_summary.to_string(), question.projected_modifications.to_vec());
                confirmations.answer(&question.id, Answer::Deny).unwrap();
            };
            let (result, ()) = tokio::join!(call, answer);
            assert_eq!(class(&result), "user_denied");
        }
    });
    seen.into_inner().unwrap()
}

#[test]
fn question_shows_escaped_text() {
    if leaves_out(&[Group::F]) {
        return;
    }
    let padding = " ".repeat(100_000);
    for content in [
        "a\u{1b}[2J\u{1b}[1;1Hallow",
        "a\u{202e}txt.exe",
        "a\u{200b}b",
        "a\r\nallow? yes\r\n",
        &padding,
        "\u{7}\u{0}",
    ] {
        let (summary, modifications) = question(&json!({"path": "note.txt", "content": content}));
        assert!(summary.len() < 2048, "{} bytes", summary.len());
        assert!(
            !summary.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\r', '\n', '\u{7}', '\u{0}']),
            "{summary:?}"
        );
        assert_eq!(modifications, ["note.txt"]);
    }
    // The paths are exact, so that an embedder can compare them; the program escapes them for
    // display.
    let (summary, modifications) =
        question(&json!({"path": "n\u{43e}te\u{1b}[2J.txt", "content": ""}));
    assert!(
        !summary.contains('\u{1b}') && modifications == ["n\u{43e}te\u{1b}[2J.txt"],
        "{summary:?}"
    );
}

#[test]
fn namesake_plugin_gets_no_allowance_of_the_first() {
    let twin = Wat::new(Told::new("echo")).build();
    let loaded = oracle::loading(ENOUGH, |world| {
        std::fs::copy(palisade_tests::guest::HOSTILE_ECHO.file(), world.plugins().join("a.wasm"))
            .unwrap();
        std::fs::write(world.plugins().join("b.wasm"), &twin).unwrap();
    });
    assert_eq!((loaded.tools.len(), loaded.rejected.len()), (1, 1));
}
