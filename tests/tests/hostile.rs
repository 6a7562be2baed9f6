//! Tests hostile plugins, inputs and workspaces: the host survives, reports each outcome once and
//! on time, and keeps nothing.
//!
//! Every case of the catalogue (`catalogue.md`) runs under the oracle of the harness, with a
//! legitimate twin. After each call the oracle checks that the process lives and no thread has
//! panicked, that the call had one terminal event and a valid result in time, that files beside the
//! workspace are untouched and unread, that threads, descriptors and memory are released, and that
//! the next call of a benign plugin works.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "hostile/address_space.rs"]
mod address_space;
#[path = "hostile/answer_memory.rs"]
mod answer_memory;
#[path = "hostile/cancellation.rs"]
mod cancellation;
#[path = "hostile/concurrent.rs"]
mod concurrent;
#[path = "hostile/cpu.rs"]
mod cpu;
#[path = "hostile/directory.rs"]
mod directory;
#[path = "hostile/escape.rs"]
mod escape;
#[path = "hostile/expanding.rs"]
mod expanding;
#[path = "hostile/host_memory.rs"]
mod host_memory;
#[path = "hostile/http_memory.rs"]
mod http_memory;
#[path = "hostile/malformed.rs"]
mod malformed;
#[path = "hostile/memory.rs"]
mod memory;
#[path = "hostile/memory_account.rs"]
mod memory_account;
#[path = "hostile/messages.rs"]
mod messages;
#[path = "hostile/output.rs"]
mod output;
#[path = "hostile/schemas.rs"]
mod schemas;
#[path = "hostile/side_effects.rs"]
mod side_effects;
#[path = "hostile/slow_checks.rs"]
mod slow_checks;
#[path = "hostile/soak.rs"]
mod soak;
#[path = "hostile/special.rs"]
mod special;
#[path = "hostile/time.rs"]
mod time;
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

/// A timeout that expires soon.
const SHORT: Duration = Duration::from_millis(300);
/// A timeout that no slow machine reaches for work of milliseconds.
const ENOUGH: Duration = Duration::from_secs(20);

/// Returns a plugin for a test to modify.
fn raw() -> Wat {
    Wat::new(Told::new("raw"))
}

/// Returns a call of this plugin.
fn case(plugin: &Wat) -> Case {
    Case::new(Plugins::Component("raw".to_owned(), plugin.build()), "raw").timeout(ENOUGH)
}

/// Returns a call of the guest that abuses the interfaces that every guest gets.
fn abuse(how: &str, amount: u64) -> Case {
    Case::new(HOSTILE_ABUSE, "abuse").input(json!({"how": how, "amount": amount})).timeout(ENOUGH)
}
