//! Tests that plugins are installed from files, web servers and registries only as they were
//! approved, that every attack on a source stops with its reason, and that a process may be killed
//! at any point.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "store/attacks.rs"]
mod attacks;
#[path = "store/kills.rs"]
mod kills;
#[path = "store/local.rs"]
mod local;
#[path = "store/oci.rs"]
mod oci;
#[path = "store/real.rs"]
mod real;
#[path = "store/registry.rs"]
mod registry;
#[path = "store/server.rs"]
mod server;
#[allow(dead_code, reason = "the suite `program` uses the rest")]
#[path = "program/terminal.rs"]
mod terminal;
#[path = "store/web.rs"]
mod web;

use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use std::fs;
use std::path::PathBuf;

/// Returns the bytes of a plugin with this tool of class read.
fn plugin(tool: &str) -> Vec<u8> {
    told(Told { class: 1, ..Told::new(tool) })
}

fn told(told: Told) -> Vec<u8> {
    Wat::new(told).build()
}

/// Returns a plugin whose tool is `look`, with a version in its custom section.
fn versioned(version: &str) -> Vec<u8> {
    let mut plugin = plugin("look");
    let content = [&[7][..], b"version", version.as_bytes()].concat();
    plugin.extend([0, u8::try_from(content.len()).unwrap()]);
    plugin.extend(content);
    plugin
}

/// Writes a file beside the workspace.
fn file(world: &World, name: &str, bytes: &[u8]) -> PathBuf {
    let path = world.outer().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Returns the program for a user without a configuration.
fn program<'w>(world: &'w World, words: &[&str]) -> Program<'w> {
    Program::new(world).args(words)
}

fn add<'w>(world: &'w World, source: &str) -> Program<'w> {
    program(world, &["add", source, "--yes"])
}

fn lock(world: &World) -> PathBuf {
    world.home().join(".config/palisade/palisade.lock")
}

fn lock_text(world: &World) -> String {
    fs::read_to_string(lock(world)).unwrap_or_default()
}

fn folder(world: &World) -> PathBuf {
    lock(world).with_extension("plugins")
}

/// Returns the names in the folder of installed plugins, sorted.
fn files(world: &World) -> Vec<String> {
    let names = fs::read_dir(folder(world)).map(|entries| {
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    });
    let mut names: Vec<String> = names.unwrap_or_default();
    names.sort();
    names
}

/// Checks that the tool `look` runs, without a word about anything.
#[track_caller]
fn looks(world: &World) {
    let ran = program(world, &["call", "look"]).run().exits_with(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("done", ""));
}

/// Returns the program for a user who trusts these keys for a source.
fn trust(world: &World, keys: &[&str], source: &str) {
    let mut text = String::new();
    for key in keys {
        text.push_str(&format!("[[plugins.keys]]\nkey = \"{key}\"\nsource = \"{source}\"\n"));
    }
    fs::create_dir_all(lock(world).parent().unwrap()).unwrap();
    fs::write(lock(world).with_file_name("palisade.toml"), text).unwrap();
}

/// Makes a pair of keys, and returns the file of the secret one and the public one.
fn keys(world: &World, name: &str) -> (PathBuf, String) {
    let secret = world.outer().join(format!("{name}.key"));
    let words = ["sign", "--generate", "--no-password", "--key"];
    let _ = Program::new(world).args(words).args([&secret]).run().exits_with(0);
    let public = fs::read_to_string(world.outer().join(format!("{name}.pub"))).unwrap();
    (secret, public.lines().nth(1).unwrap().to_owned())
}

/// Signs bytes, and returns the signature's text.
fn signature(world: &World, secret: &PathBuf, bytes: &[u8]) -> String {
    let path = file(world, "to-sign.wasm", bytes);
    let command = program(world, &["sign"]).args([&path]).args(["--key"]).args([secret]);
    let _ = command.run().exits_with(0);
    let beside = world.outer().join("to-sign.wasm.minisig");
    let text = fs::read_to_string(&beside).unwrap();
    fs::remove_file(beside).unwrap();
    text
}
