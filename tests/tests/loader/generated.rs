//! Random, truncated and bit-flipped components from fixed seeds. Each is loaded or rejected
//! without a crash.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use palisade::sandbox::{Cache, Sandbox, Trust};
use palisade_tests::Wat;
use palisade_tests::dice::Dice;
use palisade_tests::wat::Told;

/// The time after which a test stops; it reports the remaining files as skipped.
const PATIENCE: Duration = Duration::from_secs(60);

/// The outcomes of many files.
#[derive(Debug, Default)]
struct Tally {
    loaded: AtomicUsize,
    refused: AtomicUsize,
}

/// Loads each file on one of two threads, and returns the numbers of loaded and rejected files.
pub(super) fn judge(
    name: &str,
    count: usize,
    file: impl Fn(usize) -> Vec<u8> + Sync,
) -> (usize, usize) {
    let sandbox = Sandbox::new(Cache::off()).unwrap();
    let (tally, next, start) = (Tally::default(), AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while start.elapsed() < PATIENCE {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= count {
                        return;
                    }
                    // A panic here is the failure that the test looks for.
                    let outcome = sandbox.prepare(&file(number), Trust::Untrusted);
                    let counted = if outcome.is_ok() { &tally.loaded } else { &tally.refused };
                    counted.fetch_add(1, Ordering::SeqCst);
                    if let Err(refused) = outcome {
                        let said = refused.to_string();
                        assert!(
                            !said.is_empty() && !said.contains('\n') && said.len() < 4096,
                            "{name} {number}: {said}"
                        );
                    }
                }
            });
        }
    });
    let (loaded, refused) = (tally.loaded.into_inner(), tally.refused.into_inner());
    if loaded + refused < count {
        palisade_tests::skip(&format!(
            "{name}: {} of {count}, since this machine is slow",
            count - loaded - refused
        ));
    }
    (loaded, refused)
}

#[test]
fn generated_components_are_refused_or_load() {
    let (_, refused) = judge("made up", 400, |seed| {
        let text = component(&mut Dice::new(seed as u64 + 1), 0);
        // Some texts do not assemble; the bare header is a valid component.
        wat::parse_str(&text).unwrap_or_else(|_| b"\0asm\x0d\0\x01\0".to_vec())
    });
    assert!(refused > 0);
}

#[test]
fn most_generated_components_can_be_assembled() {
    let made = (0..400)
        .filter(|seed| wat::parse_str(component(&mut Dice::new(seed + 1), 0)).is_ok())
        .count();
    assert!(made > 200, "{made} of 400");
}

#[test]
fn generated_modules_are_refused_as_modules() {
    let (loaded, _) = judge("modules", 100, |seed| {
        wat::parse_str(module(&mut Dice::new(seed as u64 + 1)))
            .unwrap_or_else(|_| b"\0asm\x01\0\0\0".to_vec())
    });
    assert_eq!(loaded, 0);
}

#[test]
fn shipped_plugin_truncated_every_64_bytes_is_refused() {
    let whole = palisade_plugins_smallest();
    let (loaded, _) = judge("cut", whole.len() / 64, |cut| whole[..cut * 64].to_vec());
    assert_eq!(loaded, 0);
}

#[test]
fn bit_flips_are_refused_or_load() {
    let whole = Wat::new(Told::new("raw")).build();
    let (loaded, refused) = judge("turned", 3_000, |seed| {
        let (mut dice, mut turned) = (Dice::new(seed as u64), whole.clone());
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(turned.len());
            turned[at] ^= 1 << dice.roll(8);
        }
        turned
    });
    assert!(loaded > 0 && refused > 0, "{loaded} {refused}");
}

/// Returns the smallest shipped plugin.
fn palisade_plugins_smallest() -> Vec<u8> {
    palisade_plugins::all().iter().min_by_key(|plugin| plugin.size).unwrap().bytes()
}

