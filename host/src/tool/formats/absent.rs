//! Undoes on the way in what strict mode asks for on the way out: that `null` stands for what is absent.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::local::target;

/// How long a chain of references is followed.
const MAX_CHAIN: usize = 16;

/// Removes members that are `null`, that the schema knows, does not require, and would not accept as `null`.
///
/// For inputs from a provider that was given a strict schema, before they are validated. Other inputs stay as they are.
pub fn drop_absent(schema: &Value, input: &mut Value) {
    Visit { root: schema, drops: HashMap::new() }.value(schema, input);
}

/// One walk through an input.
struct Visit<'s> {
    root: &'s Value,
    /// Whether `null` stands for the absence of a property, by the place of its schema in memory: a list may hold the same
    /// property a hundred thousand times, and the answer takes a look at all of the schema.
    drops: HashMap<*const Value, bool>,
}

impl<'s> Visit<'s> {
    fn value(&mut self, schema: &'s Value, value: &mut Value) {
        let Some(schema) = resolve(self.root, schema) else { return };
        match value {
            Value::Object(members) => self.object(schema, members),
            Value::Array(elements) => {
                if let Some(items) = schema.get("items") {
                    elements.iter_mut().for_each(|element| self.value(items, element));
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, schema: &'s Map<String, Value>, members: &mut Map<String, Value>) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        members.retain(|name, value| {
            let Some(property) = properties.get(name) else { return true };
            self.value(property, value);
            !value.is_null() || !self.drops(schema, name, property)
        });
    }

    fn drops(&mut self, schema: &Map<String, Value>, name: &str, property: &Value) -> bool {
        *self.drops.entry(std::ptr::from_ref(property)).or_insert_with(|| {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = required.is_some_and(|required| required.iter().any(|one| one == name));
            !is_required && !accepts_null(self.root, property, 0)
        })
    }
}

fn resolve<'v>(root: &'v Value, schema: &'v Value) -> Option<&'v Map<String, Value>> {
    let mut schema = schema.as_object()?;
    for _ in 0..MAX_CHAIN {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => schema = target(root, reference)?.as_object()?,
            None => return Some(schema),
        }
    }
    None
}

/// In doubt `null` is taken for a value, since validation then says what is wrong with it.
fn accepts_null(root: &Value, schema: &Value, depth: usize) -> bool {
    let Some(schema) = resolve(root, schema).filter(|_| depth < MAX_CHAIN) else { return schema != &json!(false) };
    let null = json!("null");
    let by_type = schema
        .get("type")
        .is_none_or(|kind| kind == &null || kind.as_array().is_some_and(|kinds| kinds.contains(&null)));
    let by_enum = schema.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(&Value::Null));
    let by_const = schema.get("const").is_none_or(Value::is_null);
    let by_choice = ["anyOf", "oneOf"].iter().all(|keyword| {
        let alternatives = schema.get(*keyword).and_then(Value::as_array);
        alternatives.is_none_or(|alternatives| alternatives.iter().any(|one| accepts_null(root, one, depth + 1)))
    });
    by_type && by_enum && by_const && by_choice
}
