//! Components that are not plugins: another world, other types, unsatisfied imports.

use palisade_tests::Wat;
use palisade_tests::wat::{Told, binary};

use super::{load, refused, says, with_file};

fn raw() -> Wat {
    Wat::new(Told::new("raw"))
}

#[test]
fn component_without_exports_is_refused_with_the_world() {
    says(&refused(&binary("(component)")), &["palisade:tool@0.1.0", "wit/world.wit"]);
}

#[test]
fn another_contract_version_is_refused() {
    says(&refused(&raw().exporting("palisade:tool/tool@0.2.0").build()), &["palisade:tool@0.1.0"]);
}

#[test]
fn another_package_is_refused() {
    says(&refused(&raw().exporting("acme:tool/tool@0.1.0").build()), &["palisade:tool@0.1.0"]);
}

#[test]
fn functions_of_other_types_are_refused() {
    let wrong = r#"(component
        (core module $m (func (export "f") (result i32) (i32.const 1)))
        (core instance $i (instantiate $m))
        (func $f (result u32) (canon lift (core func $i "f")))
        (instance $t (export "definitions" (func $f)) (export "execute" (func $f)))
        (export "palisade:tool/tool@0.1.0" (instance $t)))"#;
    says(&refused(&binary(wrong)), &["palisade:tool@0.1.0", "type mismatch", "wit/world.wit"]);
}

#[test]
fn missing_function_is_refused() {
    let wrong = r#"(component (instance $t) (export "palisade:tool/tool@0.1.0" (instance $t)))"#;
    says(&refused(&binary(wrong)), &["palisade:tool@0.1.0"]);
}

#[test]
fn unknown_import_is_refused_by_name() {
    let plugin =
        raw().importing(r#"(import "acme:spy/camera@1.0.0" (instance (export "look" (func))))"#);
    says(&refused(&plugin.build()), &["acme:spy/camera@1.0.0", "only WASI 0.2 and palisade:tool"]);
}

#[test]
fn http_import_is_refused_with_advice() {
    let plugin = raw().importing(
        r#"(import "wasi:http/outgoing-handler@0.2.0" (instance (export "handle" (func))))"#,
    );
    says(
        &refused(&plugin.build()),
        &["wasi:http/outgoing-handler@0.2.0", "no network grant", "componentize-js"],
    );
}

#[test]
fn unknown_wasi_import_is_refused_with_the_known_versions() {
    let plugin =
        raw().importing(r#"(import "wasi:nn/inference@0.2.0" (instance (export "infer" (func))))"#);
    says(&refused(&plugin.build()), &["wasi:nn/inference@0.2.0", "no such WASI interface"]);
}

#[test]
fn import_of_a_later_wasi_0_2_version_loads() {
    let clock = r#"(import "wasi:clocks/monotonic-clock@0.2.6" (instance (export "now" (func (result u64)))))"#;
    assert_eq!(load(&with_file(&raw().importing(clock).build())).tools, ["raw", "good", "better"]);
}

#[test]
fn unknown_contract_import_is_refused() {
    let plugin = raw()
        .importing(r#"(import "palisade:tool/host@0.1.0" (instance (export "escape" (func))))"#);
    says(&refused(&plugin.build()), &["palisade:tool"]);
}

#[test]
fn bare_function_import_is_refused() {
    says(&refused(&raw().importing(r#"(import "escape" (func))"#).build()), &["`escape`"]);
}

#[test]
fn component_nesting_is_bounded() {
    let nested = |levels: usize| "(component ".repeat(levels) + &")".repeat(levels);
    says(&refused(&binary(&nested(17))), &["17 levels of components", "at most 16"]);
    says(&refused(&binary(&nested(16))), &["palisade:tool@0.1.0"]);
}

#[test]
fn multiplied_instances_are_refused_at_once() {
    let level = |n: usize| {
        let inner = n - 1;
        format!(
            "(component $c{n} (alias outer $root $c{inner} (component $i)) (instance (instantiate $i)) (instance (instantiate $i)))"
        )
    };
    let levels: String = (1..=30).map(level).collect();
    let bomb = format!(
        "(component $root (component $c0 (core module $m) (core instance (instantiate $m))) {levels} (instance (instantiate $c30)))"
    );
    let start = std::time::Instant::now();
    says(&refused(&binary(&bomb)), &["3221225471 instances", "at most 128"]);
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn disabled_feature_is_refused_by_name() {
    let with =
        |memory: &str| raw().importing(&format!("(core module $extra (memory {memory}))")).build();
    says(&refused(&with("i64 1")), &["memory64", "switched off"]);
    says(&refused(&with("1 1 shared")), &["threads", "switched off"]);
    assert_eq!(load(&with_file(&with("1"))).tools, ["raw", "good", "better"]);
}

/// Returns a component with nested instance types, `levels` deep, in three bytes each.
fn types_within(levels: usize) -> Vec<u8> {
    let contents = [vec![1], [0x42, 1, 1].repeat(levels), vec![0x42, 0]].concat();
    let size =
        (0..4).map(|n| (contents.len() >> (7 * n)) as u8 & 0x7f | if n < 3 { 0x80 } else { 0 });
    [b"\0asm\x0d\0\x01\0\x07".to_vec(), size.collect(), contents].concat()
}

/// A recursive parser would overflow the stack, which aborts the process.
#[test]
fn endless_types_reject_only_their_plugin() {
    says(&refused(&types_within(200_000)), &["levels of types", "at most 64"]);
    says(&refused(&types_within(10)), &["palisade:tool@0.1.0"]);
}