/// Returns a component of random parts. Indices are small, so that many of them are valid.
fn component(dice: &mut Dice, depth: usize) -> String {
    let mut text = "(component ".to_owned();
    for _ in 0..1 + dice.roll(8) {
        let index = dice.roll(4);
        let part = match dice.roll(12) {
            0 | 1 => module(dice).replacen("(module", "(core module", 1),
            2 if depth < 3 => component(dice, depth + 1),
            3 => format!("(core instance (instantiate {index}))"),
            4 => format!("(instance (instantiate {index}))"),
            5 | 6 => format!("(type {})", value_type(dice, 0)),
            7 => format!(
                "(type (func (param \"a\" {}) (result {})))",
                value_type(dice, 2),
                value_type(dice, 2)
            ),
            8 => format!(
                "(import \"i{}\" (instance (type {}) (export \"t\" (type (eq 0)))))",
                dice.roll(9),
                value_type(dice, 1)
            ),
            9 => format!("(export \"e{}\" (type {index}))", dice.roll(9)),
            10 => format!(
                "(alias core export {index} \"f\" (core func)) (core func (canon resource.drop {index}))"
            ),
            _ => format!(
                "(type (component (import \"x\" (func)) (export \"y\" (instance {index}))))"
            ),
        };
        let _ = write!(text, "{part} ");
    }
    text + ")"
}

fn value_type(dice: &mut Dice, depth: usize) -> String {
    let plain = ["bool", "u8", "s64", "f32", "char", "string"];
    if depth > 2 {
        return dice.pick(&plain).to_owned();
    }
    let deeper = depth + 1;
    match dice.roll(8) {
        0 => format!("(list {})", value_type(dice, deeper)),
        1 => format!("(option {})", value_type(dice, deeper)),
        2 => format!("(result {} (error {}))", value_type(dice, deeper), value_type(dice, deeper)),
        3 => format!("(tuple {} {})", value_type(dice, deeper), value_type(dice, deeper)),
        4 => format!(
            "(record (field \"a\" {}) (field \"b\" {}))",
            value_type(dice, deeper),
            value_type(dice, deeper)
        ),
        5 => format!("(variant (case \"a\" {}) (case \"b\"))", value_type(dice, deeper)),
        6 => "(flags \"a\" \"b\")".to_owned(),
        _ if depth == 0 => "(enum \"a\" \"b\")".to_owned(),
        _ => dice.pick(&plain).to_owned(),
    }
}

/// Returns a core module of random parts.
fn module(dice: &mut Dice) -> String {
    let memory = dice.pick(&[
        "(memory 1)",
        "(memory 0 2)",
        "(memory i64 1)",
        "(memory 1 1 shared)",
        "(memory 70000)",
    ]);
    let table = dice.pick(&[
        "(table 4 funcref)",
        "(table 1 externref)",
        "(table 0 funcref)",
        "(table 100000000 funcref)",
    ]);
    let operations = [
        "nop",
        "i32.const 7",
        "drop",
        "local.get 0",
        "i32.add",
        "i32.load",
        "unreachable",
        "memory.size",
        "br 0",
        "return",
        "i64.const -1",
        "f64.const nan",
        "call 0",
        "ref.null func",
        "i32.atomic.load",
        "memory.grow",
        "v128.const i64x2 1 2",
        "if nop end",
        "loop br 0 end",
        "block end",
        "ref.func 0",
        "table.get 0",
        "select",
        "local.set 1",
    ];
    let body: Vec<&str> = (0..dice.roll(12)).map(|_| dice.pick(&operations)).collect();
    let start = dice.pick(&[
        "",
        "(start 0)",
        "(data (i32.const 0) \"abc\")",
        "(elem (i32.const 0) func 0)",
        "(global i32 (i32.const 1))",
    ]);
    format!(
        "(module {memory} {table} (func (export \"f\") (param i32) (local i32) {}) {start})",
        body.join(" ")
    )
}
