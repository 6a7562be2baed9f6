//! What wasm-smith makes up: valid modules and components of every kind that WebAssembly has, always the same ones. Each is refused or loads; none ends the
//! process, and none holds it for longer than its start may take.

use arbitrary::{Arbitrary, Unstructured};
use palisade_tests::Wat;
use palisade_tests::dice::Dice;
use palisade_tests::wat::Told;
use wasm_smith::{Component, Config, Module};

use super::generated::judge;

/// The bytes that one of them is made of.
const ENTROPY: usize = 4096;
/// What a module may do before it is ended by itself: one for each block and call.
const FUEL: u32 = 10_000;

#[test]
fn components_of_wasm_smith_are_refused_or_load() {
    // They lack what a plugin exports, so each of them has to be refused.
    let (loaded, refused) = judge("components of wasm-smith", 400, |seed| component(seed as u64));
    assert_eq!(loaded, 0);
    assert!(refused > 0);
}

#[test]
fn plugins_with_a_module_of_wasm_smith_are_refused_or_load() {
    let (loaded, refused) = judge("modules of wasm-smith", 300, |seed| plugin_with(&module(seed as u64, Kind::Usual)));
    assert!(loaded > 20 && refused > 20, "{loaded} loaded, {refused} were refused");
}

#[test]
fn plugins_with_a_module_that_uses_every_proposal_are_refused_or_load() {
    let (_, refused) = judge("any proposals", 300, |seed| plugin_with(&module(seed as u64, Kind::Any)));
    assert!(refused > 20, "{refused} were refused");
}

/// How much of WebAssembly a module uses.
#[derive(Clone, Copy)]
enum Kind {
    /// What a compiler makes: no proposals, and sizes that fit the limits more often than not.
    Usual,
    /// Everything that wasm-smith knows, switched on and off at random.
    Any,
}

fn entropy(seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed + 1);
    (0..ENTROPY).map(|_| dice.roll(256) as u8).collect()
}

fn component(seed: u64) -> Vec<u8> {
    let bytes = entropy(seed);
    let mut from = Unstructured::new(&bytes);
    let made = Component::new(Config::default(), &mut from);
    made.expect("there are enough bytes").to_bytes()
}

fn module(seed: u64, kind: Kind) -> Vec<u8> {
    let bytes = entropy(seed);
    let mut from = Unstructured::new(&bytes);
    let config = match kind {
        Kind::Usual => usual(),
        Kind::Any => Config { max_imports: 0, ..Config::arbitrary(&mut from).expect("there are enough bytes") },
    };
    let mut module = Module::new(config, &mut from).expect("there are enough bytes");
    // What runs for ever is the matter of tests of its own; here it would only take time.
    _ = module.ensure_termination(FUEL);
    module.to_bytes()
}

fn usual() -> Config {
    Config {
        max_imports: 0,
        max_memory32_bytes: 4 << 20,
        max_table_elements: 1000,
        custom_page_sizes_enabled: false,
        exceptions_enabled: false,
        gc_enabled: false,
        memory64_enabled: false,
        relaxed_simd_enabled: false,
        tail_call_enabled: false,
        threads_enabled: false,
        ..Config::default()
    }
}

/// A plugin without fault, but for this module at its end, which is instantiated after its own.
fn plugin_with(module: &[u8]) -> Vec<u8> {
    // The plugin's own module is number 0. The instance takes no arguments.
    let instances = [1, 0, 1, 0];
    [Wat::new(Told::new("whole")).build(), section(1, module), section(2, &instances)].concat()
}

/// A section of a component: its number, its length, itself.
fn section(number: u8, body: &[u8]) -> Vec<u8> {
    let (mut section, mut rest) = (vec![number], body.len());
    while rest >= 0x80 {
        section.push(rest as u8 & 0x7f | 0x80);
        rest >>= 7;
    }
    section.push(rest as u8);
    [&section, body].concat()
}
