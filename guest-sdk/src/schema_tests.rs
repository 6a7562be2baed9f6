//! Tests of the generated schemas.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a panic is how a test fails, and fields are only described"
)]

use super::*;
use crate::{ReadPath, WorkspacePath, WritePath};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

fn input<T: JsonSchema>() -> Value {
    serde_json::from_str(&super::input::<T>("").schema).unwrap()
}

#[derive(Deserialize, JsonSchema)]
struct Everything {
    /// A name.
    name: String,
    count: u32,
    small: Option<i8>,
    ratio: f32,
    #[serde(default)]
    flag: bool,
    nested: Vec<Nested>,
    map: BTreeMap<String, u64>,
    /// Called like a keyword.
    format: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nested {
    size: usize,
}

#[test]
fn struct_becomes_an_inlined_object() {
    let expected = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "A name." },
            "count": { "type": "integer", "minimum": 0 },
            "small": { "type": "integer", "minimum": -128, "maximum": 127 },
            "ratio": { "type": "number" },
            "flag": { "type": "boolean", "default": false },
            "nested": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "size": { "type": "integer", "minimum": 0 } },
                    "required": ["size"],
                },
            },
            "map": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } },
            "format": { "type": "string", "description": "Called like a keyword." },
        },
        "required": ["name", "count", "ratio", "nested", "map", "format"],
    });
    assert_eq!(input::<Everything>(), expected);
}

#[derive(Deserialize, JsonSchema)]
struct Optional {
    #[serde(default)]
    count: Option<u8>,
    /// The place.
    place: Option<Place>,
    places: Vec<Place>,
    list: Vec<Option<u8>>,
    map: BTreeMap<String, Place>,
}

/// A place.
#[derive(Deserialize, JsonSchema)]
struct Place {
    x: Option<u8>,
}

#[test]
fn optional_member_does_not_list_null_and_the_host_still_takes_it() {
    let Input { schema, metadata } = super::input::<Optional>(r#"{"keeps-links":true}"#);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let kind = |pointer: &str| schema.pointer(&format!("{pointer}/type")).unwrap();
    for portable in [
        "/properties/count",
        "/properties/place/properties/x",
        "/properties/places/items/properties/x",
    ] {
        assert_eq!(kind(portable), "integer", "{portable}");
    }
    assert_eq!(kind("/properties/place"), "object");
    assert_eq!(schema["properties"]["place"]["description"], "The place.");
    assert_eq!(schema["properties"]["count"].get("default"), None);
    // Here `null` is a value of its own, or the host does not look for it.
    for kept in ["/properties/list/items", "/properties/map/additionalProperties/properties/x"] {
        assert_eq!(kind(kept), &json!(["integer", "null"]), "{kept}");
    }
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    assert_eq!(metadata, json!({"keeps-links": true, "null-is-absent": true}));
}

#[test]
fn author_keeps_null_by_the_metadata() {
    let own = r#"{"null-is-absent": false}"#;
    let Input { schema, metadata } = super::input::<Optional>(own);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["properties"]["count"]["type"], json!(["integer", "null"]));
    assert_eq!(metadata, own);
    assert_eq!(super::input::<Nested>("").metadata, "", "nothing is optional");
}

#[derive(Deserialize, JsonSchema)]
struct Paths {
    /// The file.
    path: WorkspacePath,
    other: Option<WorkspacePath>,
    more: Vec<WorkspacePath>,
    #[schemars(extend("format" = "date-time"))]
    when: String,
    #[schemars(extend("format" = "float"))]
    odd: String,
}

#[derive(Deserialize, JsonSchema)]
struct Copied {
    from: ReadPath,
    more: Vec<ReadPath>,
    to: Option<WritePath>,
}

#[test]
fn path_types_say_whether_the_file_is_read_or_changed() {
    let properties = &input::<Copied>()["properties"];
    let marked =
        |access: &str| json!({ "type": "string", "format": "workspace-path", "x-access": access });
    assert_eq!(properties["from"], marked("read"));
    assert_eq!(properties["more"]["items"], marked("read"));
    assert_eq!(properties["to"], marked("write"));
}

#[test]
fn unknown_formats_are_removed() {
    let properties = &input::<Paths>()["properties"];
    assert_eq!(
        properties["path"],
        json!({ "type": "string", "format": "workspace-path", "description": "The file." })
    );
    assert_eq!(properties["other"], json!({ "type": "string", "format": "workspace-path" }));
    assert_eq!(
        properties["more"]["items"],
        json!({ "type": "string", "format": "workspace-path" })
    );
    assert_eq!(properties["when"]["format"], "date-time");
    assert_eq!(properties["odd"], json!({ "type": "string" }));
}

/// How to sort.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// Smallest first,
    /// then the others.
    Up,
    /// Largest first.
    Down,
    Random,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Plain {
    A,
    B,
}

#[derive(Deserialize, JsonSchema)]
struct Choices {
    order: Order,
    /// Of the second list.
    second: Order,
    /// Of the third list, if any.
    third: Option<Order>,
    plain: Plain,
    maybe: Option<Plain>,
}

