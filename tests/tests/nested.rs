//! Tests calls that a running tool makes of others: each passes every stage of a call, and all
//! together stay within the budget of the call that makes them.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "nested/budget.rs"]
mod budget;
#[path = "nested/ends.rs"]
mod ends;
#[path = "nested/calls.rs"]
mod nested_calls;
#[path = "nested/program.rs"]
mod program;
#[path = "nested/questions.rs"]
mod questions;

use palisade::tool::Digest;
use palisade::{Call, HostBuilder, ToolResult, json};
use palisade_net::{Grants, Network, PluginGrants};
use palisade_tests::guest::NESTED_CALLS;
use palisade_tests::{Stage, is_tested};
use serde_json::Value;
use std::sync::Arc;

palisade_tests::foreach_nested!(is_tested);

/// Returns a host in which the guest may call the tools of these patterns.
fn granting(patterns: &[&str], change: impl FnOnce(HostBuilder) -> HostBuilder) -> Stage {
    let guest = Digest::of(&std::fs::read(NESTED_CALLS.file()).unwrap());
    let patterns = patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
    let granted = PluginGrants::default().with_tools(patterns);
    let grants = Grants::new(Network::default()).plugin(guest, granted);
    Stage::new(&[NESTED_CALLS], |builder| change(builder.powers(Arc::new(grants))))
}

/// Returns the call of a guest that makes these calls.
fn making(calls: &Value) -> Call {
    Call::new("nested_run", json!({"calls": calls})).with_id("outer")
}

/// Returns the results of the calls that a guest has made, each as `[class, text]`.
#[track_caller]
fn results(result: &ToolResult) -> Vec<(String, String)> {
    let output = result.output().unwrap_or_else(|| panic!("the call failed: {result}"));
    let told: Vec<Value> = serde_json::from_str(&output).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    told.iter().map(|one| (text(&one["class"]), text(&one["text"]))).collect()
}
