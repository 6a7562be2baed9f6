//! Disabled features are rejected by name; related features are accepted.

use super::super::{Cap, Feature};
use super::{PrecheckError, binary, check, text};

#[track_caller]
fn off(feature: Feature, component: &str) {
    assert_eq!(text(component), Err(PrecheckError::Feature(feature)), "{component}");
}

fn module(fields: &str) -> String {
    format!("(component (core module {fields}))")
}

#[test]
fn disabled_core_features_are_refused_by_name() {
    for (feature, fields) in [
        (Feature::Memory64, "(memory i64 1)"),
        (Feature::Memory64, "(table i64 1 funcref)"),
        (Feature::Memory64, r#"(import "a" "b" (memory i64 1))"#),
        (Feature::Threads, "(memory 1 1 shared)"),
        (Feature::CustomPageSizes, "(memory 1 (pagesize 1))"),
        (Feature::Gc, "(type (struct))"),
        (Feature::Gc, "(type (array i32))"),
        (Feature::Gc, "(rec (type (func)) (type (func)))"),
        (Feature::Gc, "(type (sub (func)))"),
        (Feature::Gc, "(func (param anyref))"),
        (Feature::Gc, "(func (local i31ref))"),
        (Feature::FunctionReferences, "(type $t (func)) (func (param (ref $t)))"),
        (Feature::FunctionReferences, "(func (local (ref func)))"),
        (Feature::Exceptions, "(tag)"),
        (Feature::Exceptions, r#"(import "a" "b" (tag))"#),
        (Feature::Exceptions, "(func (param exnref))"),
        (Feature::StackSwitching, "(type $f (func)) (type (cont $f))"),
    ] {
        off(feature, &module(fields));
    }
}

#[test]
fn enabled_features_pass() {
    for fields in [
        "(memory 1)",
        "(memory 1 2)",
        "(table 1 funcref) (table 1 externref)",
        "(func (param i32 i64 f32 f64 v128 funcref externref) (local funcref))",
        "(type (func (param i32) (result i32 i32)))",
        r#"(import "a" "b" (memory 1)) (import "a" "c" (global (mut i32)))"#,
    ] {
        assert_eq!(text(&module(fields)), Ok(()), "{fields}");
    }
}

#[test]
fn disabled_component_features_are_refused_by_name() {
    for component in [
        "(component (type (stream u8)))",
        "(component (type (future)))",
        "(component (type (list error-context)))",
        "(component (type (func async)))",
        r#"(component (import "x" (instance (type $s (stream u8)) (export "s" (type (eq $s))))))"#,
        "(component (core func (canon subtask.drop)))",
        "(component (core func (canon backpressure.inc)))",
        r#"(component (import "f" (func $f)) (core func (canon lower (func $f) async)))"#,
    ] {
        off(Feature::ComponentModelAsync, component);
    }
    off(Feature::Gc, "(component (core type (module (type (struct)))))");
    off(Feature::Memory64, r#"(component (core type (module (import "a" "b" (memory i64 1)))))"#);
}

#[test]
fn resources_and_plain_functions_pass() {
    for component in [
        r#"(component (type $r (resource (rep i32))) (core func (canon resource.new $r)) (core func (canon resource.drop $r)))"#,
        r#"(component (import "f" (func $f)) (core func (canon lower (func $f))))"#,
        r#"(component (import "x" (instance (type $s (list u8)) (export "s" (type (eq $s))))))"#,
    ] {
        assert_eq!(text(component), Ok(()), "{component}");
    }
}

#[test]
fn every_feature_refusal_has_advice() {
    let refused = check(&binary(&module("(memory i64 1)"))).unwrap_err().to_string();
    assert_eq!(
        refused,
        "it uses 64-bit memory (memory64), which is switched off here; build it without"
    );
    assert_eq!(Cap::Locals.what(), "locals in one function");
}
