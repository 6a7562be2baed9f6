//! The keywords and names that a schema may not use.

use serde_json::Value;

use crate::schema::MAX_NAME;
use crate::schema::error::SchemaError;
use crate::text::{elided, first_deceptive};

/// Refuses a keyword that the validator does not support in this place.
pub(super) fn refuse_foreign(
    keyword: &str,
    value: &Value,
    place: &str,
    is_root: bool,
) -> Result<(), SchemaError> {
    let (keyword, instead) = match keyword {
        "$schema" if !is_root => return Err(SchemaError::Dialect { pointer: place.to_owned() }),
        "$id" if !is_root => (
            "$id",
            "it would move the base of references; leave it out, and refer with \"#/$defs/NAME\"",
        ),
        "$dynamicRef" => ("$dynamicRef", "use `$ref`"),
        "$dynamicAnchor" => ("$dynamicAnchor", "use `$defs` and `$ref`"),
        "$recursiveRef" => ("$recursiveRef", "use `$ref`: \"#\""),
        "$recursiveAnchor" => ("$recursiveAnchor", "use `$ref`: \"#\""),
        "$vocabulary" => ("$vocabulary", "it belongs to meta-schemas; leave it out"),
        "x-mcp-header" if !is_header_name(value) => {
            ("x-mcp-header", "want the name of an HTTP header: 1 to 64 letters, digits and hyphens")
        }
        _ => return Ok(()),
    };
    Err(SchemaError::Keyword { keyword, pointer: place.to_owned(), instead })
}

/// Refuses the name of a member that hides characters from a reader or is too long.
pub(super) fn refuse_name(name: &str, keyword: &str, place: &str) -> Result<(), SchemaError> {
    // A pattern is not read as a name, and has its own bound.
    let is_pattern = keyword == "patternProperties";
    let why = if first_deceptive(name).is_some() || name.contains(['\n', '\t']) {
        "it holds control, zero-width or bidirectional characters"
    } else if name.len() > MAX_NAME && !is_pattern {
        "it is longer than 256 bytes"
    } else {
        return Ok(());
    };
    Err(SchemaError::Name {
        name: format!("{:?}", elided(name, 64)),
        pointer: place.to_owned(),
        why,
    })
}

fn is_header_name(value: &Value) -> bool {
    let fits = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    value.as_str().is_some_and(fits)
}
