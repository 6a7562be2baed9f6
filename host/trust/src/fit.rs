//! Whether values that an old schema accepts still pass a new one. Conservative: what this module
//! does not understand is reported as unknown, never as fitting.

use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The deepest nesting that is compared.
const DEPTH: usize = 32;
/// The most reasons that are kept.
const REASONS: usize = 8;
/// Keywords without an effect on validity. A `format` has one only as `workspace-path`.
const ANNOTATIONS: [&str; 10] = [
    "$comment",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];
/// Upper bounds: a new schema may not have a smaller one.
const UPPER: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];
/// Lower bounds: a new schema may not have a larger one.
const LOWER: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
/// Keywords that are compared in parts.
const COMPARED: [&str; 7] =
    ["type", "enum", "const", "properties", "required", "additionalProperties", "items"];

/// Whether every value that one schema accepts passes another one.
///
/// A caller is taken to send only properties that its schema names: a new optional property fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// Every such value passes.
    Fits,
    /// Some such values are refused, for these reasons.
    Breaks(Vec<String>),
    /// The comparison does not understand these parts.
    Unknown(Vec<String>),
}

impl Fit {
    /// Compares two schemas: does each value that `old` accepts pass `new`?
    #[must_use]
    pub fn of(old: &Value, new: &Value) -> Self {
        let mut comparison = Comparison::default();
        comparison.compare(old, new, "", 0);
        let Comparison { mut breaks, mut unknown } = comparison;
        // An equal part of both may refer to a part that is not equal.
        if old != new && (refers(old) || refers(new)) {
            unknown.push("the whole: its parts refer to each other".to_owned());
        }
        breaks.truncate(REASONS);
        unknown.truncate(REASONS);
        match (breaks.is_empty(), unknown.is_empty()) {
            (false, _) => Self::Breaks(breaks),
            (true, false) => Self::Unknown(unknown),
            (true, true) => Self::Fits,
        }
    }
}

#[derive(Default)]
struct Comparison {
    breaks: Vec<String>,
    unknown: Vec<String>,
}

impl Comparison {
    fn compare(&mut self, old: &Value, new: &Value, place: &str, depth: usize) {
        if old == new || *new == Value::Bool(true) || *old == Value::Bool(false) {
            return;
        }
        if depth > DEPTH {
            return self.unknown.push(format!("{}: it is nested too deeply", shown(place)));
        }
        let open = Map::new();
        let (old, new) = match (old, new) {
            (_, Value::Bool(false)) => {
                return self.breaks.push(format!("{}: no value is accepted", shown(place)));
            }
            (Value::Bool(_), Value::Object(new)) => (&open, new),
            (Value::Object(old), Value::Object(new)) => (old, new),
            _ => return self.unknown.push(format!("{}: it is no schema", shown(place))),
        };
        let known_before = self.breaks.len();
        self.types(old, new, place);
        self.values(old, new, place);
        self.bounds(old, new, place);
        self.path_format(old, new, place);
        self.members(old, new, place, depth);
        if let Some(items) = new.get("items") {
            let before = old.get("items").unwrap_or(&Value::Bool(true));
            self.compare(before, items, &format!("{place}[]"), depth + 1);
        }
        self.others(old, new, place);
        if !old.keys().all(|keyword| is_compared(keyword)) {
            // Another keyword may have refused those values already.
            self.unknown.extend(self.breaks.drain(known_before..));
        }
    }

    fn types(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: &str) {
        let Some(accepted) = new.get("type").map(names) else { return };
        let takes = |name: &&str| {
            accepted.contains(*name) || (*name == "integer" && accepted.contains("number"))
        };
        let given = old.get("type").map(names).or_else(|| types_of_values(old));
        let Some(given) = given else {
            return self.breaks.push(format!(
                "{}: any type was accepted, and now only {}",
                shown(place),
                listed(&accepted)
            ));
        };
        let refused: BTreeSet<&str> = given.iter().copied().filter(|name| !takes(name)).collect();
        if !refused.is_empty() {
            self.breaks.push(format!(
                "{}: {} was accepted, and now only {}",
                shown(place),
                listed(&refused),
                listed(&accepted)
            ));
        }
    }

    /// Compares `enum` and `const`.
    fn values(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: &str) {
        let Some(accepted) = fixed_values(new) else { return };
        let Some(given) = fixed_values(old) else {
            return self
                .breaks
                .push(format!("{}: only fixed values are accepted now", shown(place)));
        };
        if let Some(gone) = given.iter().find(|value| !accepted.contains(value)) {
            self.breaks.push(format!("{}: {gone} is no longer accepted", shown(place)));
        }
    }

