//! Tests that a plugin of another person is offered only as it was approved: every attack on an
//! update stops with its reason, through the library and through the program.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "trust/attacks.rs"]
mod attacks;
#[path = "trust/library.rs"]
mod library;
#[path = "trust/places.rs"]
mod places;
#[path = "trust/program.rs"]
mod program;
#[path = "trust/revoked.rs"]
mod revoked;
#[path = "trust/shown.rs"]
mod shown;
#[path = "trust/signed.rs"]
mod signed;
#[allow(dead_code, reason = "the suite `program` uses the rest")]
#[path = "program/terminal.rs"]
mod terminal;

use palisade::plugins::Shipped;
use palisade::{CacheMode, Host};
use palisade_tests::guest::cache;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use palisade_trust::LockedPlugins;
use std::path::PathBuf;
use std::sync::Arc;

/// Words that no model may read before the plugin is approved.
const WORDS: &str = "Looks at things.";

/// Returns a plugin with this tool of class read.
fn plugin(tool: &str) -> Wat {
    Wat::new(Told { description: WORDS.to_owned(), class: 1, ..Told::new(tool) })
}

/// Returns the program for a user whose configuration names the plugin directory of the world.
fn program<'w>(world: &'w World, words: &[&str]) -> Program<'w> {
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("palisade.toml");
    if !file.exists() {
        std::fs::write(&file, configuration(world)).unwrap();
    }
    Program::new(world).args(words)
}

/// Returns a configuration with the plugin directory of the world.
fn configuration(world: &World) -> String {
    format!("[plugins]\ndirectories = [\"{}\"]\n", world.plugins().display())
}

/// Returns the lock of the user.
fn lock(world: &World) -> PathBuf {
    world.home().join(".config/palisade/palisade.lock")
}

/// Approves every plugin of the world, as a script does.
#[track_caller]
fn approve(world: &World) {
    let _ = program(world, &["approve", "--all", "--yes"]).run().exits_with(0);
}

/// Returns a host that obeys the lock of the user.
fn host(world: &World) -> Host {
    host_with(world, LockedPlugins::open(lock(world)).unwrap())
}

fn host_with(world: &World, locked: LockedPlugins) -> Host {
    Host::builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .plugins(world.plugins())
        .approvals(Arc::new(locked))
        .cache(CacheMode::Directory(cache()))
        .build()
        .unwrap()
}
