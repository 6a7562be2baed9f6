//! Names and configuration that the operator gives the tools of one plugin, through the library.

use palisade::formats::Format;
use palisade::plugins::{Cause, Shipped};
use palisade::policy::{Mode, Policy, Rule};
use palisade::sandbox::PluginSettings;
use palisade::{
    Allowed, BuildError, CacheMode, Call, Host, HostBuilder, SideEffects, ToolOutput, ToolResult,
};
use palisade_tests::case::block_on;
use palisade_tests::guest::{CONTRACT_CONTEXT, cache};
use palisade_tests::native::Native;
use palisade_tests::wat::Told;
use palisade_tests::{Case, Wat, World};
use serde_json::{Map, Value, json};

/// Returns a plugin with these tools of class write.
fn plugin(tools: &[&str]) -> Vec<u8> {
    let told = |name: &&str| Told { class: 2, ..Told::new(name) };
    Wat::with_tools(tools.iter().map(told).collect()).build()
}

fn builder(world: &World) -> HostBuilder {
    palisade_tests::host_builder()
        .workspace(world.root())
        .plugins(world.plugins())
        .shipped(Shipped::LeftOut)
        .cache(CacheMode::Directory(cache()))
}

fn settings() -> PluginSettings {
    PluginSettings::default()
}

fn renaming(pairs: &[[&str; 2]]) -> PluginSettings {
    let renamed =
        |settings: PluginSettings, [own, new]: &[&str; 2]| settings.with_renamed(own, new).unwrap();
    pairs.iter().fold(settings(), renamed)
}

fn call(host: &Host, tool: &str) -> ToolResult {
    block_on(host.dispatch(host.session(), Call::new(tool, json!({}))))
}

fn mode(host: &Host, tool: &str) -> Mode {
    let tool = host.registry().get(tool).unwrap();
    host.session().policy().decide(tool.definition(), tool.origin())
}

#[test]
fn two_plugins_with_one_tool_name_are_served_side_by_side() {
    let world = World::new();
    world.install("left", &plugin(&["search"]));
    world.install("right", &plugin(&["search", "list"]));
    let allowed = Policy::default().allowing(SideEffects::Write);
    let rejected = builder(&world).build().unwrap().rejected();
    assert_eq!(rejected[0].cause, Cause::NameTaken, "{rejected:?}");
    let own = settings().with_prefix("right_").unwrap();
    let host = builder(&world).policy(allowed).plugin_settings("right", own).build().unwrap();
    assert!(host.rejected().is_empty());
    assert_eq!(host.registry().tool_names(), ["search", "right_search", "right_list"]);
    for (tool, plugin) in [("search", "left"), ("right_search", "right"), ("right_list", "right")] {
        let result = call(&host, tool);
        assert!(result.is_success(), "{result}");
        assert_eq!((result.tool(), result.plugin()), (tool, Some(plugin)));
    }
    for format in Format::ALL {
        let exported = host.registry().export(format).to_string();
        for name in ["\"search\"", "\"right_search\"", "\"right_list\""] {
            assert!(exported.contains(name), "{exported}");
        }
    }
    assert_eq!(call(&host, "list").error().map(|e| e.class().as_str()), Some("not_found"));
}

#[test]
fn guest_gets_the_name_that_it_gave_its_tool() {
    let case = Case::new(CONTRACT_CONTEXT, "look");
    let world = case.world();
    let own = renaming(&[["see", "look"]]).with_prefix("my_").unwrap();
    let host = case.builder(&world).plugin_settings("contract_context", own).build().unwrap();
    assert_eq!(host.registry().tool_names(), ["look", "my_input"]);
    for tool in ["look", "my_input"] {
        assert!(call(&host, tool).is_success(), "a guest knows its own name only");
    }
    let plugin = &host.plugins()[0];
    let own: Vec<&str> = plugin.definitions().iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(own, ["see", "input"], "the words that are approved stay");
}

#[test]
fn permission_means_the_tool_by_its_own_name() {
    let world = World::new();
    world.install("p", &plugin(&["a", "c"]));
    let host = |policy: Policy| {
        let own = renaming(&[["a", "b"]]);
        builder(&world).policy(policy).plugin_settings("p", own).build().unwrap()
    };
    let permitted = host(Policy::default().with_tool("p/a", Mode::Auto));
    assert!(call(&permitted, "b").is_success());
    assert!(!call(&permitted, "c").is_success(), "no permission for the other one");
    for name in ["p/b", "b", "a"] {
        let host = host(Policy::default().with_tool(name, Mode::Auto));
        assert!(!call(&host, "b").is_success(), "{name}");
    }
}