    fn bounds(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: &str) {
        let mut check = |keyword: &str, tighter: Ordering| {
            let Some(bound) = new.get(keyword) else { return };
            let before = old.get(keyword);
            let order = before.and_then(|before| compared(bound, before));
            if order.is_none_or(|order| order == tighter) {
                let before = before.map_or("unlimited".to_owned(), ToString::to_string);
                let place = shown(place);
                self.breaks.push(format!("{place}: `{keyword}` was {before} and is {bound}"));
            }
        };
        UPPER.iter().for_each(|keyword| check(keyword, Ordering::Less));
        LOWER.iter().for_each(|keyword| check(keyword, Ordering::Greater));
    }

    /// Compares the one format that the host enforces.
    fn path_format(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: &str) {
        let is_path = |schema: &Map<String, Value>| {
            schema.get("format").and_then(Value::as_str) == Some("workspace-path")
        };
        if is_path(new) && !is_path(old) {
            self.breaks.push(format!("{}: it is a path in the workspace now", shown(place)));
        }
    }

    fn members(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        place: &str,
        depth: usize,
    ) {
        let none = Map::new();
        let of = |schema: &'_ Map<String, Value>| -> Map<String, Value> {
            schema.get("properties").and_then(Value::as_object).unwrap_or(&none).clone()
        };
        let required = |schema: &Map<String, Value>| -> BTreeSet<String> {
            schema
                .get("required")
                .map(names)
                .unwrap_or_default()
                .into_iter()
                .map(str::to_owned)
                .collect()
        };
        for name in required(new).difference(&required(old)) {
            self.breaks.push(format!("{}: `{name}` is required now", shown(place)));
        }
        let (before, after) = (of(old), of(new));
        let rest = new.get("additionalProperties").unwrap_or(&Value::Bool(true));
        for (name, schema) in &before {
            let now = after.get(name).unwrap_or(rest);
            self.compare(schema, now, &format!("{place}/{name}"), depth + 1);
        }
        let rest_before = old.get("additionalProperties").unwrap_or(&Value::Bool(true));
        if rest_before != rest && *rest == Value::Bool(false) {
            let place = shown(place);
            self.unknown.push(format!("{place}: properties without a name here were accepted"));
        } else {
            self.compare(rest_before, rest, &format!("{place}/*"), depth + 1);
        }
    }

    /// Reports a keyword that is new or has changed, and that is not compared in parts.
    fn others(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: &str) {
        for (keyword, value) in new {
            if !is_compared(keyword) && old.get(keyword) != Some(value) {
                self.unknown.push(format!("{}: `{keyword}` is new or has changed", shown(place)));
            }
        }
    }
}

fn is_compared(keyword: &str) -> bool {
    [&ANNOTATIONS[..], &UPPER, &LOWER, &COMPARED].iter().any(|known| known.contains(&keyword))
}

/// Returns the place of a schema for a reader.
fn shown(place: &str) -> String {
    if place.is_empty() { "the whole".to_owned() } else { format!("`{place}`") }
}

