//! Builds the validator of a schema.

use jsonschema::{Draft, ValidationError, Validator};
use serde_json::Value;

use super::document::{Document, Moved};
use super::error::SchemaError;
use super::keyword::{self, Dialect};
use super::matcher::{self, Matchers, PatternKeyword};
use super::meter::Metered;
use super::outline::Outline;
use super::{multiple, pattern};
use crate::json::footprint;

/// The memory of one subschema in a validator, in bytes.
const SUBSCHEMA: u64 = 256;

/// The validator of a schema, and what differs in the document that it reads.
pub(super) struct Built {
    pub(super) validator: Validator<Metered>,
    pub(super) moved: Moved,
}

impl Built {
    /// Builds the validator of a schema that has been checked.
    pub(super) fn new(
        value: &Value,
        outline: &Outline<'_>,
        dialect: Dialect,
    ) -> Result<Self, SchemaError> {
        let Document { value, patterns, moved } = Document::new(value, outline)?;
        let matchers = Matchers::new(&patterns);
        let validator = build(value, dialect, move |number| matchers.keyword(number))
            .map_err(|error| malformed(&error, &moved, dialect))?;
        Ok(Self { validator, moved })
    }

    /// Builds the validator of a schema that nobody has checked and that may be outside the
    /// accepted subset. Then the names in `patternProperties` stay as they are.
    pub(super) fn unreviewed(value: &Value, dialect: Dialect) -> Option<Validator<Metered>> {
        match Outline::read(value, value.to_string().len(), dialect) {
            Ok(outline) => Self::new(value, &outline, dialect).ok().map(|built| built.validator),
            Err(_) => build(value.clone(), dialect, matcher::of_text).ok(),
        }
    }
}

/// Returns the memory of a validator without its patterns, in bytes: an upper bound. Measured with
/// a counting allocator for 23 shapes of schemas, from 2,000 empty subschemas to an `enum` of small
/// objects. The validator copies values twice, and keeps the pointer of each keyword twice.
pub(super) fn memory(value: &Value, outline: &Outline<'_>) -> u64 {
    let subschemas = SUBSCHEMA.saturating_mul(outline.nodes.len() as u64);
    let copies = footprint::of(value).saturating_add(outline.pointers as u64).saturating_mul(2);
    copies.saturating_add(subschemas)
}

/// Builds a validator with `pattern` for the keyword of that name.
fn build(
    value: Value,
    dialect: Dialect,
    pattern: impl Fn(&Value) -> Option<PatternKeyword> + Send + Sync + 'static,
) -> Result<Validator<Metered>, ValidationError<'static>> {
    let draft = match dialect {
        Dialect::Draft202012 => Draft::Draft202012,
        Dialect::Draft07 => Draft::Draft7,
    };
    let refused = || ValidationError::custom("has to be a pattern of the linear-time engine");
    jsonschema::options_for::<Metered>()
        .with_draft(draft)
        .with_pattern_options(pattern::options())
        .with_keyword(multiple::KEYWORD, multiple::keyword)
        .with_keyword(matcher::KEYWORD, move |_, value, _| pattern(value).ok_or_else(refused))
        .should_validate_formats(false)
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64")
        .offline()
        .build(&without_id(value))
}

/// Removes the root's `$id`, which would change the base for looking up references.
fn without_id(mut value: Value) -> Value {
    if let Some(keywords) = value.as_object_mut() {
        keywords.remove("$id");
    }
    value
}

fn malformed(error: &ValidationError<'_>, moved: &Moved, dialect: Dialect) -> SchemaError {
    let pointer = moved.original(error.instance_path().as_str());
    let keywords =
        pointer.rsplit('/').filter(|token| !token.bytes().all(|byte| byte.is_ascii_digit()));
    let keyword = keywords.into_iter().next().unwrap_or_default().to_owned();
    let accepted = keyword::accepted(&keyword);
    SchemaError::Malformed {
        pointer,
        dialect: dialect.as_str(),
        keyword: format!("`{keyword}`"),
        accepted,
    }
}
