//! Bytes that no tool would produce.

use super::super::{Cap, Foreign, cap};
use super::{PrecheckError, binary, check};
use std::time::{Duration, Instant};

/// Returns a component with one type section.
fn with_types(contents: &[u8]) -> Vec<u8> {
    let size = contents.len();
    let size: Vec<u8> =
        (0..5).map(|n| ((size >> (7 * n)) & 0x7f) as u8 | if n < 4 { 0x80 } else { 0 }).collect();
    [b"\0asm\x0d\0\x01\0".as_slice(), &[7], &size, contents].concat()
}

/// Returns an instance type that declares an instance type, and so on, `levels` deep.
fn instances_within(levels: usize) -> Vec<u8> {
    let mut contents = vec![1];
    for _ in 1..levels {
        contents.extend([0x42, 1, 1]);
    }
    contents.extend([0x42, 0]);
    with_types(&contents)
}

#[test]
fn instance_types_nest_to_the_cap() {
    assert_eq!(check(&instances_within(cap::TYPE_NESTING as usize)), Ok(()));
    let refused = check(&instances_within(cap::TYPE_NESTING as usize + 1));
    assert_eq!(refused, Err(PrecheckError::Cap { cap: Cap::TypeNesting, found: 65 }));
}

#[test]
fn million_nested_types_use_no_stack() {
    let bytes = instances_within(1_000_000);
    let start = Instant::now();
    assert!(matches!(check(&bytes), Err(PrecheckError::Cap { cap: Cap::TypeNesting, .. })));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn foreign_file_formats_are_recognised() {
    for (bytes, what) in [
        (b"".as_slice(), Foreign::Empty),
        (&[0; 4096], Foreign::Zeros),
        (b"\x7fELF\x02\x01\x01", Foreign::NativeCode),
        (b"\x1f\x8b\x08\0\0\0\0\0", Foreign::Packed("gzip")),
        (b"PK\x03\x04rest", Foreign::Packed("zip")),
        (b"  \n(component)", Foreign::Text),
        (b";; a comment\n(component)", Foreign::Text),
        (b"\0asm\x01\0\0\0", Foreign::Module),
        (b"\0asm\x0c\0\x01\0", Foreign::Version),
        (b"\0asm", Foreign::Other),
        (b"#!/bin/sh", Foreign::Other),
    ] {
        assert_eq!(check(bytes), Err(what.into()), "{bytes:?}");
    }
    assert_eq!(check(&binary("(component)")), Ok(()));
}

#[test]
fn oversized_component_is_refused_unread() {
    let mut bytes = binary("(component)");
    bytes.resize((64 << 20) + 1, 0);
    assert!(
        matches!(check(&bytes), Err(PrecheckError::TooLarge { size, .. }) if size == (64 << 20) + 1)
    );
}

#[test]
fn malformed_inner_module_is_refused() {
    let gzip = [b"\0asm\x0d\0\x01\0".as_slice(), &[1, 8], b"\x1f\x8b\x08\0\0\0\0\0"].concat();
    assert!(matches!(check(&gzip), Err(PrecheckError::Malformed { .. })));
}

#[test]
fn truncations_and_bit_flips_never_panic() {
    let whole = palisade_plugins::all().iter().min_by_key(|plugin| plugin.size).unwrap().bytes();
    let start = Instant::now();
    let mut passed = 0;
    for length in (0..whole.len()).step_by(64) {
        passed += usize::from(check(whole.get(..length).unwrap()).is_ok());
    }
    // A truncation between two sections leaves a component, and the engine reports what the
    // component lacks.
    assert!(passed * 50 < whole.len() / 64, "{passed}");
    let mut turned = whole.to_vec();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..2_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (random >> 20) as usize % whole.len();
        let bit = 1 << (random >> 61);
        *turned.get_mut(at).unwrap() ^= bit;
        let _ = check(&turned);
        *turned.get_mut(at).unwrap() ^= bit;
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
