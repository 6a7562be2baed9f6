//! The portable form of a schema: every subschema has at most one `type`, and an optional member
//! does not accept `null`.
//!
//! Clients convert a schema to their model's own format, and many of these converters accept a
//! single type only. Both functions change one schema object and none of its subschemas, except
//! the members' own `null`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// Removes `null` from every property that is not required, since a caller leaves such a member
/// out. Returns the names of the changed properties.
///
/// A `null` behind a `$ref` stays: the definition may also serve a required member.
pub(super) fn drop_optional_null(keywords: &mut Map<String, Value>) -> Vec<String> {
    let required = keywords.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: HashSet<String> = required.filter_map(Value::as_str).map(str::to_owned).collect();
    let Some(properties) = keywords.get_mut("properties").and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    let optional = properties.iter_mut().filter(|(name, _)| !required.contains(*name));
    optional
        .filter_map(|(name, property)| drop_null(property.as_object_mut()?).then(|| name.clone()))
        .collect()
}

/// Replaces a list of types by one type, or by `anyOf` with one alternative per type. The schema
/// accepts the same values as before.
pub(super) fn split_types(keywords: &mut Map<String, Value>) {
    let Some(Value::Array(kinds)) = keywords.get("type") else { return };
    // A repeated type would repeat its values.
    let mut seen = HashSet::new();
    let kinds: Vec<Value> = kinds.iter().filter(|kind| seen.insert(*kind)).cloned().collect();
    keywords.remove("type");
    if let [kind] = kinds.as_slice() {
        keywords.insert("type".to_owned(), kind.clone());
        return;
    }
    let values = match keywords.remove("enum") {
        Some(Value::Array(values)) => Some(values),
        _ => None,
    };
    let alternatives = kinds.iter().filter_map(|kind| alternative(kind, values.as_deref()));
    let alternatives = Value::Array(alternatives.collect());
    if !keywords.contains_key("anyOf") {
        keywords.insert("anyOf".to_owned(), alternatives);
        return;
    }
    let all = keywords.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(all) = all {
        all.push(json!({"anyOf": alternatives}));
    }
}

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Returns the schema of one type, with the listed values of that type. Returns `None` if there is
/// no such value.
fn alternative(kind: &Value, values: Option<&[Value]>) -> Option<Value> {
    let Some(values) = values else { return Some(json!({"type": kind})) };
    // Values are looked at for the seven types, and not for any other word.
    if !TYPES.iter().any(|known| kind == known) {
        return None;
    }
    let own: Vec<&Value> = values.iter().filter(|value| is_of(value, kind)).collect();
    match own.as_slice() {
        [] => None,
        [Value::Null] => Some(json!({"type": kind})),
        own => Some(json!({"type": kind, "enum": own})),
    }
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Removes `null` from the values that a schema accepts. Returns false if it did not accept `null`,
/// or accepts nothing else.
fn drop_null(schema: &mut Map<String, Value>) -> bool {
    if accepts_null_only(schema) {
        return false;
    }
    let mut is_changed = false;
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        is_changed |= retain_some(kinds, |kind| kind != "null");
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        is_changed |= retain_some(values, |value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        is_changed |= drop_null_alternative(schema, keyword);
    }
    if is_changed && schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    is_changed
}

/// Removes the alternatives that only accept `null`. A single one that is left moves to the outer
/// schema, unless a keyword is in both.
fn drop_null_alternative(schema: &mut Map<String, Value>, keyword: &str) -> bool {
    let Some(Value::Array(alternatives)) = schema.get_mut(keyword) else { return false };
    let mut is_changed =
        retain_some(alternatives, |one| !one.as_object().is_some_and(accepts_null_only));
    for one in alternatives.iter_mut().filter_map(Value::as_object_mut) {
        is_changed |= drop_null(one);
    }
    let [Value::Object(only)] = alternatives.as_slice() else { return is_changed };
    let only = only.clone();
    let is_free = |name: &String| name == keyword || !schema.contains_key(name);
    if !is_changed || !only.keys().all(|name| is_free(name) || is_prose(name)) {
        return is_changed;
    }
    schema.remove(keyword);
    for (name, value) in only {
        schema.entry(name).or_insert(value);
    }
    true
}

/// Returns true for keywords that only explain: the outer one is the more specific.
fn is_prose(keyword: &str) -> bool {
    matches!(keyword, "title" | "description")
}

fn accepts_null_only(schema: &Map<String, Value>) -> bool {
    let is_null = |value: Option<&Value>| value == Some(&Value::Null);
    schema.get("type") == Some(&json!("null"))
        || is_null(schema.get("const"))
        || schema
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|values| is_null(values.first()) && values.iter().all(Value::is_null))
}

/// Removes the elements that are not wanted, unless nothing would be left. Returns true if an
/// element was removed.
fn retain_some(values: &mut Vec<Value>, is_wanted: impl Fn(&Value) -> bool) -> bool {
    let wanted = values.iter().filter(|value| is_wanted(value)).count();
    let is_changed = wanted > 0 && wanted < values.len();
    if is_changed {
        values.retain(is_wanted);
    }
    is_changed
}
