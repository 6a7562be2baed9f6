//! Forms for clients of older revisions, which do not know `oneOf`.

use crate::protocol::lifecycle::Dialect;
use palisade::tool::text::elided;
use serde_json::{Map, Value};

/// Rewrites the fields of a form in the client's dialect: titled choices become `enum` with
/// `enumNames`.
///
/// # Errors
///
/// Returns the reason for a field that the dialect cannot express.
pub(super) fn in_dialect(
    properties: &mut Map<String, Value>,
    dialect: Dialect,
) -> Result<(), String> {
    match dialect {
        Dialect::Current => Ok(()),
        Dialect::Older => properties.iter_mut().try_for_each(|(name, field)| to_older(name, field)),
    }
}

fn to_older(name: &str, field: &mut Value) -> Result<(), String> {
    if field["type"] == "array" {
        return Err(format!(
            "the client's revision has no field of several choices, such as `{}`",
            elided(name, 64)
        ));
    }
    let Some(field) = field.as_object_mut() else { return Ok(()) };
    let Some(Value::Array(choices)) = field.remove("oneOf") else { return Ok(()) };
    let each = |key: &str| -> Value { choices.iter().map(|choice| choice[key].clone()).collect() };
    field.insert("enum".to_owned(), each("const"));
    field.insert("enumNames".to_owned(), each("title"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn older(field: &Value) -> Result<Value, String> {
        let mut properties = Map::from_iter([("a".to_owned(), field.clone())]);
        in_dialect(&mut properties, Dialect::Older)?;
        Ok(properties.remove("a").unwrap_or_default())
    }

    #[test]
    fn titled_choices_become_names_of_an_enumeration() {
        let titled = json!({
            "type": "string", "description": "d",
            "oneOf": [{"const": "x", "title": "An x"}, {"const": "y", "title": "A y"}],
        });
        let named = json!({
            "type": "string", "description": "d",
            "enum": ["x", "y"], "enumNames": ["An x", "A y"],
        });
        assert_eq!(older(&titled), Ok(named));
    }

    #[test]
    fn other_fields_are_unchanged_and_several_choices_refused() {
        for field in [json!({"type": "boolean"}), json!({"type": "string", "enum": ["x"]})] {
            assert_eq!(older(&field), Ok(field));
        }
        let several = json!({"type": "array", "items": {"type": "string", "enum": ["x"]}});
        assert!(older(&several).is_err_and(|why| why.ends_with("such as `a`")));
    }
}
