//! Removes `null` members from inputs under a strict schema, where `null` stands for an absent
//! member.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::pointer::resolve_local_ref;

/// The longest chain of references that is followed.
const MAX_CHAIN: usize = 16;
/// The depth to which alternatives are examined.
const MAX_DEPTH: usize = 16;

/// Removes `null` members that the schema knows, does not require and does not accept as `null`.
///
/// Call it before validation on input from a provider that was given a strict schema. Other members
/// are unchanged. The work is linear in the size of input and schema, because each subschema is
/// judged once.
pub fn drop_absent(schema: &Value, input: &mut Value) {
    NullRemoval {
        root: schema,
        resolved: HashMap::new(),
        nullable: HashMap::new(),
        absent: HashMap::new(),
        required: HashMap::new(),
    }
    .visit(schema, input);
}

/// One pass over an input. Results are cached by the subschema's address: an array may hold the
/// same property a hundred thousand times, and alternatives may be recursive.
struct NullRemoval<'s> {
    root: &'s Value,
    /// The schema at the end of a chain of references.
    resolved: HashMap<*const Value, Option<&'s Map<String, Value>>>,
    /// True if a schema accepts `null`.
    nullable: HashMap<*const Value, bool>,
    /// True if `null` stands for the absence of a property.
    absent: HashMap<*const Value, bool>,
    /// The names that a list of required members has. Both the list and the properties that are
    /// looked up in it may be long.
    required: HashMap<*const Value, HashSet<&'s str>>,
}

impl<'s> NullRemoval<'s> {
    fn visit(&mut self, schema: &'s Value, value: &mut Value) {
        if !matches!(value, Value::Object(_) | Value::Array(_)) {
            return;
        }
        let Some(schema) = self.resolve(schema) else { return };
        match value {
            Value::Object(members) => self.visit_object(schema, members),
            Value::Array(elements) => {
                if let Some(items) = schema.get("items") {
                    elements.iter_mut().for_each(|element| self.visit(items, element));
                }
            }
            _ => {}
        }
    }

    fn visit_object(&mut self, schema: &'s Map<String, Value>, members: &mut Map<String, Value>) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        members.retain(|name, value| {
            let Some(property) = properties.get(name) else { return true };
            self.visit(property, value);
            !value.is_null() || !self.null_means_absent(schema, name, property)
        });
    }

    fn null_means_absent(
        &mut self,
        schema: &'s Map<String, Value>,
        name: &str,
        property: &'s Value,
    ) -> bool {
        let address = std::ptr::from_ref(property);
        if let Some(means_absent) = self.absent.get(&address) {
            return *means_absent;
        }
        let means_absent = !self.requires(schema, name) && !self.accepts_null(property, 0);
        self.absent.insert(address, means_absent);
        means_absent
    }

    fn requires(&mut self, schema: &'s Map<String, Value>, name: &str) -> bool {
        let Some(required) = schema.get("required") else { return false };
        let names = self.required.entry(std::ptr::from_ref(required)).or_insert_with(|| {
            required.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        });
        names.contains(name)
    }

    /// Returns true if a schema accepts `null`, or if that is unclear: validation then reports the
    /// error.
    fn accepts_null(&mut self, schema: &'s Value, depth: usize) -> bool {
        let address = std::ptr::from_ref(schema);
        if let Some(accepts) = self.nullable.get(&address) {
            return *accepts;
        }
        // The preliminary result ends the recursion of a schema that refers to itself.
        self.nullable.insert(address, true);
        let accepts = match self.resolve(schema).filter(|_| depth < MAX_DEPTH) {
            Some(keywords) => self.all_accept_null(keywords, depth),
            None => schema != &json!(false),
        };
        self.nullable.insert(address, accepts);
        accepts
    }

    fn all_accept_null(&mut self, schema: &'s Map<String, Value>, depth: usize) -> bool {
        let is_null = |kind: &Value| kind == "null";
        let by_type = schema.get("type").is_none_or(|kind| {
            is_null(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_null))
        });
        let by_enum = schema
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|values| values.contains(&Value::Null));
        let by_const = schema.get("const").is_none_or(Value::is_null);
        by_type
            && by_enum
            && by_const
            && ["anyOf", "oneOf"].iter().all(|keyword| {
                let alternatives = schema.get(*keyword).and_then(Value::as_array);
                alternatives.is_none_or(|alternatives| {
                    alternatives.iter().any(|one| self.accepts_null(one, depth + 1))
                })
            })
    }

    fn resolve(&mut self, schema: &'s Value) -> Option<&'s Map<String, Value>> {
        let root = self.root;
        *self.resolved.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            let mut schema = schema.as_object()?;
            for _ in 0..MAX_CHAIN {
                match schema.get("$ref").and_then(Value::as_str) {
                    Some(reference) => schema = resolve_local_ref(root, reference)?.as_object()?,
                    None => return Some(schema),
                }
            }
            None
        })
    }
}
