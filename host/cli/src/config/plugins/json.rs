//! The configuration of a plugin as JSON.

use serde_json::{Map, Number, Value};

/// Converts a table to an object. A date or a time becomes its text.
///
/// # Errors
///
/// The key, if a number has no form in JSON.
pub(super) fn object(key: &str, table: toml::Table) -> Result<Map<String, Value>, String> {
    let member = |(name, value)| {
        let value = json(&format!("{key}.{name}"), value)?;
        Ok((name, value))
    };
    table.into_iter().map(member).collect()
}

fn json(key: &str, value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Boolean(is_so) => Value::Bool(is_so),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Table(table) => Value::Object(object(key, table)?),
        toml::Value::Array(list) => {
            list.into_iter().map(|value| json(key, value)).collect::<Result<_, _>>()?
        }
        toml::Value::Float(number) => match Number::from_f64(number) {
            Some(number) => Value::Number(number),
            None => {
                return Err(format!(
                    "`{key}` is {number}, which JSON has not; write a finite number"
                ));
            }
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot parse its fixture has failed")]
    use super::*;

    #[test]
    fn each_type_of_toml_has_a_form_in_json() {
        let text = "a = \"x\"\nb = 1\nc = true\nd = 1.5\ne = 2026-01-02\nf = [1, {g = 2}]";
        let object = object("k", text.parse().unwrap()).unwrap();
        assert_eq!(
            Value::Object(object).to_string(),
            r#"{"a":"x","b":1,"c":true,"d":1.5,"e":"2026-01-02","f":[1,{"g":2}]}"#
        );
    }

    #[test]
    fn number_without_a_form_in_json_is_refused_with_its_key() {
        for text in ["a = {b = inf}", "a = [{b = nan}]"] {
            let error = object("plugins.p.config", text.parse().unwrap()).unwrap_err();
            assert!(error.contains("`plugins.p.config.a.b`"), "{error}");
        }
    }
}
