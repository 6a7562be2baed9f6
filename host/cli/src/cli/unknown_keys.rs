//! Reports input keys that are not in the tool's schema. Such keys are accepted, since models add
//! some, but a person may have misspelled one.

use super::output;
use palisade::Host;
use palisade::tool::json::{JsonBounds, parse_bounded};
use palisade::tool::text::elided;
use palisade::{
    Call,
    tool::{CallInput, nearest_names},
};
use serde_json::Value;

/// Maximum number of reported keys.
const MAX_TOLD: usize = 10;
/// Maximum length of a reported key, in characters.
const MAX_KEY: usize = 64;
/// Schema keywords that may accept or reject keys that `properties` does not list.
const OTHERS: [&str; 12] = [
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "dependentSchemas",
    "dependencies",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "$ref",
];

/// Reports the unknown keys of a call's input on standard error.
pub(super) fn tell(host: &Host, call: &Call) {
    let Ok(tool) = host.registry().get(call.tool()) else { return };
    let definition = tool.definition();
    let parsed = match call.input() {
        CallInput::Value(value) => Some(value.clone()),
        CallInput::Text(text) => parse_bounded(text, JsonBounds::CALL_INPUT).ok(),
    };
    for (key, nearest) in unnamed(definition.parameters(), &parsed.unwrap_or_default()) {
        let hint = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        output::note(&format!(
            "`{}` names no key `{}`, and ignores it{hint}",
            definition.name(),
            elided(&key, MAX_KEY)
        ));
    }
}

/// Returns the keys that an open schema does not list, each with the nearest listed key.
fn unnamed(schema: &Value, input: &Value) -> Vec<(String, Option<String>)> {
    let (Some(named), Some(given)) = (schema["properties"].as_object(), input.as_object()) else {
        return Vec::new();
    };
    if OTHERS.iter().any(|keyword| schema.get(keyword).is_some()) {
        return Vec::new();
    }
    let nearest =
        |key: &str| nearest_names(key, named.keys().map(String::as_str)).into_iter().next();
    let unnamed = given.keys().filter(|key| !named.contains_key(*key)).take(MAX_TOLD);
    unnamed.map(|key| (key.clone(), nearest(key))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_key_of_an_open_schema_has_a_suggestion() {
        let open = json!({"type": "object", "properties": {"path": {}, "limit": {}}});
        let found = unnamed(&open, &json!({"path": "x", "Limit": 3, "zzz": 1}));
        assert_eq!(
            found,
            [("Limit".to_owned(), Some("limit".to_owned())), ("zzz".to_owned(), None)]
        );
    }

    #[test]
    fn schema_with_more_key_rules_is_left_to_the_validator() {
        let input = json!({"other": 1});
        for more in ["additionalProperties", "patternProperties", "allOf", "$ref"] {
            let mut schema = json!({"type": "object", "properties": {"path": {}}});
            schema[more] = json!({});
            assert_eq!(unnamed(&schema, &input), [], "{more}");
        }
        assert_eq!(
            unnamed(&json!({"type": "object"}), &input),
            [],
            "a tool that names nothing takes anything"
        );
    }
}
