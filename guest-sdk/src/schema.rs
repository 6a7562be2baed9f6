//! Generates JSON Schemas of arguments and outputs in a plain form that models and providers handle
//! well.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::IntoOutput;

/// The formats of JSON Schema 2020-12 (Validation, section 7.3) and that of the contract. schemars
/// adds others for Rust's number types, which mean nothing to a model and which some providers
/// refuse.
const FORMATS: [&str; 20] = [
    "workspace-path",
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// The metadata key by which the host takes `null` in an optional member for its absence.
const NULL_IS_ABSENT: &str = "null-is-absent";

/// The parts of a definition that follow from a tool's arguments, as text.
#[derive(Debug)]
pub struct Input {
    /// The JSON Schema.
    pub schema: String,
    /// The metadata: a JSON object, or empty.
    pub metadata: String,
}

/// Describes a tool's arguments. The root of the schema is always an object, even if the type leaves
/// that open.
///
/// An `Option` becomes a member that may be left out. Its schema does not list `null`, because
/// many clients and models accept a single type only; the metadata makes the host accept `null`
/// nevertheless. An author whose tool distinguishes `null` from absence sets the key to false.
#[must_use]
pub fn input<T: JsonSchema>(metadata: &str) -> Input {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    let mut keys: Map<String, Value> = serde_json::from_str(metadata).unwrap_or_default();
    let mut metadata = metadata.to_owned();
    if keys.get(NULL_IS_ABSENT) != Some(&Value::Bool(false)) && drop_optional_null(&mut schema) {
        keys.insert(NULL_IS_ABSENT.to_owned(), Value::Bool(true));
        metadata = Value::Object(keys).to_string();
    }
    Input { schema: Value::Object(schema).to_string(), metadata }
}

/// Describes a tool that takes no arguments.
#[must_use]
pub fn no_input(metadata: &str) -> Input {
    let schema = r#"{"properties":{},"type":"object"}"#.to_owned();
    Input { schema, metadata: metadata.to_owned() }
}

/// Returns the schema of a function's return type, as text, if the type has one.
#[must_use]
pub fn output_schema<T: IntoOutput>() -> Option<String> {
    T::output_schema().map(|schema| schema.to_string())
}

/// Returns the schema of a value that a tool returns as JSON.
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    Value::Object(generate::<T>(SchemaSettings::draft2020_12().for_serialize()))
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // schemars uses the type's name as the title of the root. A title by the author is kept.
    if schema.get("title").and_then(Value::as_str) == Some(&*T::schema_name()) {
        schema.remove("title");
    }
    tidy(&mut schema);
    std::mem::take(schema.ensure_object())
}

/// Normalises a schema and its subschemas.
fn tidy(schema: &mut Schema) {
    if let Some(object) = schema.as_object_mut() {
        drop_foreign_format(object);
        drop_closedness(object);
        merge_null(object);
        fold_variants(object);
    }
    transform_subschemas(&mut tidy, schema);
}

/// Removes `null` from optional members, wherever the host takes it for absence: in objects that are
/// reached through members and elements. Returns true if there was one.
fn drop_optional_null(schema: &mut Map<String, Value>) -> bool {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: BTreeSet<String> =
        required.filter_map(Value::as_str).map(str::to_owned).collect();
    let mut dropped = false;
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        for (name, member) in members {
            let Value::Object(member) = member else { continue };
            dropped |= !required.contains(name) && drop_null(member);
            dropped |= drop_optional_null(member);
        }
    }
    if let Some(Value::Object(elements)) = schema.get_mut("items") {
        dropped |= drop_optional_null(elements);
    }
    dropped
}

