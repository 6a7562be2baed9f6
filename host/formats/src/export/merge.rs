//! The conjunction of schema objects as one object, in time linear in their sizes.

use std::collections::HashSet;

use serde_json::{Map, Value, map::Entry};

/// Keywords whose meaning depends on `properties` beside them.
const INTERDEPENDENT: [&str; 4] =
    ["additionalProperties", "unevaluatedProperties", "patternProperties", "items"];

/// An object to which others are added. The names in `required` are looked up, not searched: a
/// schema may consist of nothing else.
pub(super) struct Merged {
    keywords: Map<String, Value>,
    required: HashSet<Value>,
}

/// Two objects that cannot be one: they conflict, or contain keywords whose meaning depends on one
/// another.
pub(super) struct Conflict;

impl Merged {
    /// Begins with one object.
    pub(super) fn new(keywords: Map<String, Value>) -> Self {
        let required = keywords.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().cloned().collect();
        Self { keywords, required }
    }

    /// Adds an object. After a conflict, what was merged so far is of no use.
    pub(super) fn add(mut self, other: &Map<String, Value>) -> Result<Self, Conflict> {
        if self.depends_on(other) {
            return Err(Conflict);
        }
        for (keyword, value) in other {
            match (keyword.as_str(), self.keywords.entry(keyword.as_str()), value) {
                ("required", Entry::Vacant(free), Value::Array(names)) => {
                    self.required.extend(names.iter().cloned());
                    free.insert(value.clone());
                }
                (_, Entry::Vacant(free), value) => {
                    free.insert(value.clone());
                }
                ("properties" | "$defs", Entry::Occupied(mut own), Value::Object(two)) => {
                    add_members(own.get_mut(), two)?;
                }
                ("required", Entry::Occupied(mut own), Value::Array(two)) => {
                    let Value::Array(one) = own.get_mut() else { return Err(Conflict) };
                    one.extend(
                        two.iter().filter(|it| self.required.insert((*it).clone())).cloned(),
                    );
                }
                (_, Entry::Occupied(own), value) if own.get() == value => {}
                (_, Entry::Occupied(_), _) => return Err(Conflict),
            }
        }
        Ok(self)
    }

    /// Returns the object.
    pub(super) fn into_keywords(self) -> Map<String, Value> {
        self.keywords
    }

    fn depends_on(&self, other: &Map<String, Value>) -> bool {
        let both_list =
            |keyword| self.keywords.contains_key(keyword) && other.contains_key(keyword);
        let is_in_one =
            |keyword: &&str| self.keywords.contains_key(*keyword) != other.contains_key(*keyword);
        both_list("properties") && INTERDEPENDENT.iter().any(is_in_one)
    }
}

/// Adds the members of a map of subschemas. A member of both has to be the same in both.
fn add_members(one: &mut Value, two: &Map<String, Value>) -> Result<(), Conflict> {
    let Value::Object(one) = one else { return Err(Conflict) };
    for (name, value) in two {
        match one.entry(name.as_str()) {
            Entry::Vacant(free) => {
                free.insert(value.clone());
            }
            Entry::Occupied(own) if own.get() == value => {}
            Entry::Occupied(_) => return Err(Conflict),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use serde_json::json;

    fn merged(one: &Value, two: &Value) -> Option<Value> {
        let one = Merged::new(one.as_object().unwrap().clone());
        one.add(two.as_object().unwrap()).ok().map(|both| both.into_keywords().into())
    }

    #[test]
    fn objects_without_conflict_are_merged() {
        let one = json!({"type": "object", "properties": {"a": {}}, "required": ["a"]});
        let two =
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b", "a"]});
        let both =
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]});
        assert_eq!(merged(&one, &two), Some(both));
        assert_eq!(merged(&json!({}), &two), Some(two));
    }

    #[test]
    fn conflicts_are_not_merged() {
        for (one, two) in [
            (json!({"type": "object"}), json!({"type": "string"})),
            (json!({"properties": {"a": {}}}), json!({"properties": {"a": {"type": "string"}}})),
            (json!({"required": true}), json!({"required": ["a"]})),
            (
                json!({"properties": {"a": {}}, "additionalProperties": false}),
                json!({"properties": {"b": {}}}),
            ),
        ] {
            assert_eq!(merged(&one, &two), None, "{one} {two}");
        }
    }
}
