//! Tests of the settings of one plugin.

use super::*;
use serde_json::json;

fn config(value: Value) -> Result<PluginSettings, PluginSettingsError> {
    let Value::Object(members) = value else { panic!("{value} is no object") };
    PluginSettings::default().with_config(members)
}

#[test]
fn limits_have_a_minimum_and_a_maximum() {
    let memory = |bytes| PluginSettings::default().with_memory(bytes).is_ok();
    assert!(memory(1 << 20) && memory(limits::MAX_MEMORY));
    assert!(!memory((1 << 20) - 1) && !memory(limits::MAX_MEMORY + 1));
    let time = |time| PluginSettings::default().with_timeout(time).is_ok();
    assert!(time(LEAST_TIME) && time(limits::MAX_TIMEOUT));
    assert!(!time(Duration::ZERO) && !time(limits::MAX_TIMEOUT + LEAST_TIME));
}

#[test]
fn configuration_has_at_most_64_kib() {
    // The text around the value is `{"k":""}`.
    let room = CONFIG.bytes - 8;
    assert!(config(json!({"k": "x".repeat(room)})).is_ok());
    assert!(config(json!({"k": "x".repeat(room + 1)})).is_err());
    // Escapes count as they are written.
    assert!(config(json!({"k": "\n".repeat(room / 2)})).is_ok());
    assert!(config(json!({"k": "\n".repeat(room / 2 + 1)})).is_err());
    let deep = (0..CONFIG.depth).fold(json!(1), |inner, _| json!([inner]));
    assert!(config(json!({"k": deep})).is_err());
    assert!(config(json!({"k": vec![1; CONFIG.members + 1]})).is_err());
}

#[test]
fn configuration_is_compact_text() {
    let settings = config(json!({"url": "https://a", "depth": 2})).expect("it is small");
    assert_eq!(settings.config(), Some(r#"{"depth":2,"url":"https://a"}"#));
    assert_eq!(settings.without_config().config(), None);
}
