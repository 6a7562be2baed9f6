//! The promise against hostile plugins, inputs and workspaces: whatever is tried, the host lives, says once what came of it, in time, and is as it was.
//!
//! Every case of the catalogue (`catalogue.md`) runs under the oracle of the harness, with its legitimate twin beside it: after each call the process is
//! alive and no thread of it panicked, the call had one end and a valid result in its time, what lies beside the workspace is untouched and unread, threads,
//! descriptors and memory are back, and the next call of a benign plugin works.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "hostile/address_space.rs"]
mod address_space;
#[path = "hostile/answers.rs"]
mod answers;
#[path = "hostile/cancellation.rs"]
mod cancellation;
#[path = "hostile/costly.rs"]
mod costly;
#[path = "hostile/cpu.rs"]
mod cpu;
#[path = "hostile/directory.rs"]
mod directory;
#[path = "hostile/effects.rs"]
mod effects;
#[path = "hostile/escape.rs"]
mod escape;
#[path = "hostile/expanding.rs"]
mod expanding;
#[path = "hostile/host_memory.rs"]
mod host_memory;
#[path = "hostile/malformed.rs"]
mod malformed;
#[path = "hostile/memory.rs"]
mod memory;
#[path = "hostile/output.rs"]
mod output;
#[path = "hostile/schemas.rs"]
mod schemas;
#[path = "hostile/soak.rs"]
mod soak;
#[path = "hostile/special.rs"]
mod special;
#[path = "hostile/swelling.rs"]
mod swelling;
#[path = "hostile/time.rs"]
mod time;
#[path = "hostile/together.rs"]
mod together;
#[path = "hostile/told.rs"]
mod told;
#[path = "hostile/validation.rs"]
mod validation;
#[path = "hostile/wrong_world.rs"]
mod wrong_world;

use std::time::Duration;

use host_memory as hostile_abuse;
use palisade_tests::guest::HOSTILE_ABUSE;
use palisade_tests::wat::Told;
use palisade_tests::{Case, Plugins, Wat, is_tested};
use serde_json::json;
use {cpu as hostile_echo, escape as hostile_probe, expanding as hostile_expand};

palisade_tests::foreach_hostile!(is_tested);

/// A time that is soon over.
const SHORT: Duration = Duration::from_millis(300);
/// A time that no machine needs for what takes milliseconds.
const ENOUGH: Duration = Duration::from_secs(20);

/// A plugin to be spoiled.
fn raw() -> Wat {
    Wat::new(Told::new("raw"))
}

/// A call of it.
fn case(plugin: &Wat) -> Case {
    Case::new(Plugins::Component("raw".to_owned(), plugin.build()), "raw").timeout(ENOUGH)
}

/// A call that abuses what the host gives to every guest.
fn abuse(how: &str, amount: u64) -> Case {
    Case::new(HOSTILE_ABUSE, "abuse").input(json!({"how": how, "amount": amount})).timeout(ENOUGH)
}
