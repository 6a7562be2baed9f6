//! Tests the program: its output, its exit codes, and its prompts.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "program/bench.rs"]
mod bench;
#[path = "program/cache.rs"]
mod cache;
#[path = "program/call.rs"]
mod call;
#[path = "program/configuration.rs"]
mod configuration;
#[path = "program/demo.rs"]
mod demo;
#[path = "program/dispatch.rs"]
mod dispatch;
#[path = "program/doctor.rs"]
mod doctor;
#[path = "program/environment.rs"]
mod environment;
#[path = "program/events.rs"]
mod events;
#[path = "program/exit_codes.rs"]
mod exit_codes;
#[path = "program/explain.rs"]
mod explain;
#[path = "program/home_workspace.rs"]
mod home_workspace;
#[path = "program/input.rs"]
mod input;
#[path = "program/inspect.rs"]
mod inspect;
#[path = "program/interrupt.rs"]
mod interrupt;
#[path = "program/mcp_config.rs"]
mod mcp_config;
#[path = "program/mcp_config_http.rs"]
mod mcp_config_http;
#[path = "program/narrow.rs"]
mod narrow;
#[path = "program/output.rs"]
mod output;
#[path = "program/plugin_rules.rs"]
mod plugin_rules;
#[path = "program/plugin_settings.rs"]
mod plugin_settings;
#[path = "program/policy.rs"]
mod policy;
#[path = "program/progress.rs"]
mod progress;
#[path = "program/prompt.rs"]
mod prompt;
#[path = "program/required.rs"]
mod required;
#[path = "program/results.rs"]
mod results;
#[path = "program/robustness.rs"]
mod robustness;
#[path = "program/terminal.rs"]
mod terminal;
#[path = "program/threads.rs"]
mod threads;
#[path = "program/tool_lists.rs"]
mod tool_lists;
#[path = "program/verbs.rs"]
mod verbs;

use palisade_tests::{Guest, Program, World};
use std::path::PathBuf;

/// Returns the program with these arguments.
fn program<'w>(world: &'w World, words: &[&str]) -> Program<'w> {
    Program::new(world).args(words)
}

/// Returns the program with a guest's tools and no others.
fn with_guest<'w>(world: &'w World, guest: Guest, words: &[&str]) -> Program<'w> {
    program(world, words).args(["--no-builtin", "--plugins"]).args([guest.directory()])
}

/// Writes the user's configuration file.
fn user_file(world: &World, text: &str) -> PathBuf {
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).expect("a directory can be made");
    let file = folder.join("palisade.toml");
    std::fs::write(&file, text).expect("a file can be written");
    file
}