/// Removes `null` from a type beside others, in the forms that [`generate`] writes.
fn drop_null(schema: &mut Map<String, Value>) -> bool {
    let is_other = |value: &Value| value != "null" && value != &json!({ "type": "null" });
    let mut dropped = false;
    for keyword in ["type", "anyOf"] {
        let Some(Value::Array(alternatives)) = schema.get_mut(keyword) else { continue };
        if !alternatives.iter().any(is_other) || alternatives.iter().all(is_other) {
            continue;
        }
        alternatives.retain(is_other);
        dropped = true;
        let [only] = alternatives.as_slice() else { continue };
        match (keyword, only.clone()) {
            // Keywords of the field take precedence over those of its type.
            ("anyOf", Value::Object(only)) => {
                schema.remove(keyword);
                only.into_iter().for_each(|(key, value)| {
                    schema.entry(key).or_insert(value);
                });
            }
            (_, only) => {
                schema.insert(keyword.to_owned(), only);
            }
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum").filter(|_| dropped) {
        values.retain(|value| !value.is_null());
    }
    if dropped && schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    dropped
}

fn drop_foreign_format(object: &mut Map<String, Value>) {
    if object.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format))
    {
        object.remove("format");
    }
}

/// Removes closedness: serde decides whether unknown fields are errors. Models sometimes add
/// fields, and most tools should ignore them.
fn drop_closedness(object: &mut Map<String, Value>) {
    for key in ["additionalProperties", "unevaluatedProperties"] {
        if object.get(key) == Some(&Value::Bool(false)) {
            object.remove(key);
        }
    }
}

/// Merges "one of these variants, or null" into one list of values. schemars does this itself for
/// all other types.
fn merge_null(object: &mut Map<String, Value>) {
    let Some([Value::Object(variants), null]) =
        object.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
    else {
        return;
    };
    let mut merged = variants.clone();
    // Keywords of the field take precedence over those of its type.
    merged.extend(
        object
            .iter()
            .filter(|(key, _)| *key != "anyOf")
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    if null != &json!({ "type": "null" }) || !fold_variants(&mut merged) {
        return;
    }
    merged.insert("type".to_owned(), json!(["string", "null"]));
    if let Some(Value::Array(values)) = merged.get_mut("enum") {
        values.push(Value::Null);
    }
    *object = merged;
}

/// Converts a `oneOf` of constant strings, which schemars generates for documented variants, to an
/// `enum`, and moves the variants' descriptions into the description. Returns true if there was
/// one.
fn fold_variants(object: &mut Map<String, Value>) -> bool {
    let Some(branches) = object.get("oneOf").and_then(Value::as_array) else { return false };
    let Some(variants) = branches.iter().map(variants_of).collect::<Option<Vec<_>>>() else {
        return false;
    };
    let variants = variants.concat();
    let lines: Vec<_> = variants.iter().filter_map(Variant::line).collect();
    let described =
        object.get("description").and_then(Value::as_str).into_iter().map(str::to_owned);
    let list = Some(lines.join("\n")).filter(|list| !list.is_empty());
    let description = described.chain(list).collect::<Vec<_>>().join("\n\n");
    if !description.is_empty() {
        object.insert("description".to_owned(), description.into());
    }
    object.insert("type".to_owned(), "string".into());
    object.insert("enum".to_owned(), variants.into_iter().map(|variant| variant.value).collect());
    object.remove("oneOf");
    true
}

/// A value of an enumeration, with its description.
#[derive(Clone)]
struct Variant {
    value: Value,
    description: Option<String>,
}

impl Variant {
    /// Formats the variant as one list item on one line.
    fn line(&self) -> Option<String> {
        let description =
            self.description.as_ref()?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("- `{}`: {description}", self.value.as_str()?))
    }
}

/// Returns the variants of one branch of a `oneOf`, if the branch only lists allowed strings.
fn variants_of(branch: &Value) -> Option<Vec<Variant>> {
    let branch = branch.as_object()?;
    let known = |key: &String| matches!(key.as_str(), "type" | "const" | "enum" | "description");
    if branch.get("type")? != "string" || !branch.keys().all(known) {
        return None;
    }
    let description = branch.get("description").and_then(Value::as_str).map(str::to_owned);
    match (branch.get("const"), branch.get("enum").and_then(Value::as_array)) {
        (Some(value), None) => Some(vec![Variant { value: value.clone(), description }]),
        (None, Some(values)) => Some(
            values
                .iter()
                .map(|value| Variant { value: value.clone(), description: None })
                .collect(),
        ),
        _ => None,
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