#[test]
fn either_name_denies() {
    let world = World::new();
    world.install("p", &plugin(&["a"]));
    for (name, rule) in [
        ("p/a", Rule::PluginTool),
        ("a", Rule::Tool),
        ("p/b", Rule::SeenPluginTool),
        ("b", Rule::SeenTool),
    ] {
        let policy = Policy::default().with_class(SideEffects::Write, Mode::Auto);
        let policy = policy.with_tool("p/a", Mode::Auto).with_tool(name, Mode::Deny);
        let own = renaming(&[["a", "b"]]);
        let host = builder(&world).policy(policy).plugin_settings("p", own).build().unwrap();
        let error = call(&host, "b").to_json()["error"].clone();
        assert_eq!(error["detail"]["reason"], "policy", "{name}: {error}");
        let explained = host.explain(host.session(), Call::new("b", json!({}))).unwrap();
        assert_eq!(explained.decision.rule, rule, "{name}");
    }
}

#[test]
fn tools_that_swap_names_gain_nothing() {
    let world = World::new();
    world.install("p", &plugin(&["a", "b"]));
    let swapped = || renaming(&[["a", "b"], ["b", "a"]]);
    let host = |policy: Policy| {
        builder(&world).policy(policy).plugin_settings("p", swapped()).build().unwrap()
    };
    let permitted = host(Policy::default().with_tool("p/a", Mode::Auto));
    assert_eq!((mode(&permitted, "b"), mode(&permitted, "a")), (Mode::Auto, Mode::Prompt));
    let both = Policy::default().with_tool("p/a", Mode::Auto).with_tool("p/b", Mode::Deny);
    let denied = host(both);
    assert_eq!((mode(&denied, "b"), mode(&denied, "a")), (Mode::Deny, Mode::Deny));
}

#[test]
fn plugins_that_swap_names_gain_nothing() {
    let world = World::new();
    world.install("p", &plugin(&["a"]));
    world.install("q", &plugin(&["b"]));
    let policy = Policy::default().with_tool("p/a", Mode::Auto);
    let host = builder(&world)
        .policy(policy)
        .plugin_settings("p", renaming(&[["a", "b"]]))
        .plugin_settings("q", renaming(&[["b", "a"]]))
        .build()
        .unwrap();
    assert_eq!((mode(&host, "b"), mode(&host, "a")), (Mode::Auto, Mode::Prompt));
}

#[test]
fn list_of_callable_tools_means_own_names() {
    let world = World::new();
    world.install("p", &plugin(&["a"]));
    for (name, may) in [("p/a", true), ("a", true), ("p/b", false), ("b", false)] {
        let host = builder(&world)
            .policy(Policy::default().allowing(SideEffects::Write))
            .allow(Allowed::Only(vec![name.to_owned()]))
            .plugin_settings("p", renaming(&[["a", "b"]]))
            .build()
            .unwrap();
        assert_eq!(call(&host, "b").is_success(), may, "{name}");
    }
}

#[test]
fn names_that_collide_or_are_too_long_reject_the_plugin() {
    let world = World::new();
    let long = "x".repeat(60);
    world.install("p", &plugin(&["a", "b", &long]));
    for (own, reason) in [
        (renaming(&[["a", "b"]]), "the name `b` to two of its tools"),
        (settings().with_prefix("left_").unwrap(), "with the prefix `left_`"),
        (renaming(&[["a", "other"]]), "`other` already exists"),
    ] {
        let host = builder(&world).plugin_settings("p", own);
        let native = Native::new("other", |_, _| Ok(ToolOutput::text("native")));
        let host = host.tool(native.factory()).build().unwrap();
        let rejected = host.rejected();
        let found = rejected.iter().find(|rejected| rejected.file.ends_with("p.wasm"));
        let found = found.unwrap_or_else(|| panic!("{rejected:?}"));
        assert!(found.reason.contains(reason), "{reason}: {}", found.reason);
        assert!(!host.registry().has("a"), "it is rejected whole");
    }
}

