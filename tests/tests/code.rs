//! Tests programs that call tools: the shipped plugin `code`, `palisade run` and
//! `palisade serve --code-mode`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "code/everywhere.rs"]
mod everywhere;
#[path = "code/hostile.rs"]
mod hostile;
#[path = "code/listed.rs"]
mod listed;
#[path = "code/program.rs"]
mod program;
#[path = "code/programs.rs"]
mod programs;
#[path = "code/replays.rs"]
mod replays;
#[path = "code/rounds.rs"]
mod rounds;
#[path = "code/served.rs"]
mod served;
#[path = "code/tasks.rs"]
mod tasks;

use palisade::tool::Digest;
use palisade::{Call, HostBuilder, ToolResult, json};
use palisade_net::{Grants, Network, PluginGrants};
use palisade_tests::Stage;
use std::sync::Arc;

/// Returns a host whose programs may call the tools of these patterns.
fn granting(patterns: &[&str], change: impl FnOnce(HostBuilder) -> HostBuilder) -> Stage {
    let code = palisade_plugins::all().iter().find(|plugin| plugin.name == "code").unwrap();
    let patterns = patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
    let granted = PluginGrants::default().with_tools(patterns);
    let digest = Digest::from_bytes(code.digest);
    let grants = Grants::new(Network::default()).plugin(digest, granted);
    Stage::new(&[], |builder| change(builder.powers(Arc::new(grants))))
}

/// Returns the call that runs a program.
fn program(code: &str) -> Call {
    Call::new("run_js", json!({"code": code})).with_id("program")
}

/// Runs a program.
async fn run(stage: &Stage, code: &str) -> ToolResult {
    stage.host.dispatch(&stage.session(), program(code)).await
}

/// Runs a program, and returns its output.
#[track_caller]
fn output(result: &ToolResult) -> String {
    result.output().unwrap_or_else(|| panic!("the program failed: {result}")).into_owned()
}

/// Returns the words of a program that failed.
#[track_caller]
fn failure(result: &ToolResult) -> String {
    assert!(result.error().is_some(), "the program succeeded: {result}");
    result.to_string()
}
