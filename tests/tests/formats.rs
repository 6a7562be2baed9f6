//! Tests that exported definitions do not change: whole exports are compared with the files in
//! `golden/formats`.
//!
//! After an intended change, `UPDATE_GOLDEN=1 cargo test -p palisade-tests --test formats` rewrites
//! the files.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use palisade::formats::{DefinitionView, Format, Strictness, Weakening, export_all};
use palisade::tool::schema::Schema;
use serde_json::{Map, Value, json};

/// Returns the schema of a typical tool.
fn simple() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "format": "workspace-path", "description": "The file to read."},
            "limit": {"type": "integer", "minimum": 1, "description": "At most this many bytes."},
        },
        "required": ["path"],
    })
}

/// Returns a schema with the features in which the formats differ.
fn rich() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "title": "Edit",
        "properties": {
            "path": {"$ref": "#/$defs/path", "description": "The file to edit."},
            "mode": {"type": "string", "enum": ["replace", "append"], "default": "replace"},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}, "minItems": 1, "maxItems": 50, "uniqueItems": true},
            "where": {"oneOf": [
                {"type": "object", "properties": {"line": {"type": "integer", "minimum": 1}}, "required": ["line"]},
                {"type": "object", "properties": {"pattern": {"type": "string", "minLength": 1, "maxLength": 200}}, "required": ["pattern"]},
            ]},
            "since": {"type": ["string", "null"], "format": "date-time"},
            "link": {"type": "string", "format": "uri", "pattern": "^https:"},
            "ratio": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.25},
        },
        "required": ["path", "edits"],
        "dependentRequired": {"since": ["link"]},
        "$defs": {
            "path": {"type": "string", "format": "workspace-path"},
            "edit": {
                "type": "object",
                "properties": {"old": {"type": "string", "minLength": 1}, "new": {"type": "string"}},
                "required": ["old", "new"],
                "additionalProperties": false,
            },
        },
    })
}

fn output() -> Value {
    json!({"type": "object", "properties": {"changed": {"type": "integer"}}, "required": ["changed"]})
}

/// Exports a tool in one format, unchanged and transformed.
fn exports(view: &DefinitionView<'_>, format: Format) -> Value {
    let one = |strictness| {
        let (request, weakened) = export_all(&[*view], format, strictness);
        json!({"request": request, "weakened": weakened.iter().map(Weakening::to_string).collect::<Vec<_>>()})
    };
    json!({"as-is": one(Strictness::AsIs), "strict": one(Strictness::Transform)})
}

fn compare(name: &str, view: &DefinitionView<'_>) {
    for format in Format::ALL {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("golden/formats/{format}.{name}.json"));
        let exports = exports(view, format);
        if env::var_os("UPDATE_GOLDEN").is_some() {
            write(&path, &exports);
        }
        let golden: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert!(exports == golden, "{} differs; got:\n{exports:#}", path.display());
    }
}

fn write(path: &Path, exports: &Value) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{exports:#}\n")).unwrap();
}

#[test]
fn simple_tool_matches_the_golden_files() {
    let schema = Schema::input(simple()).unwrap();
    let mut view = DefinitionView::new("read_file", "Reads a file.", schema.as_value());
    view.side_effects = "read";
    view.idempotent = true;
    compare("simple", &view);
}

#[test]
fn rich_tool_matches_the_golden_files() {
    let schema = Schema::input(rich()).unwrap();
    let output = Schema::output(output()).unwrap();
    let mut view = DefinitionView::new("edit_file", "Edits a file.", schema.as_value());
    view.title = Some("Edit a file");
    view.output_schema = Some(output.as_value());
    view.side_effects = "write";
    compare("rich", &view);
}

/// Returns this many names, the last first: the first one that is looked for is found last.
fn names(count: usize) -> Vec<String> {
    (0..count).rev().map(|number| format!("{number:06}")).collect()
}

#[test]
fn lists_of_many_names_take_as_many_steps_as_names() {
    const MANY: usize = 60_000;
    /// Comparing each name with each other takes minutes, and looking each one up a second.
    const SOON: Duration = Duration::from_secs(20);
    let properties: Map<String, Value> =
        names(MANY).into_iter().map(|name| (name, json!({"type": "string"}))).collect();
    let others: Vec<String> = names(MANY).into_iter().map(|name| format!("{name}b")).collect();
    let kinds: Vec<String> = names(MANY).into_iter().chain(["string".to_owned()]).collect();
    for (what, schema) in [
        (
            "required",
            json!({"type": "object", "properties": properties, "required": names(MANY), "additionalProperties": false}),
        ),
        (
            "allOf",
            json!({"type": "object", "allOf": [{"required": names(MANY)}, {"required": others}]}),
        ),
        (
            "type",
            json!({"type": "object", "properties": {"x": {"type": kinds, "enum": names(MANY)}}}),
        ),
    ] {
        for format in Format::ALL {
            for strictness in [Strictness::AsIs, Strictness::Transform] {
                let begun = Instant::now();
                let view = DefinitionView::new("many", "Has many names.", &schema);
                let (request, _) = export_all(&[view], format, strictness);
                let took = begun.elapsed();
                assert!(took < SOON, "{what}, {format}, {strictness:?}: {took:?}");
                assert!(request.to_string().len() < 32 << 20, "{what}, {format}, {strictness:?}");
            }
        }
    }
}
