//! The rewritten code runs like the original, and checks the epoch for each slice.

use super::{Running, SLICE, binary, engine, rewritten};
use palisade_tests::dice::Dice;
use wasmtime::{Instance, Memory, MemoryType, Module, Store};

/// The size of the memories, in pages, and of the data segment, in bytes.
const PAGES: u32 = 40;
const SIZE: u32 = PAGES << 16;
const SEGMENT: usize = 600 << 10;
/// A function for each instruction. The first one is imported in effect: indices must not change.
const FUNCTIONS: [&str; 6] = ["fill", "copy", "across", "init", "drop", "indirect"];

fn module() -> Vec<u8> {
    let segment: String = (0..SEGMENT).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    binary(&format!(
        r#"(module
          (type $other (func (result i64)))
          (memory $first (export "first") {PAGES}) (memory $second (export "second") {PAGES})
          (table funcref (elem $fill $copy))
          (func $number (type $other) (i64.const 7))
          (func $fill (export "fill") (param i32 i32 i32) (local i64 f32)
            (memory.fill $first (local.get 0) (local.get 1) (local.get 2)))
          (func $copy (export "copy") (param i32 i32 i32)
            (memory.copy $first $first (local.get 0) (local.get 1) (local.get 2)))
          (func (export "across") (param i32 i32 i32) (local i32)
            (memory.copy $second $first (local.get 0) (local.get 1) (local.get 2))
            (local.set 3 (i32.const 1))
            (memory.copy $first $second (local.get 1) (local.get 0) (local.get 2)))
          (func (export "init") (param i32 i32 i32)
            (memory.init $first $large (local.get 0) (local.get 1) (local.get 2)))
          (func (export "drop") (param i32 i32 i32)
            (data.drop $large)
            (memory.init $first $large (local.get 0) (local.get 1) (local.get 2)))
          (func (export "indirect") (param i32 i32 i32)
            (drop (call $number))
            (call_indirect (param i32 i32 i32) (local.get 0) (local.get 1) (local.get 2)
              (i32.and (local.get 1) (i32.const 1))))
          (data $large "{segment}") (data (i32.const 70000) "active"))"#
    ))
}

/// Returns an operand: near a bound of a memory or slice, or anywhere.
fn operand(dice: &mut Dice) -> u32 {
    let near = dice.roll(5) as u32;
    let close_to = |number: u32| number.wrapping_add(near).wrapping_sub(2);
    match dice.roll(9) {
        0 => near,
        1 => close_to(SIZE),
        2 => close_to(SIZE - SLICE),
        3 => close_to(SLICE),
        4 => close_to(2 * SLICE),
        5 => u32::MAX - near,
        6 => close_to(SEGMENT as u32),
        _ => dice.roll(SIZE as usize) as u32,
    }
}

#[test]
fn rewritten_module_runs_like_the_original() {
    let engine = engine();
    let original = module();
    let mut one = Running::new(&engine, &original);
    let mut other = Running::new(&engine, &rewritten(&original));
    let mut dice = Dice::new(1);
    let mut returned = 0;
    for step in 0..600 {
        let name = FUNCTIONS[dice.roll(4) + usize::from(step % 50 == 0)];
        let name = if step > 560 { "drop" } else { name };
        let operands = [operand(&mut dice), operand(&mut dice), operand(&mut dice)];
        let same = one.call(name, operands);
        assert_eq!(same, other.call(name, operands), "{name} {operands:?}");
        returned += usize::from(same);
        for memory in ["first", "second"] {
            assert!(one.memory(memory) == other.memory(memory), "{name} {operands:?}: {memory}");
        }
    }
    assert!((100..500).contains(&returned), "{returned} calls returned");
}

#[test]
fn overlapping_copies_longer_than_a_slice_keep_their_source() {
    let engine = engine();
    let mut copying = Running::new(&engine, &rewritten(&module()));
    let length = SLICE * 3 + 5;
    for (to, from) in [(0, 1), (1, 0), (0, SLICE), (SLICE, 0), (SLICE + 1, 2), (9, 9)] {
        assert!(copying.call("init", [from, 0, SEGMENT as u32]));
        let expected = copying.memory("first")[from as usize..][..length as usize].to_vec();
        assert!(copying.call("copy", [to, from, length]), "{to} {from}");
        assert!(copying.memory("first")[to as usize..][..length as usize] == expected);
    }
}

/// Two imports can be one memory, so that the indices do not tell whether a copy overlaps.
#[test]
fn memory_under_two_indices_is_copied_like_one() {
    let engine = engine();
    let original = binary(&format!(
        r#"(module (import "m" "x" (memory $x {PAGES})) (import "m" "y" (memory $y {PAGES}))
             (func (export "copy") (param i32 i32 i32)
               (memory.copy $y $x (local.get 0) (local.get 1) (local.get 2))))"#
    ));
    let copied = |bytes: &[u8], to: i32, from: i32| {
        let mut store = Store::new(&engine, 0);
        store.set_epoch_deadline(u64::MAX / 2);
        let memory = Memory::new(&mut store, MemoryType::new(PAGES, None)).unwrap();
        let data = memory.data_mut(&mut store);
        data.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
        let module = Module::from_binary(&engine, bytes).unwrap();
        let imports = [memory.into(), memory.into()];
        let instance = Instance::new(&mut store, &module, &imports).unwrap();
        let copy = instance.get_typed_func::<(i32, i32, i32), ()>(&mut store, "copy").unwrap();
        copy.call(&mut store, (to, from, 1_000_000)).unwrap();
        memory.data(&store).to_vec()
    };
    for (to, from) in [(1_000, 0), (0, 1_000)] {
        assert!(copied(&original, to, from) == copied(&rewritten(&original), to, from));
    }
}

