//! Calls through the library: they always return a result, and errors can be matched on.

use palisade::policy::Policy;
use palisade::registry::Registry;
use palisade::{BuildError, CacheMode, Call, ErrorKind, Host, SideEffects, ToolOutput, ToolResult};
use palisade::{ExecutionKind, PermissionReason};
use palisade_tests::case::block_on;
use palisade_tests::guest::{CONTRACT_DEFINITIONS, CONTRACT_END, CONTRACT_ERRORS};
use palisade_tests::native::Native;
use palisade_tests::{Case, Guest, World};
use serde_json::{Value, json};

use super::host;

fn call(host: &Host, tool: &str, input: &str) -> ToolResult {
    block_on(host.dispatch(host.session(), Call::new(tool, input)))
}

fn host_of(guest: Guest) -> (World, Host) {
    let case = Case::new(guest, "any");
    let world = case.world();
    let host = case.builder(&world).build().unwrap();
    (world, host)
}

#[test]
fn every_failure_is_in_the_result() {
    let ((_a, definitions), (_b, ends), (_c, errors)) =
        (host(), host_of(CONTRACT_END), host_of(CONTRACT_ERRORS));
    let panics = Native::new("panics", |_, _| panic!("this is part of the test"));
    definitions.registry().register(panics.factory()).unwrap();
    let fails = Native::new("fails", |_, _| Err("it broke".to_owned().into()));
    definitions.registry().register(fails.factory()).unwrap();
    for (host, tool, input, class) in [
        (&definitions, "no_such_tool", "{}", "not_found"),
        (&definitions, "every_field", r#"{"count": "x"}"#, "validation_error"),
        (&definitions, "every_field", "not JSON", "validation_error"),
        (&definitions, "writes", "{}", "permission_denied"),
        (&definitions, "panics", "{}", "execution_error"),
        (&definitions, "fails", "{}", "execution_error"),
        (&ends, "end", r#"{"how": "panic"}"#, "execution_error"),
        (&ends, "end", r#"{"how": "exit-0"}"#, "execution_error"),
        (&errors, "fail", r#"{"with": "failed"}"#, "execution_error"),
    ] {
        let result = call(host, tool, input);
        assert_eq!(
            result.error().map(|error| error.class().as_str()),
            Some(class),
            "{tool} {input}"
        );
        palisade_tests::uniform::check_shape(&result.to_json());
    }
    assert_eq!(
        call(&definitions, "bare", "{}").output().as_deref(),
        Some("bare"),
        "and the host goes on"
    );
}

#[test]
fn errors_expose_field_and_reason() {
    let ((_a, host), (_b, errors)) = (host(), host_of(CONTRACT_ERRORS));
    let missing = call(&host, "evry_field", "{}");
    assert!(
        matches!(missing.error().unwrap().kind(), ErrorKind::NotFound { nearest, .. } if nearest == &["every_field"])
    );
    let invalid = call(&host, "every_field", r#"{"count": -1}"#);
    let [violation] = invalid.error().unwrap().errors() else { panic!("{invalid}") };
    assert_eq!(violation.pointer, "/count");
    let denied = call(&host, "writes", "{}");
    let no_confirmer = PermissionReason::NoConfirmer;
    assert!(
        matches!(denied.error().unwrap().kind(), ErrorKind::PermissionDenied { reason, .. } if *reason == no_confirmer)
    );
    let own = call(&errors, "fail", r#"{"with": "invalid-input"}"#);
    assert!(matches!(
        own.error().unwrap().kind(),
        ErrorKind::Execution { kind: ExecutionKind::InvalidInput, field: Some(field), .. } if field == "with"
    ));
}

#[test]
fn error_states_whether_retrying_may_help() {
    let ((_a, host), (_b, ends)) = (host(), host_of(CONTRACT_END));
    let recoverable = |result: ToolResult| result.error().unwrap().is_recoverable();
    assert!(recoverable(call(&host, "evry_field", "{}")));
    assert!(recoverable(call(&host, "every_field", "[]")));
    assert!(!recoverable(call(&host, "writes", "{}")));
    assert!(!recoverable(call(&ends, "end", r#"{"how": "panic"}"#)));
}

#[test]
fn error_names_call_and_tool_or_unnamed() {
    let (_world, host) = host();
    let named =
        block_on(host.dispatch(host.session(), Call::new("no_such_tool", "{}").with_id("tu_9")));
    let error = named.error().unwrap();
    assert_eq!((error.call_id().as_str(), error.tool_name()), ("tu_9", "no_such_tool"));
    for blank in ["", "  ", "\n"] {
        let result = call(&host, blank, "{}");
        assert_eq!(
            (result.tool(), result.error().unwrap().tool_name()),
            ("<unnamed>", "<unnamed>"),
            "{blank:?}"
        );
    }
}

#[test]
fn host_failure_is_redacted_and_panics_are_logged() {
    let (_world, host) = host();
    host.registry()
        .register(Native::new("panics", |_, _| panic!("a secret of the developer")).factory())
        .unwrap();
    let result = call(&host, "panics", "{}");
    assert!(!result.error().unwrap().is_user_visible());
    assert!(!result.to_json().to_string().contains("secret"));
}

#[test]
fn optional_context_reaches_a_native_tool_unchanged() {
    let (_world, host) = host();
    let gives_back = Native::new("context", |_, context| {
        Ok(ToolOutput::text(context.caller().context.to_string()))
    });
    host.registry().register(gives_back.factory()).unwrap();
    assert_eq!(call(&host, "context", "{}").output().as_deref(), Some("{}"));
    let opaque: Value = json!({"anything": [1, {"at": "all"}]});
    let result = block_on(host.call("context", json!({}), opaque.clone()));
    assert_eq!(result.output().as_deref(), Some(&*opaque.to_string()));
}

#[test]
fn native_tool_knows_its_workspace() {
    let (world, host) = host();
    let place = Native::new("place", |_, context| {
        Ok(ToolOutput::text(context.workspace().root().display().to_string()))
    });
    host.registry().register(place.factory()).unwrap();
    let root = world.root().canonicalize().unwrap();
    assert_eq!(call(&host, "place", "{}").output().as_deref(), root.to_str());
}

#[test]
fn empty_host_builds_and_accepts_a_native_tool() {
    let world = World::new();
    let host = Host::builder()
        .workspace(world.root())
        .shipped(palisade::plugins::Shipped::LeftOut)
        .build()
        .unwrap();
    assert!(host.registry().is_empty());
    assert_eq!(
        call(&host, "read_file", "{}").error().map(|error| error.class().as_str()),
        Some("not_found")
    );
    host.registry().register(palisade_tests::native::echo("read_file")).unwrap();
    assert_eq!(call(&host, "read_file", "{}").output().as_deref(), Some("read_file"));
}

#[test]
fn subset_of_a_registry_runs_in_a_host_of_its_own() {
    let (_world, whole) = host();
    whole
        .registry()
        .register(Native::new("mine", |_, _| Ok(ToolOutput::text("own"))).factory())
        .unwrap();
    let subset = whole.registry().subset(["bare", "mine"]).unwrap();
    let world = World::new();
    let part = Host::builder().workspace(world.root()).registry(subset.clone()).build().unwrap();
    assert_eq!(part.registry().tool_names(), ["bare", "mine"], "nothing else is loaded");
    let shared = whole.registry().clone();
    let same = Host::builder().workspace(world.root()).registry(shared).build().unwrap();
    same.rescan();
    assert_eq!(same.registry().len(), 6, "it knows nothing of the plugins, and removes none");
    // The tools do not need the host that loaded them.
    drop(whole);
    assert_eq!(call(&part, "bare", "{}").output().as_deref(), Some("bare"));
    assert_eq!(call(&part, "mine", "{}").output().as_deref(), Some("own"));
    let left_out = call(&part, "every_field", r#"{"count": 1}"#);
    assert!(matches!(left_out.error().unwrap().kind(), ErrorKind::NotFound { .. }), "{left_out}");
    subset.register(Native::new("later", |_, _| Ok(ToolOutput::text("new"))).factory()).unwrap();
    assert_eq!(call(&part, "later", "{}").output().as_deref(), Some("new"), "it is shared");
}

#[test]
fn host_with_a_given_registry_takes_native_tools_and_no_plugins() {
    let world = World::new();
    let builder = || Host::builder().workspace(world.root()).registry(Registry::new());
    let native = Native::new("mine", |_, _| Ok(ToolOutput::text("own"))).factory();
    let host = builder().tool(native).build().unwrap();
    assert_eq!(host.registry().tool_names(), ["mine"]);
    assert_eq!(call(&host, "mine", "{}").output().as_deref(), Some("own"));
    for refused in [
        builder().plugins(world.plugins()).build(),
        builder().plugin_file(world.plugins().join("x.wasm")).build(),
    ] {
        let error = refused.map(drop).unwrap_err();
        assert!(matches!(error, BuildError::RegistryWithPlugins), "{error}");
    }
}

#[test]
fn plugin_files_stay_protected_in_the_host_of_a_subset() {
    let world = World::new();
    let plugins = world.root().join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    std::fs::copy(CONTRACT_DEFINITIONS.file(), plugins.join("mine.wasm")).unwrap();
    let builder = || Host::builder().cache(CacheMode::Directory(palisade_tests::guest::cache()));
    let elsewhere = World::new();
    let loads = builder().workspace(elsewhere.root()).plugins(&plugins).build().unwrap();
    let policy = Policy::default().allowing(SideEffects::Write);
    let subset = loads.registry().subset(["write_file", "delete_file"]).unwrap();
    for registry in [subset.clone(), subset.subset(["write_file", "delete_file"]).unwrap()] {
        let part = builder().workspace(world.root()).policy(policy.clone()).registry(registry);
        let part = part.build().unwrap();
        for (tool, input) in [
            ("write_file", json!({"path": "plugins/mine.wasm", "content": "x"})),
            ("write_file", json!({"path": "plugins/new.wasm", "content": "x"})),
            ("delete_file", json!({"path": "plugins/mine.wasm"})),
        ] {
            let result = block_on(part.call(tool, input, json!({})));
            let error = result.to_json()["error"].clone();
            assert_eq!(
                (&error["class"], &error["detail"]["reason"]),
                (&json!("permission_denied"), &json!("protected")),
                "{tool}: {result}"
            );
        }
        let free = json!({"path": "free.txt", "content": "x"});
        assert!(block_on(part.call("write_file", free, json!({}))).is_success());
    }
    assert!(plugins.join("mine.wasm").exists() && !plugins.join("new.wasm").exists());
}
