//! Limits that the operator sets for one plugin, in place of those for all.

use palisade::sandbox::PluginSettings;
use palisade::sandbox::limits::Limits;
use palisade::{BuildError, Call, Host};
use palisade_tests::case::block_on;
use palisade_tests::guest::{LIMITS_MEMORY, LIMITS_TIME};
use palisade_tests::{Case, Program, World};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// Makes a call of the program with a user's configuration and a project's.
fn called(user: &str, project: &str, tool: &str, mib: u64) -> Value {
    let world = World::new();
    fs::write(world.home().join("own.toml"), user).unwrap();
    world.file("palisade.toml", project);
    let own = world.home().join("own.toml").display().to_string();
    let input = json!({"mib": mib}).to_string();
    let program = Program::new(&world).args(["--config", &own, "--no-builtin", "--plugins"]);
    let program = program.args([LIMITS_MEMORY.directory()]);
    program.args(["call", tool, &input, "--json"]).run().json()
}

fn take(mib: u64, of_all: u64, of_plugin: u64) -> Value {
    let case = Case::new(LIMITS_MEMORY, "take").memory_mib(of_all);
    let world = case.world();
    let own = PluginSettings::default().with_memory(of_plugin << 20).unwrap();
    let host = case.builder(&world).plugin_settings("limits_memory", own).build().unwrap();
    let input = json!({"mib": mib});
    block_on(host.dispatch(host.session(), Call::new("take", input))).to_json()
}

#[test]
fn memory_of_a_plugin_obeyed() {
    assert_eq!(take(64, 32, 128)["output"], "67108864 bytes");
    assert_eq!(take(16, 128, 32)["output"], "16777216 bytes");
    let user = "[limits]\nmemory = \"32MiB\"\n[plugins.limits_memory]\nmemory = \"128MiB\"";
    assert_eq!(called(user, "", "take", 64)["output"], "67108864 bytes");
}

#[test]
fn memory_of_a_plugin_violated() {
    for (mib, of_all, of_plugin) in [(64, 128, 32), (128, 32, 64)] {
        let detail = &take(mib, of_all, of_plugin)["error"]["detail"];
        assert_eq!(
            (&detail["limit"], &detail["value"]),
            (&json!("memory"), &json!(of_plugin << 20))
        );
    }
    let user = "[plugins.limits_memory]\nmemory = \"32MiB\"";
    let result = called(user, "", "take", 64);
    assert_eq!(result["error"]["detail"]["value"], 32 << 20, "{result}");
    assert_eq!(
        called(user.replace("limits_memory", "other").as_str(), "", "take", 64)["output"],
        "67108864 bytes"
    );
}

#[test]
fn project_lowers_the_memory_of_a_plugin_only() {
    let lowers = "[plugins.limits_memory]\nmemory = \"32MiB\"";
    assert_eq!(called("", lowers, "take", 64)["error"]["detail"]["value"], 32 << 20);
    // The project is below the default, but not below what the environment allows.
    let world = World::new();
    world.file("palisade.toml", "[plugins.limits_memory]\nmemory = \"100MiB\"");
    let program = Program::new(&world).env("PALISADE_MEMORY", "32MiB");
    let program = program.args(["--no-builtin", "--plugins"]).args([LIMITS_MEMORY.directory()]);
    let ran = program.args(["call", "take", r#"{"mib": 64}"#, "--json"]).run();
    assert_eq!(ran.json()["error"]["detail"]["value"], 32 << 20, "{ran:?}");
}

#[test]
fn memory_of_a_plugin_is_within_that_of_all_calls() {
    let world = World::new();
    let build = |memory: u64| {
        let limits = Limits { total_memory: 256 << 20, ..Limits::default() };
        let own = PluginSettings::default().with_memory(memory).unwrap();
        let case = Case::new(LIMITS_MEMORY, "take");
        case.builder(&world).limits(limits).plugin_settings("limits_memory", own).build()
    };
    assert!(build(256 << 20).is_ok());
    assert!(matches!(build(257 << 20), Err(BuildError::Limit { name: "total_memory", .. })));
}

/// Returns the time limit of a tool under settings.
fn time_of(host: &Host, tool: &str) -> Duration {
    host.time_limit(&host.registry().get(tool).unwrap(), None)
}

#[test]
fn timeout_of_a_plugin_stands_between_the_tools_and_the_classs() {
    let seconds = Duration::from_secs;
    let build = |own: PluginSettings| {
        let case = Case::new(LIMITS_TIME, "sleep");
        let world = case.world();
        let builder = case.builder(&world).tool_timeout("compute", seconds(7));
        (builder.plugin_settings("limits_time", own).build().unwrap(), world)
    };
    let (host, _world) = build(PluginSettings::default().with_timeout(seconds(20)).unwrap());
    assert_eq!(time_of(&host, "sleep"), seconds(20));
    assert_eq!(time_of(&host, "impatient"), seconds(20), "the tool only lowers the default");
    assert_eq!(time_of(&host, "compute"), seconds(7), "that of a tool is more precise");
    let tool = host.registry().get("sleep").unwrap();
    assert_eq!(host.time_limit(&tool, Some(seconds(3))), seconds(3), "the caller decides");
    let (host, _world) = build(PluginSettings::default());
    assert_eq!(time_of(&host, "sleep"), palisade::sandbox::limits::TIMEOUT);
}

#[test]
fn timeout_of_a_plugin_violated() {
    let case = Case::new(LIMITS_TIME, "sleep");
    let world = case.world();
    let own = PluginSettings::default().with_timeout(Duration::from_millis(200)).unwrap();
    let host = case.builder(&world).plugin_settings("limits_time", own).build().unwrap();
    let result = block_on(host.dispatch(host.session(), Call::new("sleep", json!({"ms": 60_000}))));
    assert_eq!(result.to_json()["error"]["detail"]["value_ms"], 200, "{result}");
}
