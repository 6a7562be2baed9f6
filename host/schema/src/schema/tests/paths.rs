//! Tests of the marking of workspace paths.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::super::{PathAccess, Schema, SchemaError};
use super::{refusal, with_x};
use crate::budget::{Budget, Exhausted, Unlimited};

fn path() -> Value {
    json!({"type": "string", "format": "workspace-path"})
}

fn found(schema: Value, input: &Value) -> Vec<String> {
    let schema = Schema::output(schema).unwrap();
    let mut found = Vec::new();
    let mut values = Vec::new();
    let note = |pointer: &str, value: &str| {
        found.push(format!("{pointer}={value}"));
        values.push(value.to_owned());
        Ok::<_, Exhausted>(value.to_owned())
    };
    schema.map_workspace_paths(&mut input.clone(), &Unlimited, note).unwrap();
    let mut seen = Vec::new();
    let see = |value: &str, _| {
        seen.push(value.to_owned());
        Ok::<_, Exhausted>(())
    };
    schema.each_workspace_path(input, &Unlimited, see).unwrap();
    assert_eq!(seen, values);
    found
}

/// A budget that counts its checks, and expires at the last one.
struct Questions(AtomicU64, u64);

impl Budget for Questions {
    fn reserve(&self, _: u64) -> Result<(), Exhausted> {
        Ok(())
    }

    fn release(&self, _: u64) {}

    fn check(&self) -> Result<(), Exhausted> {
        if self.0.fetch_add(1, Ordering::Relaxed) < self.1 {
            Ok(())
        } else {
            Err(Exhausted::Deadline)
        }
    }
}

#[test]
fn path_search_is_charged_and_ends_with_its_budget() {
    let many: Map<String, Value> = (0..1990).map(|at| (format!("p{at:04}"), path())).collect();
    let schema = Schema::output(json!({"items": {"properties": many}})).unwrap();
    let mut pathless: Value = (0..100_000).map(|_| json!({})).collect();
    let free = Questions(AtomicU64::new(0), u64::MAX);
    schema.each_workspace_path(&pathless, &free, |_, _| Ok::<_, Exhausted>(())).unwrap();
    let asked = free.0.into_inner();
    // Some 5 ms, the same as for a hundred thousand values without properties.
    assert!((100..1000).contains(&asked), "{asked}");
    for last in [0, 1, asked - 1] {
        let budget = || Questions(AtomicU64::new(0), last);
        let listed =
            schema.each_workspace_path(&pathless, &budget(), |_, _| Ok::<_, Exhausted>(()));
        assert_eq!(listed, Err(Exhausted::Deadline));
        let mapped = schema.map_workspace_paths(&mut pathless, &budget(), |_, path| {
            Ok::<_, Exhausted>(path.to_owned())
        });
        assert_eq!(mapped, Err(Exhausted::Deadline));
    }
}

#[test]
fn paths_are_found_in_properties_items_and_references() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": path(), "many": {"items": path()}, "by/ref": {"$ref": "#/$defs/file"}, "note": {"type": "string"},
            "edits": {"items": {"properties": {"in": {"$ref": "#/$defs/file"}}}},
        },
        "$defs": {"file": path()},
    });
    let input = json!({"path": "a", "many": ["b", "c"], "by/ref": "d", "note": "no", "edits": [{"in": "e"}, {}, 3], "other": "no"});
    assert_eq!(
        found(schema, &input),
        ["/by~1ref=d", "/edits/0/in=e", "/many/0=b", "/many/1=c", "/path=a"]
    );
}

#[test]
fn recursive_schema_finds_each_path_once() {
    let schema = json!({
        "properties": {"at": path(), "next": {"$ref": "#"}}, "$ref": "#/$defs/twin",
        "$defs": {"twin": {"properties": {"at": path(), "next": {"$ref": "#"}}}},
    });
    let input = (0..60).fold(json!({"at": "end"}), |next, _| json!({"at": "x", "next": next}));
    assert_eq!(found(schema, &input).len(), 61);
}

#[test]
fn items_after_a_tuple_start_at_its_end() {
    let schema = json!({"prefixItems": [true, true], "items": path()});
    assert_eq!(found(schema, &json!(["a", "b", "c"])), ["/2=c"]);
}

#[test]
fn non_string_is_not_a_path() {
    let schema =
        json!({"properties": {"x": {"type": ["string", "null"], "format": "workspace-path"}}});
    assert!(found(schema.clone(), &json!({"x": null})).is_empty());
    assert!(found(schema, &json!({"x": ["a"]})).is_empty());
}