/// Returns a text, or the texts of an array.
fn names(value: &Value) -> BTreeSet<&str> {
    match value {
        Value::String(name) => BTreeSet::from([name.as_str()]),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

fn listed(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(" or ")
}

fn fixed_values(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    let listed = schema.get("enum").and_then(Value::as_array);
    let Some(only) = schema.get("const") else { return listed.map(|it| it.iter().collect()) };
    let is_listed = listed.is_none_or(|values| values.contains(only));
    Some(is_listed.then_some(only).into_iter().collect())
}

/// Compares two numbers. `None` if one is no number, or if they only seem to be equal, because they
/// are rounded.
fn compared(one: &Value, other: &Value) -> Option<Ordering> {
    let whole =
        |value: &Value| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    if let (Some(one), Some(other)) = (whole(one), whole(other)) {
        return Some(one.cmp(&other));
    }
    let order = one.as_f64()?.partial_cmp(&other.as_f64()?)?;
    (order != Ordering::Equal || one == other).then_some(order)
}

/// Returns true if a schema may refer to its parts: one of the keywords for it occurs anywhere.
fn refers(schema: &Value) -> bool {
    let by = ["$ref", "$dynamicRef", "$recursiveRef"];
    match schema {
        Value::Object(members) => {
            members.iter().any(|(name, value)| by.contains(&name.as_str()) || refers(value))
        }
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// Returns the types of the fixed values of a schema without `type`.
fn types_of_values(schema: &Map<String, Value>) -> Option<BTreeSet<&'static str>> {
    let type_of = |value: &&Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    fixed_values(schema).map(|values| values.iter().map(type_of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(properties: &Value, required: &[&str]) -> Value {
        json!({"type": "object", "properties": properties, "required": required})
    }

    #[track_caller]
    fn breaks(old: &Value, new: &Value, words: &str) {
        match Fit::of(old, new) {
            Fit::Breaks(reasons) => {
                assert!(reasons.iter().any(|reason| reason.contains(words)), "{reasons:?}");
            }
            other => panic!("{other:?} in place of {words}"),
        }
    }

    #[test]
    fn wider_schemas_fit() {
        let old = object(&json!({"n": {"type": "integer", "maximum": 5}}), &["n"]);
        for new in [
            old.clone(),
            object(&json!({"n": {"type": "integer", "maximum": 9}}), &["n"]),
            object(&json!({"n": {"type": "number"}}), &[]),
            object(&json!({"n": {"type": ["integer", "string"]}, "m": {"type": "string"}}), &["n"]),
            object(&json!({"n": {"description": "A number."}}), &["n"]),
            json!({"type": "object"}),
            json!(true),
        ] {
            assert_eq!(Fit::of(&old, &new), Fit::Fits, "{new}");
        }
    }

    #[test]
    fn narrower_schemas_break_with_the_place() {
        let old = object(&json!({"n": {"type": "number"}, "e": {"enum": ["a", "b"]}}), &["n"]);
        let with = |n: Value, e: Value| object(&json!({"n": n, "e": e}), &["n"]);
        let e = json!({"enum": ["a", "b"]});
        breaks(&old, &with(json!({"type": "integer"}), e.clone()), "`/n`: number was accepted");
        breaks(&old, &with(json!({"type": "number", "minimum": 0}), e.clone()), "`minimum`");
        breaks(
            &old,
            &with(json!({"type": "number"}), json!({"enum": ["a"]})),
            "\"b\" is no longer",
        );
        breaks(&old, &with(json!(false), e.clone()), "`/n`: no value");
        breaks(&old, &object(&json!({"n": {"type": "number"}, "e": e}), &["n", "e"]), "`e` is req");
        let path = |format: Value| object(&json!({"p": format}), &[]);
        let plain = path(json!({"type": "string"}));
        breaks(&plain, &path(json!({"type": "string", "format": "workspace-path"})), "path in the");
        breaks(&json!({}), &json!({"type": "string"}), "any type");
        let list = |items: Value| json!({"type": "array", "items": items});
        breaks(&list(json!({})), &list(json!({"type": "string"})), "`[]`: any type");
    }

    #[test]
    fn parts_that_are_not_understood_are_never_said_to_fit() {
        let plain = json!({"type": "string"});
        for new in [
            json!({"type": "string", "pattern": "^a"}),
            json!({"type": "string", "not": {"const": "x"}}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"type": "string", "keyword-of-tomorrow": 1}),
        ] {
            assert!(matches!(Fit::of(&plain, &new), Fit::Unknown(_)), "{new}");
        }
        let chosen = json!({"oneOf": [{"type": "string"}, {"type": "null"}]});
        assert!(matches!(Fit::of(&chosen, &plain), Fit::Unknown(_)));
        let referring = |text: &str| json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": text}}});
        assert!(matches!(Fit::of(&referring("string"), &referring("number")), Fit::Unknown(_)));
        let closed = json!({"type": "object", "additionalProperties": false});
        assert!(matches!(Fit::of(&json!({"type": "object"}), &closed), Fit::Unknown(_)));
    }

    #[test]
    fn part_that_another_part_refers_to_is_never_said_to_fit() {
        let schema = |own: Value, other: Value| json!({"properties": {"a": own, "b": {"$ref": "#x"}, "c": other}});
        let old = schema(json!({"$anchor": "x", "type": "string"}), json!({"type": "integer"}));
        let new = schema(json!({"type": "string"}), json!({"$anchor": "x", "type": "integer"}));
        assert!(matches!(Fit::of(&old, &new), Fit::Unknown(_)));
        assert_eq!(Fit::of(&old, &old), Fit::Fits);
    }

    #[test]
    fn value_that_is_not_in_the_list_beside_it_is_not_accepted() {
        let both = json!({"const": "a", "enum": ["b"]});
        breaks(&json!({"const": "a"}), &both, "\"a\" is no longer");
        assert_eq!(Fit::of(&json!({"const": "a"}), &json!({"enum": ["a", "b"]})), Fit::Fits);
    }

    #[test]
    fn bounds_are_compared_exactly() {
        let most = |bound: Value| json!({"type": "integer", "maximum": bound});
        let large = most(json!(9_007_199_254_740_993_u64));
        breaks(&large, &most(json!(9_007_199_254_740_992_u64)), "`maximum`");
        breaks(&large, &most(json!(9_007_199_254_740_992.0)), "`maximum`");
        assert_eq!(Fit::of(&most(json!(-1)), &most(json!(u64::MAX))), Fit::Fits);
        assert_eq!(Fit::of(&most(json!(1)), &most(json!(1.5))), Fit::Fits);
    }

    #[test]
    fn deep_schemas_end() {
        let nested =
            |leaf: Value| (0..100).fold(leaf, |inner, _| json!({"properties": {"a": inner}}));
        let (old, new) = (nested(json!({})), nested(json!({"type": "string"})));
        assert!(matches!(Fit::of(&old, &new), Fit::Unknown(_)));
    }
}