#[test]
fn name_of_a_shipped_tool_is_neither_given_nor_renamed() {
    let world = World::new();
    world.install("p", &plugin(&["read_file"]));
    let build = |plugin: &str, own: PluginSettings| {
        builder(&world).shipped(Shipped::Included).plugin_settings(plugin, own).build()
    };
    let host = build("p", settings().with_prefix("my_").unwrap()).unwrap();
    assert!(host.rejected().is_empty() && host.registry().has("my_read_file"));
    let host = build("p", renaming(&[["read_file", "write_file"]])).unwrap();
    assert_eq!(host.rejected()[0].cause, Cause::NameTaken);
    for own in [settings().with_prefix("my_").unwrap(), settings().with_workspace("sub").unwrap()] {
        let refused = build("files", own).map(drop);
        assert!(matches!(refused, Err(BuildError::ShippedPlugin { .. })), "{refused:?}");
    }
    assert!(build("files", settings().with_memory(64 << 20).unwrap()).is_ok());
}

#[test]
fn rescan_keeps_the_names_of_the_settings() {
    let world = World::new();
    world.install("p", &plugin(&["a"]));
    let own = settings().with_prefix("my_").unwrap();
    let host = builder(&world).plugin_settings("p", own).build().unwrap();
    world.install("p", &plugin(&["a", "c"]));
    let rescan = host.rescan();
    assert_eq!(rescan.changed.len(), 1, "{rescan:?}");
    assert_eq!(host.registry().tool_names(), ["my_a", "my_c"]);
    world.install("p", &plugin(&[&"x".repeat(64)]));
    let rescan = host.rescan();
    assert!(rescan.rejected[0].reason.contains("the one loaded before stays"), "{rescan:?}");
    assert_eq!(host.registry().tool_names(), ["my_a", "my_c"]);
}

fn config(value: Value) -> Map<String, Value> {
    let Value::Object(members) = value else { panic!("{value} is no object") };
    members
}

/// Returns the metadata that a guest sees of a call with this metadata.
fn seen(own: Option<PluginSettings>, sent: Value) -> Value {
    let case = Case::new(CONTRACT_CONTEXT, "see");
    let world = case.world();
    let builder = case.builder(&world);
    let host = match own {
        Some(own) => builder.plugin_settings("contract_context", own).build().unwrap(),
        None => builder.build().unwrap(),
    };
    let call = Call::new("see", json!({})).with_metadata(config(sent));
    let result = block_on(host.dispatch(host.session(), call)).to_json();
    result["content"][0]["json"]["metadata"].clone()
}

#[test]
fn configuration_reaches_the_plugin_and_a_callers_own_does_not() {
    let own = || settings().with_config(config(json!({"url": "https://a", "depth": [2]}))).unwrap();
    let expected = json!({"plugin-config": {"url": "https://a", "depth": [2]}});
    assert_eq!(seen(Some(own()), json!({})), expected);
    let sent = json!({"plugin-config": {"url": "https://evil"}, "trace": 1});
    let both = json!({"plugin-config": {"url": "https://a", "depth": [2]}, "trace": 1});
    assert_eq!(seen(Some(own()), sent.clone()), both);
    assert_eq!(seen(None, sent), json!({"trace": 1}));
}

#[test]
fn file_that_shares_its_name_gets_no_configuration() {
    let world = World::new();
    let second = world.outer().join("second");
    std::fs::create_dir(&second).unwrap();
    let guest = std::fs::read(CONTRACT_CONTEXT.file()).unwrap();
    std::fs::write(world.plugins().join("p.wasm"), &guest).unwrap();
    let secretive = settings().with_config(config(json!({"url": "https://a"}))).unwrap();
    let see = |host: &Host| {
        block_on(host.dispatch(host.session(), Call::new("see", json!({})))).to_json()["content"][0]
            ["json"]["metadata"]
            .clone()
    };
    let host = builder(&world).plugin_settings("p", secretive.clone()).build().unwrap();
    assert_eq!(see(&host)["plugin-config"]["url"], "https://a");
    std::fs::write(second.join("p.wasm"), plugin(&["other"])).unwrap();
    let host = builder(&world).plugins(&second).plugin_settings("p", secretive).build().unwrap();
    assert_eq!(see(&host), json!({}));
}
