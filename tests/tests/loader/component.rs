//! Components that are no plugins: another world, other types, imports that nothing answers.

use palisade_tests::Wat;
use palisade_tests::wat::{Told, binary};

use super::{load, refused, says, with_file};

fn raw() -> Wat {
    Wat::new(Told::new("raw"))
}

#[test]
fn a_component_without_exports_is_refused_with_the_world_that_is_wanted() {
    says(&refused(&binary("(component)")), &["palisade:tool@0.1.0", "wit/world.wit"]);
}

#[test]
fn another_version_of_the_contract_is_refused() {
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
fn a_missing_function_is_refused() {
    let wrong = r#"(component (instance $t) (export "palisade:tool/tool@0.1.0" (instance $t)))"#;
    says(&refused(&binary(wrong)), &["palisade:tool@0.1.0"]);
}

#[test]
fn an_import_that_nobody_knows_is_refused_by_name() {
    let plugin = raw().importing(r#"(import "acme:spy/camera@1.0.0" (instance (export "look" (func))))"#);
    says(&refused(&plugin.build()), &["acme:spy/camera@1.0.0", "only WASI 0.2 and palisade:tool"]);
}

#[test]
fn an_import_of_http_is_refused_with_what_to_do() {
    let plugin = raw().importing(r#"(import "wasi:http/outgoing-handler@0.2.0" (instance (export "handle" (func))))"#);
    says(
        &refused(&plugin.build()),
        &["wasi:http/outgoing-handler@0.2.0", "no tool has network access yet", "componentize-js"],
    );
}

#[test]
fn an_import_of_another_wasi_is_refused_with_what_there_is() {
    let plugin = raw().importing(r#"(import "wasi:nn/inference@0.2.0" (instance (export "infer" (func))))"#);
    says(&refused(&plugin.build()), &["wasi:nn/inference@0.2.0", "no such WASI interface"]);
}

#[test]
fn an_import_of_a_later_wasi_0_2_is_answered() {
    let clock = r#"(import "wasi:clocks/monotonic-clock@0.2.6" (instance (export "now" (func (result u64)))))"#;
    assert_eq!(load(&with_file(&raw().importing(clock).build())).tools, ["raw", "good", "better"]);
}

#[test]
fn an_import_of_something_that_the_contract_does_not_have_is_refused() {
    let plugin = raw().importing(r#"(import "palisade:tool/host@0.1.0" (instance (export "escape" (func))))"#);
    says(&refused(&plugin.build()), &["palisade:tool"]);
}

#[test]
fn an_import_of_a_bare_function_is_refused() {
    says(&refused(&raw().importing(r#"(import "escape" (func))"#).build()), &["`escape`"]);
}

#[test]
fn a_component_that_carries_a_component_is_refused_or_bounded() {
    let nested = "(component".repeat(200) + &")".repeat(200);
    let reason = refused(&wat_or_empty(&nested));
    assert!(reason.starts_with("it "), "{reason}");
}

/// The text may be too deep for the assembler itself, which is as good a refusal.
fn wat_or_empty(text: &str) -> Vec<u8> {
    std::panic::catch_unwind(|| binary(text)).unwrap_or_default()
}
