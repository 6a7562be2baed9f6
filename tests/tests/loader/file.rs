//! Files that are not components.

use std::fs;

use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::wat::binary;

use super::{refused, says};

#[test]
fn empty_file_is_refused() {
    says(&refused(b""), &["it is empty"]);
}

#[test]
fn text_is_refused() {
    says(&refused(b"#!/bin/sh\necho hello\n"), &["it is not WebAssembly"]);
}

#[test]
fn webassembly_text_is_refused_with_advice() {
    says(&refused(b"  (component)"), &["WebAssembly text", "binary form"]);
}

#[test]
fn core_module_is_refused_with_advice() {
    says(
        &refused(&binary("(module)")),
        &["core module", "wasm32-wasip2", "wasm-tools component new"],
    );
}

#[test]
fn packed_file_is_refused_with_advice() {
    says(&refused(b"\x1f\x8b\x08\0\0\0\0\0"), &["gzip", "unpack it"]);
}

#[test]
fn file_of_zeros_is_refused() {
    says(&refused(&[0; 64 << 10]), &["nothing but zeros"]);
}

#[test]
fn native_code_is_refused() {
    says(&refused(b"\x7fELF\x02\x01\x01"), &["native code", "never loaded"]);
}

#[test]
fn truncated_component_is_refused() {
    let whole = fs::read(LOADER_GOOD.file()).unwrap();
    for length in [1, 4, 7, 8, 9, 100, whole.len() / 2, whole.len() - 1] {
        let reason = refused(&whole[..length]);
        assert!(reason.starts_with("it "), "{length}: {reason}");
    }
}

#[test]
fn trailing_garbage_is_refused() {
    let mut whole = fs::read(LOADER_GOOD.file()).unwrap();
    whole.extend_from_slice(b"rubbish");
    says(&refused(&whole), &["it is not a valid component"]);
}

#[test]
fn bit_flip_is_refused_or_loads_and_never_crashes() {
    let whole = fs::read(LOADER_GOOD.file()).unwrap();
    for part in 1..8 {
        let mut turned = whole.clone();
        turned[whole.len() * part / 8] ^= 0x10;
        let loaded = super::load(&super::with_file(&turned));
        assert!(loaded.tools.contains(&"good".to_owned()), "{part}");
    }
}

#[test]
fn oversized_file_is_refused_unread() {
    let world = super::with_good();
    let file = fs::File::create(world.plugins().join("a-bad.wasm")).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    let loaded = super::load(&world);
    says(loaded.reason(), &["67108865 bytes", "67108864 are accepted"]);
    assert_eq!(loaded.tools, ["good", "better"]);
}
