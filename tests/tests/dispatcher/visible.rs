//! The tools of a session: those that it shows, those that it may call, and those that the policy
//! denies.

use std::sync::Arc;

use palisade::formats::{Format, Strictness};
use palisade::policy::{Mode, Policy};
use palisade::{Advertised, Allowed, Call, ErrorClass, Session, SideEffects, json};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::native::echo;
use palisade_tests::stage::class;

use super::stage;

fn listed(stage: &Stage, session: &Session) -> Vec<String> {
    let definitions = stage.host.definitions(session);
    definitions.iter().map(|definition| definition.name().to_string()).collect()
}

fn only(names: &[&str]) -> Allowed {
    Allowed::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

fn read(id: &str) -> Call {
    Call::new("read_file", json!({"path": "f"})).with_id(id)
}

#[test]
fn allowed_tools_bind_and_all_others_are_refused() {
    let stage = stage();
    stage.world.file("f", "text");
    let session = stage.host.new_session("a").allow(only(&["calculate"])).build();
    assert_eq!(listed(&stage, &session), ["calculate"]);
    let sum = Call::new("calculate", json!({"expression": "6 * 7"}));
    let run = block_on(stage.host.dispatch(&session, sum));
    assert_eq!(run.output().as_deref(), Some("42"));
    for (id, refused) in [
        ("one", block_on(stage.host.dispatch(&session, read("one")))),
        ("all", block_on(stage.host.dispatch_all(&session, vec![read("all")])).remove(0)),
    ] {
        assert_eq!(class(&refused), "permission_denied", "{refused}");
        assert_eq!(refused.to_json()["error"]["detail"], json!({"reason": "not_allowed"}));
        assert!(refused.to_string().contains("`read_file` is not among the tools"), "{refused}");
        assert_eq!(stage.recorder.names_of(id), ["tool.failed"], "it never started");
    }
    let explained = stage.host.explain(&session, read("x")).unwrap_err();
    assert_eq!(explained.class(), ErrorClass::PermissionDenied);
    let free = block_on(stage.host.dispatch(&stage.session(), read("free")));
    assert_eq!(free.output().as_deref(), Some("text"), "another session is not bound");
}

#[test]
fn refusal_names_the_list_that_leaves_the_tool_out() {
    let bound = Stage::new(&[], |builder| builder.allow(only(&["calculate", "list_dir"])));
    let call = |session: &Session| {
        let result = block_on(bound.host.dispatch(session, read("r")));
        result.error().unwrap().message()
    };
    let by_host = call(&bound.session());
    assert!(by_host.contains("may be called here"), "{by_host}");
    assert!(by_host.contains("`HostBuilder::allow` leaves"), "{by_host}");
    let own = bound.host.new_session("a").allow(only(&["calculate"])).build();
    let by_both = call(&own);
    assert_eq!(by_both, by_host, "another session would not help");
    let free = stage();
    let own = free.host.new_session("a").allow(only(&["calculate"])).build();
    let result = block_on(free.host.dispatch(&own, read("r")));
    let by_session = result.error().unwrap().message();
    assert!(by_session.contains("not among the tools of this session"), "{by_session}");
    assert!(by_session.contains("`SessionBuilder::allow` leaves"), "{by_session}");
}

#[test]
fn unknown_tool_stays_unknown_in_a_bound_session() {
    let stage = stage();
    let session = stage.host.new_session("a").allow(only(&["no_such_tool"])).build();
    let result = block_on(stage.host.dispatch(&session, Call::new("no_such_tool", "{}")));
    assert_eq!(class(&result), "not_found");
    assert!(listed(&stage, &session).is_empty());
}

#[test]
fn tool_list_may_name_the_plugin() {
    let stage = stage();
    stage.world.file("f", "text");
    for (name, allowed) in [("files/read_file", true), ("search/read_file", false)] {
        let session = stage.host.new_session("a").allow(only(&[name])).build();
        let result = block_on(stage.host.dispatch(&session, read("c")));
        assert_eq!(result.is_success(), allowed, "{name}: {result}");
        let hides = Advertised::Except(vec![name.to_owned()]);
        let session = stage.host.new_session("b").advertise(hides).build();
        let shown = listed(&stage, &session).contains(&"read_file".to_owned());
        assert_eq!(shown, !allowed, "{name}");
    }
}

#[test]
fn host_gives_its_lists_to_every_session() {
    let stage = Stage::new(&[], |builder| {
        builder
            .allow(only(&["calculate", "read_file"]))
            .advertise(Advertised::Except(vec!["calculate".into()]))
    });
    stage.world.file("f", "text");
    for session in [stage.host.session().clone(), stage.session()] {
        assert_eq!(listed(&stage, &session), ["read_file"]);
        let result = block_on(stage.host.dispatch(&session, writing_over()));
        assert_eq!(class(&result), "permission_denied", "{result}");
    }
    let wider = stage.host.new_session("w").allow(Allowed::All).build();
    assert!(listed(&stage, &wider).len() > 1, "a program may set its own");
}

fn writing_over() -> Call {
    Call::new("write_file", json!({"path": "f", "content": "x"}))
}

#[test]
fn denied_tool_is_neither_listed_nor_exported() {
    let stage = stage();
    let policies = [
        Policy::default().with_tool("write_file", Mode::Deny),
        Policy::default().with_class(SideEffects::Write, Mode::Deny),
    ];
    for policy in policies {
        let session = stage.host.new_session("a").policy(policy).build();
        let names = listed(&stage, &session);
        assert!(!names.contains(&"write_file".to_owned()), "{names:?}");
        assert!(names.contains(&"read_file".to_owned()), "{names:?}");
        for format in Format::ALL {
            let exported = stage.host.export(&session, format, Strictness::AsIs);
            let text = exported.definitions.to_string();
            assert!(!text.contains("\"write_file\""), "{format:?}: {text}");
            assert!(text.contains("\"read_file\""), "{format:?}: {text}");
        }
    }
    let asks = stage.session();
    assert!(listed(&stage, &asks).contains(&"write_file".to_owned()), "a prompt is no deny");
}

#[test]
fn export_is_shared_by_sessions_that_list_the_same_tools() {
    let stage = stage();
    let session = |allowed| stage.host.new_session("s").allow(allowed).build();
    let export = |session: &Session| stage.host.export(session, Format::OpenAi, Strictness::AsIs);
    let (one, other) = (session(only(&["calculate"])), session(only(&["calculate/calculate"])));
    let first = export(&one);
    assert!(Arc::ptr_eq(&first, &export(&other)), "both list the same tool");
    let wide = export(&session(Allowed::All));
    assert_ne!(wide.definitions, first.definitions, "another filter has its own export");
    assert!(Arc::ptr_eq(&first, &export(&one)), "and takes no place from it");
    let strict = stage.host.export(&one, Format::OpenAi, Strictness::Transform);
    assert!(!Arc::ptr_eq(&first, &strict));
    stage.host.registry().register(echo("later")).unwrap();
    assert!(Arc::ptr_eq(&first, &export(&one)), "none of its tools has changed");
    let wider = export(&session(Allowed::All));
    assert!(wider.definitions.to_string().contains("\"later\""), "it is renewed after a change");
    assert!(!wide.definitions.to_string().contains("\"later\""));
}
