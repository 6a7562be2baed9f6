//! Truncated, corrupted, padded or foreign files: each is loaded or rejected with a reason, without
//! a crash.

use palisade_tests::sample::{Group, leaves_out};
use std::fs;
use std::sync::Mutex;

use palisade_tests::dice::Dice;
use palisade_tests::guest::HOSTILE_ECHO;
use palisade_tests::oracle::{self, Oracle};
use palisade_tests::wat::{Told, binary};
use palisade_tests::{Stage, Wat};

use super::{ENOUGH, raw};

/// Loads each input by itself, within one oracle and with the cache off, and returns why it was
/// rejected.
fn each_loaded<B: AsRef<[u8]> + Sync>(make: impl FnOnce() -> Vec<B>) -> Vec<Option<String>> {
    let reasons = Mutex::new(Vec::new());
    let oracle = Oracle::new(|_, builder| builder);
    // In the turn of this oracle: another one would take their memory for a leak.
    let all = make();
    oracle.watch(std::time::Duration::from_secs(60), |_: &Stage| {
        let load = || {
            let sandbox = palisade::sandbox::Sandbox::new(palisade::sandbox::Cache::off()).unwrap();
            all.iter()
                .map(|bytes| {
                    sandbox
                        .prepare(bytes.as_ref(), palisade::sandbox::Trust::Untrusted)
                        .err()
                        .map(|refused| refused.to_string())
                })
                .collect()
        };
        *reasons.lock().unwrap() = std::thread::scope(|scope| scope.spawn(load).join()).unwrap();
        async {}
    });
    reasons.into_inner().unwrap()
}

#[track_caller]
fn all_refused(reasons: &[Option<String>]) {
    for (number, reason) in reasons.iter().enumerate() {
        let reason = reason.as_deref().unwrap_or("");
        assert!(
            !reason.is_empty() && reason.len() < 4096 && !reason.contains("panicked"),
            "{number}: {reason:?}"
        );
    }
}

#[test]
fn truncated_plugin_is_refused() {
    let whole = raw().build();
    all_refused(&each_loaded(|| {
        (0..whole.len()).step_by(16).map(|length| &whole[..length]).collect()
    }));
    let whole = fs::read(HOSTILE_ECHO.file()).unwrap();
    let lengths = || (0..whole.len()).step_by(whole.len() / 40);
    all_refused(&each_loaded(|| lengths().map(|length| &whole[..length]).collect()));
}

#[test]
fn corrupted_plugin_is_refused_or_loaded_and_never_crashes() {
    let whole = raw().build();
    let mut dice = Dice::new(0x9e37_79b9_7f4a_7c15);
    let spoiled = (0..600).map(|_| {
        let mut bytes = whole.clone();
        let (from, to) = (dice.roll(bytes.len()), dice.roll(bytes.len()));
        match dice.roll(4) {
            0 => bytes[from] ^= 1 << dice.roll(8),
            1 => bytes[from] = u8::try_from(dice.roll(256)).unwrap(),
            2 => drop(bytes.remove(from)),
            _ => bytes.swap(from, to),
        }
        bytes
    });
    let reasons = each_loaded(|| spoiled.collect());
    assert!(reasons.iter().filter(|reason| reason.is_some()).count() > 100);
    all_refused(&reasons.into_iter().filter(Option::is_some).collect::<Vec<_>>());
}

#[test]
fn foreign_file_is_refused_by_its_kind() {
    let deep_text = b"(component".to_vec();
    let all = vec![
        (Vec::new(), "empty"),
        (vec![0; 64 << 10], "nothing but zeros"),
        (vec![0xff; 64 << 10], "not WebAssembly"),
        (binary("(module)"), "core module"),
        (deep_text, "WebAssembly text"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00".to_vec(), "packed (gzip)"),
        (b"\x7fELF\x02\x01\x01\x00".to_vec(), "native code"),
        (b"MZ\x90\x00".to_vec(), "native code"),
        (b"\0asm\x01\0\0\0".to_vec(), "core module"),
        (b"\0asm\xff\xff\x01\0".to_vec(), "a version that is not supported"),
        (b"\0asm\x0d\0\x01\0".to_vec(), "it is not a palisade:tool@0.1.0 plugin"),
    ];
    let (bytes, expected): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    for (reason, expected) in each_loaded(|| bytes).into_iter().zip(expected) {
        let reason = reason.unwrap_or_default();
        assert!(reason.contains(expected), "{expected}: {reason}");
    }
}

/// Returns a component with a custom section of `length` bytes.
fn swollen(name: &str, length: usize) -> Vec<u8> {
    let mut bytes = raw().build();
    let mut body = leb(name.len());
    body.extend_from_slice(name.as_bytes());
    body.resize(body.len() + length, 0xff);
    bytes.push(0);
    bytes.extend(leb(body.len()));
    bytes.extend(body);
    bytes
}

fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or(0);
        value >>= 7;
        bytes.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}

#[test]
fn empty_sections_are_bounded_by_the_file_size() {
    let names = ["name", "component-name", ".debug_info", "producers"];
    let reasons = each_loaded(|| {
        names.iter().map(|name| swollen(name, 4 << 20)).chain([swollen("x", 70 << 20)]).collect()
    });
    assert_eq!(reasons[..4], [const { None::<String> }; 4]);
    assert!(reasons[4].as_ref().unwrap().contains("67108864"), "{reasons:?}");
}

#[test]
fn function_names_of_a_trap_are_not_disclosed() {
    let odd = "(func $f (export \"\\1b[2J-leaked-name\") unreachable)";
    let seen = oracle::around(&super::case(&raw().extra(odd).execute("(call $f) {done}")));
    assert_eq!(seen.kind(), "trap");
    assert!(!seen.result.to_string().contains("leaked-name"), "{:#}", seen.result);
}

#[test]
fn endless_types_are_refused() {
    let fields: String = (0..10_001).map(|n| format!("(field \"f{n}\" u8)")).collect();
    let wide = format!("(component (type (record {fields})))");
    let chain: String = (1..5000).map(|n| format!("(type $t{n} (list $t{}))", n - 1)).collect();
    let long = format!("(component (type $t0 u8) {chain})");
    let doubled: String =
        (1..60).map(|n| format!("(type $t{n} (tuple $t{0} $t{0}))", n - 1)).collect();
    let doubling = format!("(component (type $t0 u8) {doubled})");
    all_refused(&each_loaded(|| [wide, long, doubling].iter().map(|text| binary(text)).collect()));
}

#[test]
fn excessive_exports_are_refused_or_skipped() {
    if leaves_out(&[Group::E]) {
        return;
    }
    let exports: String = (0..20_000).map(|n| format!("(export \"e{n}\" (func $f))")).collect();
    let text = format!(
        "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) (func $f (canon lift (core func $i \"f\"))) {exports})"
    );
    all_refused(&each_loaded(|| vec![binary(&text)]));
}

#[test]
fn valid_plugin_is_loaded() {
    assert_eq!(
        each_loaded(|| vec![raw().build(), fs::read(HOSTILE_ECHO.file()).unwrap()]),
        [None, None]
    );
    let loaded = oracle::loading(ENOUGH, |world| {
        fs::write(world.plugins().join("fine.wasm"), Wat::new(Told::new("fine")).build()).unwrap();
    });
    assert_eq!(loaded.tools, ["fine"]);
}
