//! JSON text for a guest.

use crate::sandbox::plugin_settings::CONFIG_KEY;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Serialises a value to JSON text, without an allocation for an empty object.
pub(super) fn compact(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Object(map) if map.is_empty() => Cow::Borrowed("{}"),
        other => Cow::Owned(other.to_string()),
    }
}

/// Serialises the metadata of a call, with the configuration of the plugin, the text of a JSON
/// object, if there is one. A configuration that the caller sent is left out, so that the guest
/// gets that of its operator or none.
pub(super) fn call_metadata(map: &Map<String, Value>, config: Option<&str>) -> Cow<'static, str> {
    if map.is_empty() && config.is_none() {
        return Cow::Borrowed("{}");
    }
    if config.is_none() && !map.contains_key(CONFIG_KEY) {
        return Cow::Owned(serde_json::to_string(map).unwrap_or_default());
    }
    let members = map.iter().filter(|(key, _)| key.as_str() != CONFIG_KEY);
    let members = members.map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())));
    let config = config.map(|config| format!("\"{CONFIG_KEY}\":{config}"));
    let members: Vec<String> = members.chain(config).collect();
    Cow::Owned(format!("{{{}}}", members.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_for_a_guest_is_compact() {
        for (value, text) in
            [(json!({}), "{}"), (json!({"a": [1]}), r#"{"a":[1]}"#), (Value::Null, "null")]
        {
            assert_eq!(compact(&value), text);
        }
    }

    #[test]
    fn configuration_of_a_caller_never_reaches_the_guest() {
        let sent = json!({"a\"": [1], CONFIG_KEY: {"url": "the caller's"}, "b": null});
        let none = Map::new();
        for (sent, config, text) in [
            (&none, None, "{}"),
            (&none, Some("{}"), r#"{"plugin-config":{}}"#),
            (sent.as_object().unwrap_or(&none), None, r#"{"a\"":[1],"b":null}"#),
            (
                sent.as_object().unwrap_or(&none),
                Some(r#"{"url":"mine"}"#),
                r#"{"a\"":[1],"b":null,"plugin-config":{"url":"mine"}}"#,
            ),
        ] {
            assert_eq!(call_metadata(sent, config), text);
        }
    }
}