#[test]
fn indices_and_locals_are_unchanged() {
    let engine = engine();
    let mut running = Running::new(&engine, &rewritten(&module()));
    assert!(running.call("indirect", [3, 2, SLICE * 2]));
    assert_eq!(running.memory("first")[..5], [0, 0, 0, 2, 2]);
    assert!(running.call("indirect", [0, 3, SLICE * 2]));
    assert_eq!(running.memory("first")[..5], [2; 5]);
}

#[test]
fn epoch_is_checked_once_per_slice() {
    let engine = engine();
    let mut original = Running::new(&engine, &module());
    let mut sliced = Running::new(&engine, &rewritten(&module()));
    let slices = u64::from(SIZE / SLICE);
    for (name, operands, least) in [
        ("fill", [0, 1, SIZE], slices),
        ("copy", [0, 1, SIZE - 1], slices),
        ("copy", [1, 0, SIZE - 1], slices),
        ("across", [0, 0, SIZE], 2 * slices),
        ("init", [0, 0, SEGMENT as u32], 3),
    ] {
        let _ = (original.checks(), sliced.checks());
        assert!(original.call(name, operands) && sliced.call(name, operands));
        assert!(original.checks() < slices / 2, "{name}");
        let checks = sliced.checks();
        assert!(checks >= least, "{name}: {checks} checks");
    }
}

#[test]
fn short_instruction_takes_no_slow_path() {
    let engine = engine();
    let mut original = Running::new(&engine, &module());
    let mut sliced = Running::new(&engine, &rewritten(&module()));
    for name in ["fill", "copy", "init"] {
        let _ = (original.checks(), sliced.checks());
        assert!(original.call(name, [5, 6, SLICE]) && sliced.call(name, [5, 6, SLICE]));
        assert_eq!(original.checks(), sliced.checks(), "{name}");
    }
}

/// Returns a module whose function calls itself, and then runs this code.
fn recursion(then: &str, code: &str) -> Vec<u8> {
    recursion_with("", then, code)
}

/// The same in a module with more fields.
fn recursion_with(fields: &str, then: &str, code: &str) -> Vec<u8> {
    binary(&format!(
        "(module {fields} (memory 1) (table 1 funcref) (global $g (mut i32) (i32.const 0))
         (func $f (export \"f\") (param i32 i32 i32) (if (local.get 0) (then {then})) {code}))"
    ))
}

const AGAIN: &str = "(call $f (i32.sub (local.get 0) (i32.const 1)) (i32.const 0) (i32.const 0))";
/// Two operators, after which the global is not zero.
const STRAIGHT: &str = "(global.set $g (i32.const 1))";

#[test]
fn epoch_is_checked_in_the_straight_code_behind_a_call() {
    let straight = STRAIGHT.repeat(500);
    let mut running = Running::new(&engine(), &rewritten(&recursion(AGAIN, &straight)));
    assert!(running.call("f", [99, 0, 0]));
    // At the head of each call, and once in its 1,000 operators.
    assert_eq!(running.checks(), 100 * (1 + 1));
    let alone = recursion("nop", &straight);
    assert!(super::changed(&alone).is_none(), "it calls no function");
}

#[test]
fn epoch_is_checked_more_often_in_code_that_the_engine_carries_out() {
    let code = "(elem.drop $e) (data.drop $d)".repeat(64);
    let module = recursion_with("(elem $e func) (data $d \"\")", AGAIN, &code);
    let mut running = Running::new(&engine(), &rewritten(&module));
    assert!(running.call("f", [99, 0, 0]));
    // One check for 32 of these operators, and one at the head of each call.
    let checks = running.checks();
    assert!((100 * (1 + 3)..=100 * (1 + 5)).contains(&checks), "{checks}");
}

#[test]
fn epoch_is_checked_behind_each_growth_and_each_change_of_many_elements() {
    for long in [
        "(drop (memory.grow (i32.const 0)))",
        "(drop (table.grow (ref.null func) (i32.const 0)))",
        "(table.fill (i32.const 0) (ref.null func) (i32.const 1))",
        "(table.copy (i32.const 0) (i32.const 0) (i32.const 1))",
        "(table.init $e (i32.const 0) (i32.const 0) (i32.const 0))",
    ] {
        let module = recursion_with("(elem $e func)", AGAIN, &long.repeat(3));
        let mut running = Running::new(&engine(), &rewritten(&module));
        // The engine checks when it creates the instance.
        let _ = running.checks();
        assert!(running.call("f", [99, 0, 0]));
        assert_eq!(running.checks(), 100 * (1 + 3), "{long}");
    }
}

#[test]
fn no_branch_leads_around_the_checks() {
    for detour in [
        "(if (global.get $g) (then) (else (loop)))",
        "(if (i32.eqz (global.get $g)) (then (loop)))",
        "(block (br 0) (loop))",
        "(block (br_table 0 0 (global.get $g)) (loop))",
        "(block $out (br_if $out (global.get $g)) (loop))",
    ] {
        let nops = "nop ".repeat(200);
        for code in [detour.to_owned(), detour.replace("(loop)", &nops)] {
            let code = format!("{}{code}", STRAIGHT.repeat(120)).repeat(8);
            let mut running = Running::new(&engine(), &rewritten(&recursion(AGAIN, &code)));
            assert!(running.call("f", [9, 0, 0]));
            // 1,920 operators run beside the detours.
            assert!(running.checks() >= 10 * (1 + 3), "{detour}");
        }
    }
}
