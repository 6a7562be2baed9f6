//! Bytes that no tool would produce.

use super::super::SliceError;
use super::{Sliced, USUAL, binary, engine, module};
use std::time::{Duration, Instant};
use wasmtime::Module;

/// Returns a module of these sections, each below 128 bytes.
fn of_sections(sections: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    for (id, content) in sections {
        bytes.extend([*id, content.len() as u8]);
        bytes.extend(*content);
    }
    bytes
}

/// A type section with one function type without parameters, and the index of it for one function.
const TYPES: (u8, &[u8]) = (1, &[1, 0x60, 0, 0]);
const FUNCTIONS: (u8, &[u8]) = (3, &[1, 0]);
/// A memory of one page.
const MEMORY: (u8, &[u8]) = (5, &[1, 0, 1]);
/// The code of a function that fills, in unreachable code.
const FILLING: (u8, &[u8]) = (10, &[1, 6, 0, 0x00, 0xfc, 0x0b, 0, 0x0b]);

fn refused(sections: &[(u8, &[u8])]) -> SliceError {
    module::rewritten(&of_sections(sections), USUAL).unwrap_err()
}

#[test]
fn whole_module_is_rewritten() {
    let bytes = of_sections(&[TYPES, FUNCTIONS, MEMORY, FILLING]);
    Module::validate(&engine(), &bytes).unwrap();
    let rewritten = super::rewritten(&bytes);
    Module::validate(&engine(), &rewritten).unwrap();
}

#[test]
fn module_without_the_sections_of_its_code_is_refused() {
    assert!(matches!(refused(&[FILLING]), SliceError::NoType));
    assert!(matches!(refused(&[FUNCTIONS, MEMORY, FILLING]), SliceError::NoType));
    assert!(matches!(refused(&[TYPES, MEMORY, FILLING]), SliceError::NoType));
    assert!(matches!(refused(&[TYPES, (3, &[1, 1]), MEMORY, FILLING]), SliceError::NoType));
    let second: (u8, &[u8]) = (10, &[2, 2, 0, 0x0b, 2, 0, 0x0b]);
    assert!(matches!(refused(&[TYPES, FUNCTIONS, MEMORY, second]), SliceError::NoType));
}

#[test]
fn repeated_section_is_refused() {
    for twice in [TYPES, FUNCTIONS, FILLING] {
        let sections = [TYPES, FUNCTIONS, MEMORY, FILLING, twice];
        assert!(matches!(refused(&sections), SliceError::TwoSections));
    }
}

#[test]
fn malformed_body_is_refused() {
    for body in [
        &[0xff][..],
        &[1],
        &[1, 9, 0],
        &[1, 2, 0, 0xff],
        &[1, 2, 0, 0xfc],
        &[1, 7, 0, 0x00, 0xfc, 0x0b, 0, 0x0b, 0x0b],
    ] {
        let sections = [TYPES, FUNCTIONS, MEMORY, (10, body)];
        assert!(matches!(refused(&sections), SliceError::Malformed(_)), "{body:?}");
    }
}

#[test]
fn sections_after_the_end_are_refused() {
    let mut bytes = of_sections(&[TYPES]);
    bytes.extend([1, 0x80]);
    assert!(matches!(module::rewritten(&bytes, USUAL).unwrap_err(), SliceError::Malformed(_)));
    bytes.pop();
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert!(matches!(module::rewritten(&bytes, USUAL).unwrap_err(), SliceError::Malformed(_)));
}

#[test]
fn combinations_of_memories_and_segments_are_bounded() {
    let module = |pairs: usize| {
        let memories: String =
            (0..40).map(|at| format!("(import \"a\" \"{at}\" (memory 0))")).collect();
        let copies: String = (0..pairs)
            .map(|pair| format!("unreachable memory.copy {} {} ", pair / 40, pair % 40))
            .collect();
        binary(&format!("(module {memories} (func {copies}))"))
    };
    assert!(super::changed(&module(1_024)).is_some());
    let refused = module::rewritten(&module(1_025), USUAL).unwrap_err();
    assert!(matches!(refused, SliceError::SlowPaths { max: 1_024 }), "{refused}");
}

#[test]
fn growth_and_time_are_linear() {
    // The shortest instructions that are valid: the code is unreachable.
    let fills = "memory.fill ".repeat(300_000);
    let bytes = binary(&format!(
        "(component (core module (memory 1) (func unreachable {fills} unreachable)))"
    ));
    let start = Instant::now();
    let sliced = Sliced::new(&bytes).unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(sliced.as_bytes().len() < bytes.len() * 8, "{}", sliced.as_bytes().len());
}

#[test]
fn truncations_and_bit_flips_never_panic() {
    let whole = palisade_plugins::all().iter().min_by_key(|plugin| plugin.size).unwrap().bytes();
    for length in (0..whole.len()).step_by(997) {
        let _ = Sliced::new(whole.get(..length).unwrap());
    }
    let mut turned = whole.to_vec();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..1_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (random >> 20) as usize % whole.len();
        let bit = 1 << (random >> 61);
        *turned.get_mut(at).unwrap() ^= bit;
        let _ = Sliced::new(&turned);
        *turned.get_mut(at).unwrap() ^= bit;
    }
}

#[test]
fn random_bodies_are_judged_like_the_originals() {
    // Instructions around one that is rewritten. Most combinations are invalid.
    let parts: [&[u8]; 12] = [
        &[0x41, 0],
        &[0x42, 0],
        &[0x00],
        &[0x1a],
        &[0x02, 0x40],
        &[0x03, 0x7f],
        &[0x0b],
        &[0x0c, 0],
        &[0xfc, 0x0b, 0],
        &[0xfc, 0x0a, 0, 0],
        &[0x20, 0],
        &[0x0f],
    ];
    let engine = engine();
    let mut random = 7_u64;
    let mut valid = 0;
    for _ in 0..20_000 {
        let mut body = vec![0];
        for _ in 0..10 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            body.extend(parts[(random >> 33) as usize % parts.len()]);
        }
        body.push(0x0b);
        let code = [&[1, body.len() as u8][..], &body].concat();
        let bytes = of_sections(&[(1, &[1, 0x60, 1, 0x7f, 0]), FUNCTIONS, MEMORY, (10, &code)]);
        let is_valid = Module::validate(&engine, &bytes).is_ok();
        let rewritten = module::rewritten(&bytes, USUAL);
        let stays_valid = match &rewritten {
            Ok(Some(rewritten)) => Module::validate(&engine, rewritten).is_ok(),
            Ok(None) => is_valid,
            Err(_) => false,
        };
        assert_eq!(is_valid, stays_valid, "{body:x?}: {rewritten:x?}");
        valid += usize::from(is_valid && matches!(rewritten, Ok(Some(_))));
    }
    assert!(valid > 100, "{valid}");
}
