//! The form of the result: what is copied, and what is refused.

use super::super::SliceError;
use super::{Cow, SLICE, Sliced, binary, changed, engine, rewritten};
use wasmtime::{Config, Engine, Module};

fn is_left_alone(text: &str) -> bool {
    changed(&binary(text)).is_none()
}

#[test]
fn instruction_with_a_short_constant_length_is_left_alone() {
    let fill = |length: &str| {
        format!(
            "(module (memory 1) (func (param i32) (memory.fill (i32.const 0) (i32.const 0) {length})))"
        )
    };
    assert!(is_left_alone(&fill("(i32.const 16)")));
    assert!(is_left_alone(&fill(&format!("(i32.const {SLICE})"))));
    assert!(!is_left_alone(&fill(&format!("(i32.const {})", SLICE + 1))));
    assert!(!is_left_alone(&fill("(i32.const -1)")));
    assert!(!is_left_alone(&fill("(local.get 0)")));
    assert!(!is_left_alone(&fill("(i32.const 1) (i32.const 2) (drop)")));
}

#[test]
fn copy_of_a_small_or_active_segment_is_left_alone() {
    let init = |segment: &str| {
        format!(
            "(module (memory 1) {segment} (func (param i32)
               (memory.init 0 (i32.const 0) (i32.const 0) (local.get 0))))"
        )
    };
    let data = |length: u32| "x".repeat(length as usize);
    assert!(is_left_alone(&init(&format!("(data \"{}\")", data(SLICE)))));
    assert!(is_left_alone(&init(&format!("(data (i32.const 0) \"{}\")", data(SLICE + 1)))));
    assert!(!is_left_alone(&init(&format!("(data \"{}\")", data(SLICE + 1)))));
}

#[test]
fn component_without_long_instructions_is_not_copied() {
    let bytes = binary("(component (core module (memory 1) (func)) (component))");
    assert!(matches!(Sliced::new(&bytes).unwrap().0, Cow::Borrowed(same) if same == bytes));
}

#[test]
fn modules_at_any_depth_are_rewritten() {
    let inner = "(core module (memory 1) (func (export \"f\") (param i32)
        (memory.fill (i32.const 0) (i32.const 0) (local.get 0))) (@custom \"mark\" \"here\"))";
    let bytes = binary(&format!(
        "(component (core module) {inner} (component $c (component {inner}) (core module)) {inner})"
    ));
    let sliced = Sliced::new(&bytes).unwrap();
    let calls = sliced.as_bytes().windows(4).filter(|window| window == b"here").count();
    assert_eq!(calls, 3, "custom sections are copied");
    let engine = Engine::new(&Config::new()).unwrap();
    engine.precompile_component(sliced.as_bytes()).unwrap();
    // Nothing is left to be done.
    let fills = |bytes: &[u8]| bytes.windows(2).filter(|window| *window == [0xfc, 0x0b]).count();
    assert_eq!(fills(&bytes), 3);
    assert_eq!(fills(sliced.as_bytes()), 3 * 4);
}

#[test]
fn functions_with_imports_and_without_own_locals_stay_valid() {
    let bytes = binary(
        "(module (import \"a\" \"f\" (func $f (param i64))) (import \"a\" \"m\" (memory 1))
           (import \"a\" \"g\" (global i32))
           (func (export \"f\") (param i32) (call $f (i64.const 1))
             (block (result i32) (i32.const 4) (local.get 0) (local.get 0) memory.copy (i32.const 1)) drop)
           (func unreachable memory.fill)
           (func $last (param f64)))",
    );
    Module::validate(&engine(), &rewritten(&bytes)).unwrap();
}

#[test]
fn shipped_plugins_stay_valid() {
    let engine = Engine::new(&Config::new()).unwrap();
    let mut changed = 0;
    for plugin in palisade_plugins::all() {
        let bytes = plugin.bytes();
        let sliced = Sliced::new(&bytes).unwrap();
        changed += usize::from(matches!(sliced.0, Cow::Owned(_)));
        let growth = sliced.as_bytes().len() - bytes.len();
        assert!(growth < bytes.len() / 20, "{}: {growth}", plugin.name);
        if plugin.size < 1 << 20 {
            engine.precompile_component(sliced.as_bytes()).unwrap();
        }
    }
    assert!(changed > 0);
}

#[test]
fn result_is_deterministic() {
    let plugin = palisade_plugins::all().iter().min_by_key(|plugin| plugin.size).unwrap();
    let bytes = plugin.bytes();
    let (one, other) = (Sliced::new(&bytes).unwrap(), Sliced::new(&bytes).unwrap());
    assert_eq!(one.as_bytes(), other.as_bytes());
}

#[test]
fn other_formats_are_refused() {
    for bytes in [&b""[..], b"\0asm", b"(component)", &binary("(module)")] {
        assert!(matches!(Sliced::new(bytes).map(drop), Err(SliceError::Header)), "{bytes:?}");
    }
}