const VARIANTS: &str = "- `up`: Smallest first, then the others.\n- `down`: Largest first.";

fn sorted(schema: &Value) -> Vec<String> {
    let mut values: Vec<_> =
        schema["enum"].as_array().unwrap().iter().map(ToString::to_string).collect();
    values.sort();
    values
}

#[test]
fn documented_variants_become_one_enum() {
    let properties = &input::<Choices>()["properties"];
    for (field, first) in [("order", "How to sort."), ("second", "Of the second list.")] {
        let schema = &properties[field];
        assert_eq!(schema["type"], "string");
        assert_eq!(sorted(schema), ["\"down\"", "\"random\"", "\"up\""]);
        assert_eq!(schema["description"], format!("{first}\n\n{VARIANTS}"));
        assert_eq!(schema.as_object().unwrap().len(), 3, "{schema}");
    }
}

#[test]
fn optional_variants_are_one_enum() {
    let properties = &input::<Choices>()["properties"];
    let schema = &properties["third"];
    assert_eq!(schema["type"], "string");
    assert_eq!(sorted(schema), ["\"down\"", "\"random\"", "\"up\""]);
    assert_eq!(schema["description"], format!("Of the third list, if any.\n\n{VARIANTS}"));
    assert_eq!(schema.as_object().unwrap().len(), 3, "{schema}");
    assert_eq!(properties["maybe"], json!({ "type": "string", "enum": ["a", "b"] }));
    assert_eq!(properties["plain"], json!({ "type": "string", "enum": ["a", "b"] }));
}

#[derive(Deserialize, JsonSchema)]
enum Mixed {
    /// A word.
    Word,
    Number(u8),
    Pair {
        left: u8,
    },
}

#[test]
fn variants_with_fields_become_open_objects() {
    #[derive(Deserialize, JsonSchema)]
    struct Args {
        mixed: Mixed,
    }
    let schema = input::<Args>();
    assert_eq!(schema["properties"]["mixed"]["oneOf"].as_array().unwrap().len(), 3);
    assert!(!schema.to_string().contains("additionalProperties"), "{schema}");
}

#[test]
fn no_schema_is_closed() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Closed {
        a: u8,
        #[serde(flatten)]
        b: Nested,
    }
    let schema = input::<Closed>().to_string();
    assert!(
        !schema.contains("additionalProperties") && !schema.contains("unevaluatedProperties"),
        "{schema}"
    );
}

#[test]
fn only_explicit_titles_are_kept() {
    #[derive(Deserialize, JsonSchema)]
    #[schemars(title = "Mine")]
    struct Titled {
        #[schemars(title = "Inner")]
        a: u8,
    }
    let schema = input::<Titled>();
    assert_eq!(schema["title"], "Mine");
    assert_eq!(schema["properties"]["a"]["title"], "Inner");
    assert!(!input::<Everything>().to_string().contains("title"));
}

#[test]
fn root_is_an_object_for_any_type() {
    #[derive(Deserialize, JsonSchema)]
    struct Empty {}
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Tagged {
        A { x: u8 },
        B,
    }
    let nothing = json!({ "type": "object", "properties": {} });
    assert_eq!(input::<Empty>(), nothing);
    assert_eq!(serde_json::from_str::<Value>(&no_input("").schema).unwrap(), nothing);
    assert_eq!(input::<BTreeMap<String, Value>>()["type"], "object");
    let tagged = input::<Tagged>();
    assert_eq!((&tagged["type"], &tagged["properties"]), (&json!("object"), &json!({})));
    assert_eq!(tagged["oneOf"].as_array().unwrap().len(), 2);
    assert_eq!(input::<Value>(), nothing);
}

#[derive(Deserialize, JsonSchema)]
struct Tree {
    path: WorkspacePath,
    children: Vec<Tree>,
}

#[test]
fn recursive_types_refer_to_local_definitions() {
    #[derive(Deserialize, JsonSchema)]
    struct Args {
        tree: Tree,
    }
    for schema in [input::<Args>(), input::<Tree>()] {
        let text = schema.to_string();
        let reference =
            text.split("\"$ref\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let target = schema.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        assert_eq!(target["properties"]["path"]["format"], "workspace-path", "{schema}");
        assert_eq!(schema["type"], "object", "{schema}");
    }
}

#[test]
fn output_schema_follows_serialization() {
    #[derive(Serialize, JsonSchema)]
    struct Report {
        #[serde(skip_serializing)]
        secret: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<u8>,
        order: Order,
    }
    let schema = of_output::<Report>();
    assert_eq!(schema["required"], json!(["order"]));
    assert!(schema["properties"].get("secret").is_none(), "{schema}");
    assert_eq!(sorted(&schema["properties"]["order"]), ["\"down\"", "\"random\"", "\"up\""]);
    assert!(!schema.to_string().contains("title"));
}

#[test]
fn schemas_are_deterministic() {
    assert_eq!(super::input::<Everything>("").schema, super::input::<Everything>("").schema);
}