#[test]
fn path_elsewhere_is_refused_with_place_and_keyword() {
    for (schema, pointer, keyword) in [
        (json!({"anyOf": [path(), {"type": "null"}]}), "/anyOf/0", "anyOf"),
        (json!({"allOf": [with_x(path())]}), "/allOf/0/properties/x", "allOf"),
        (json!({"additionalProperties": path()}), "/additionalProperties", "additionalProperties"),
        (
            json!({"patternProperties": {"^a": path()}}),
            "/patternProperties/^a",
            "patternProperties",
        ),
        (json!({"prefixItems": [path()]}), "/prefixItems/0", "prefixItems"),
        (json!({"contains": path()}), "/contains", "contains"),
        (json!({"if": with_x(path())}), "/if/properties/x", "if"),
        (
            json!({"dependentSchemas": {"a": with_x(path())}}),
            "/dependentSchemas/a/properties/x",
            "dependentSchemas",
        ),
        (json!({"propertyNames": path()}), "/propertyNames", "propertyNames"),
        (
            json!({"items": {"$ref": "#/$defs/p"}, "not": {"$ref": "#/$defs/p"}, "$defs": {"p": path()}}),
            "/$defs/p",
            "not",
        ),
    ] {
        let expected = SchemaError::PathPlace { pointer: pointer.into(), keyword: keyword.into() };
        assert_eq!(refusal(schema), expected);
    }
}

#[test]
fn draft_07_ignores_tuples_and_reference_siblings() {
    let draft = "http://json-schema.org/draft-07/schema#";
    let tuple = refusal(json!({"$schema": draft, "items": [path()]}));
    assert!(matches!(tuple, SchemaError::PathPlace { .. }), "{tuple}");
    let beside = refusal(
        json!({"$schema": draft, "properties": {"x": {"$ref": "#", "format": "workspace-path"}}}),
    );
    assert!(matches!(beside, SchemaError::PathPlace { .. }), "{beside}");
}

#[test]
fn schema_without_paths_is_not_searched() {
    let without = json!({"properties": {"x": {"format": "date"}}, "$defs": {"unused": path()}});
    assert!(!Schema::output(without).unwrap().has_workspace_paths());
    assert!(Schema::output(with_x(path())).unwrap().has_workspace_paths());
    let named = json!({"properties": {"format": {"const": "workspace-path"}}, "default": {"format": "workspace-path"}});
    assert!(!Schema::output(named).unwrap().has_workspace_paths());
}

#[test]
fn mapping_replaces_only_paths() {
    let schema =
        Schema::output(json!({"properties": {"a": path(), "b": {"items": path()}, "c": true}}))
            .unwrap();
    let mut input = json!({"a": "1", "b": ["2", "3"], "c": "4"});
    let mapped = |pointer: &str, value: &str| Ok::<_, Exhausted>(format!("{pointer}:{value}"));
    schema.map_workspace_paths(&mut input, &Unlimited, mapped).unwrap();
    assert_eq!(input, json!({"a": "/a:1", "b": ["/b/0:2", "/b/1:3"], "c": "4"}));
    let met = Cell::new(0);
    let refused = schema.map_workspace_paths(&mut input, &Unlimited, |_, _| {
        met.set(met.get() + 1);
        Err(Exhausted::Cancelled)
    });
    assert_eq!((refused, met.get()), (Err(Exhausted::Cancelled), 1));
}

/// Returns each path of an input with its use.
fn uses(schema: Value, input: &Value) -> Vec<(String, PathAccess)> {
    let mut uses = Vec::new();
    let note = |path: &str, access| {
        uses.push((path.to_owned(), access));
        Ok::<_, Exhausted>(())
    };
    Schema::output(schema).unwrap().each_workspace_path(input, &Unlimited, note).unwrap();
    uses
}

#[test]
fn path_is_changed_unless_every_mark_says_that_it_is_read() {
    let marked =
        |access: &str| json!({"type": "string", "format": "workspace-path", "x-access": access});
    for (mark, expected) in [
        (path(), PathAccess::Write),
        (marked("write"), PathAccess::Write),
        (marked("read"), PathAccess::Read),
        (
            json!({"$ref": "#/$defs/p", "format": "workspace-path", "x-access": "read"}),
            PathAccess::Write,
        ),
    ] {
        let schema = json!({"properties": {"x": {"items": mark}}, "$defs": {"p": path()}});
        assert_eq!(uses(schema, &json!({"x": ["a"]})), [("a".to_owned(), expected)]);
    }
}

#[test]
fn unknown_use_of_a_path_is_refused_with_both_words() {
    for wrong in [json!("raed"), json!("Read"), json!(true), json!(null), json!(["read"])] {
        let marked = json!({"type": "string", "format": "workspace-path", "x-access": wrong});
        let refused = refusal(with_x(marked)).to_string();
        for word in ["`x-access` at `/properties/x/x-access`", "\"read\"", "\"write\""] {
            assert!(refused.contains(word), "{refused}");
        }
    }
    let own = with_x(json!({"type": "string", "x-access": "a word of the author"}));
    assert!(Schema::output(own).is_ok(), "the keyword says nothing about other values");
}
