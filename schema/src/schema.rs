//! The schemas that tools bring along: checked once, then used to validate, and never trusted.
//!
//! Accepted is JSON Schema 2020-12 with every assertion and applicator keyword and with local `$ref`, and draft-07. `format` and
//! `content…` are annotations in both. Refused, with keyword and place, is what would make the meaning depend on something outside
//! the document (other references, dynamic ones, `$id` below the root), and what would make it cost too much.

mod cost;
mod error;
mod explain;
mod hidden;
mod keyword;
mod meter;
mod outline;
mod paths;
mod pattern;
pub mod unreviewed;
mod violation;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::{Map, Value};

pub use error::SchemaError;
pub use hidden::in_object as hidden_in;
pub use keyword::{Dialect, Reach, Shape, holds};
pub use outline::{join, percent_decode};
pub use paths::PathArgument;
pub use violation::{Violation, Violations};

use crate::json::{JsonBounds, parse_bounded, type_name};
use meter::{Metered, Seen, Spent, Tariff};
use outline::Outline;
use paths::Plan;
use pattern::PatternLoad;

/// The longest schema, in bytes of its compact JSON text. Real ones have a few KiB; it is sent to a model with every request.
pub const MAX_SCHEMA: usize = 256 << 10;
/// The deepest nesting of a schema's JSON.
pub const MAX_DEPTH: usize = 32;
/// The most subschemas.
pub const MAX_SUBSCHEMAS: usize = 2_000;
/// The most subschemas with every `$ref` written out, down to where it recurs.
pub const MAX_EXPANDED: usize = 20_000;
/// The most subschemas that judge one and the same value, through `$ref`, `allOf` and the like.
pub const MAX_VISITS: usize = 2_000;
/// The longest chain of such subschemas. With the depth of a value it bounds the stack that validation takes.
pub const MAX_CHAIN: usize = 16;
/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = 4 << 10;
/// The largest compiled pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;
/// The most patterns.
pub const MAX_PATTERNS: usize = 128;
/// The most that all patterns together compile to, in bytes.
pub const MAX_PATTERNS_TOGETHER: usize = 4 << 20;
/// The longest name of a property or definition, in bytes.
pub const MAX_NAME: usize = 256;
/// The deepest value that is validated.
pub const MAX_VALUE_DEPTH: usize = 64;
/// The steps that one validation may take: looks at a value or a part of it. Ten million take some 50 ms (measured, optimised).
pub const MAX_STEPS: u64 = 10_000_000;
/// The most violations that are listed.
pub const MAX_VIOLATIONS: usize = 10;

/// The format that marks a text as the path of a file in the workspace.
pub const WORKSPACE_PATH: &str = "workspace-path";

/// The steps that listing what is wrong may take; beyond them only the first error is told.
const LISTING_STEPS: u64 = 200_000;
/// The steps that an error counts for, since the validator keeps it in memory: four hundred errors at most.
const ERROR_STEPS: u64 = 500;
/// The longest pointer that the validator is let to keep with each error, in bytes.
const MAX_POINTER: usize = 1 << 10;

/// A schema that has been checked and compiled. Cheap to clone; never changes.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    value: Value,
    dialect: Dialect,
    validator: OnceLock<Result<Validator<Metered>, SchemaError>>,
    patterns: PatternLoad,
    plan: Plan,
}

/// When the validator is built, which takes longer than all checks of a schema together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Building {
    /// With the schema: whatever is wrong shows before anybody sees the tool.
    Now,
    /// When the first value is to be validated: for a schema that was built by this version of the program before.
    AtFirstUse,
}

impl Schema {
    /// Checks the schema of an input, whose root is an object.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] names the keyword, its place, and what would be accepted.
    pub fn input(value: Value) -> Result<Self, SchemaError> {
        Self::input_built(value, Building::Now)
    }

    fn input_built(value: Value, building: Building) -> Result<Self, SchemaError> {
        let root = value.get("type");
        if root.and_then(Value::as_str) == Some("object") {
            return Self::built(value, building);
        }
        let got = match root {
            Some(got) => crate::text::elided(&got.to_string(), 64),
            None if value.is_object() => "no `type`".to_owned(),
            None => format!("{} as the whole schema", type_name(&value)),
        };
        Err(SchemaError::RootNotObject { got })
    }

    /// Checks the schema of an output, whose root may be anything.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] names the keyword, its place, and what would be accepted.
    pub fn output(value: Value) -> Result<Self, SchemaError> {
        Self::built(value, Building::Now)
    }

    fn built(value: Value, building: Building) -> Result<Self, SchemaError> {
        refuse_bulk(&value)?;
        let dialect =
            Dialect::of(value.get("$schema")).ok_or_else(|| SchemaError::Dialect { pointer: "/$schema".to_owned() })?;
        let outline = Outline::read(&value, dialect)?;
        hidden::refuse(&value)?;
        cost::check(&outline)?;
        let patterns = pattern::check(&outline)?;
        let plan = Plan::new(&outline)?;
        let validator = match building {
            Building::Now => OnceLock::from(Ok(compile(&value, dialect)?)),
            Building::AtFirstUse => OnceLock::new(),
        };
        Ok(Self(Arc::new(Compiled { value, dialect, validator, patterns, plan })))
    }

    /// Reads and checks the text of an input schema: at most 256 KiB, depth 32, no key twice.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] names the keyword, its place, and what would be accepted.
    pub fn parse_input(text: &str) -> Result<Self, SchemaError> {
        Self::parse_input_built(text, Building::Now)
    }

    /// As [`parse_input`](Self::parse_input), with the validator built now or later.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] names the keyword, its place, and what would be accepted. What only building the validator finds is told with [`Building::Now`] alone; later
    /// every value is refused in its place.
    pub fn parse_input_built(text: &str, building: Building) -> Result<Self, SchemaError> {
        Self::input_built(parse(text)?, building)
    }

    /// Reads and checks the text of an output schema, within the bounds of [`parse_input`](Self::parse_input).
    ///
    /// # Errors
    ///
    /// [`SchemaError`] names the keyword, its place, and what would be accepted.
    pub fn parse_output(text: &str) -> Result<Self, SchemaError> {
        Self::parse_output_built(text, Building::Now)
    }

    /// As [`parse_output`](Self::parse_output), with the validator built now or later.
    ///
    /// # Errors
    ///
    /// Those of [`parse_input_built`](Self::parse_input_built).
    pub fn parse_output_built(text: &str, building: Building) -> Result<Self, SchemaError> {
        Self::built(parse(text)?, building)
    }

    /// How many patterns the schema has, and their compiled size in bytes: what it costs to keep.
    #[must_use]
    pub fn pattern_cost(&self) -> (usize, usize) {
        (self.0.patterns.count, self.0.patterns.together)
    }

    /// The schema as it was given.
    #[must_use]
    pub fn as_value(&self) -> &Value {
        &self.0.value
    }

    /// Validates a value, exactly as the schema says, within [`MAX_STEPS`] and a depth of 64.
    ///
    /// # Errors
    ///
    /// Up to ten [`Violations`]; a single one where the value is too deep or too large to be judged.
    pub fn validate(&self, value: &Value) -> Result<(), Violations> {
        let validator = self
            .validator()
            .map_err(|error| Violations::one("", format!("cannot be checked, since its schema is wrong: {error}")))?;
        let (valid, spent) = meter::run(self.tariff(MAX_STEPS, 0), || validator.is_valid(Seen::root(value)));
        match spent {
            Spent::Within if valid => Ok(()),
            Spent::Within => Err(self.explain(value, validator)),
            Spent::Everything => {
                Err(Violations::one("", "is too large to be checked against its schema; want less at once"))
            }
            Spent::TooDeep => {
                Err(Violations::one("", format!("is nested too deeply; want a depth of at most {MAX_VALUE_DEPTH}")))
            }
        }
    }

    /// Whether any value can be a workspace path at all.
    #[must_use]
    pub fn has_workspace_paths(&self) -> bool {
        !self.0.plan.is_empty()
    }

    /// Lists the workspace paths of an input that has been validated.
    #[must_use]
    pub fn workspace_paths(&self, input: &Value) -> Vec<PathArgument> {
        self.0.plan.find(input)
    }

    /// Replaces every workspace path of a validated input by what `f` makes of its pointer and value.
    ///
    /// # Errors
    ///
    /// The first error of `f`; the paths before it have been replaced by then.
    pub fn map_workspace_paths<E>(
        &self,
        input: &mut Value,
        mut f: impl FnMut(&str, &str) -> Result<String, E>,
    ) -> Result<(), E> {
        for PathArgument { pointer, value } in self.0.plan.find(input) {
            let mapped = f(&pointer, &value)?;
            if let Some(slot) = input.pointer_mut(&pointer) {
                *slot = Value::String(mapped);
            }
        }
        Ok(())
    }

    fn validator(&self) -> Result<&Validator<Metered>, &SchemaError> {
        self.0.validator.get_or_init(|| compile(&self.0.value, self.0.dialect)).as_ref()
    }

    fn tariff(&self, steps: u64, error: u64) -> Tariff {
        Tariff { steps, value_pattern: self.0.patterns.value, name_pattern: self.0.patterns.name, error }
    }

    /// Lists what is wrong, or tells the first error where listing costs too much.
    fn explain(&self, value: &Value, validator: &Validator<Metered>) -> Violations {
        let vague = || Violations::one("", "does not conform to its schema, and is too large to say where");
        if longest_pointer(value, 0) > MAX_POINTER {
            return vague();
        }
        let list = || {
            let errors = validator.iter_errors(Seen::root(value));
            Violations::of(errors.map(|error| explain::violation(&error, value, self.as_value())))
        };
        if let (Some(violations), Spent::Within) = meter::run(self.tariff(LISTING_STEPS, ERROR_STEPS), list) {
            return violations;
        }
        let first = || {
            validator.validate(Seen::root(value)).err().map(|error| explain::violation(&error, value, self.as_value()))
        };
        match meter::run(self.tariff(MAX_STEPS, MAX_STEPS / 400), first) {
            (Some(violation), Spent::Within) => Violations::of([violation]).unwrap_or_else(vague),
            _ => vague(),
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.0.value).finish()
    }
}

/// Two schemas are equal where their documents are.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

fn parse(text: &str) -> Result<Value, SchemaError> {
    // Every member takes at least two bytes, so that the length bounds their number.
    let bounds = JsonBounds { bytes: MAX_SCHEMA, depth: MAX_DEPTH, members: MAX_SCHEMA };
    Ok(parse_bounded(text, bounds)?)
}

fn compile(value: &Value, dialect: Dialect) -> Result<Validator<Metered>, SchemaError> {
    let draft = match dialect {
        Dialect::Draft202012 => jsonschema::Draft::Draft202012,
        Dialect::Draft07 => jsonschema::Draft::Draft7,
    };
    jsonschema::options_for::<Metered>()
        .with_draft(draft)
        .with_pattern_options(pattern::options())
        .should_validate_formats(false)
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64")
        .offline()
        .build(&without_id(value))
        .map_err(|error| malformed(&error, dialect))
}

/// The root's own `$id` is a name and no more: with it the compiler would look up references under another base.
fn without_id(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(keywords) = value.as_object_mut() {
        keywords.remove("$id");
    }
    value
}

fn malformed(error: &jsonschema::ValidationError<'_>, dialect: Dialect) -> SchemaError {
    let pointer = error.instance_path().as_str().to_owned();
    let keywords = pointer.rsplit('/').filter(|token| !token.bytes().all(|byte| byte.is_ascii_digit()));
    let keyword = keywords.into_iter().next().unwrap_or_default().to_owned();
    let accepted = keyword::accepted(&keyword);
    SchemaError::Malformed { pointer, dialect: dialect.as_str(), keyword: format!("`{keyword}`"), accepted }
}

/// Bounds a schema that came as a value, as [`parse`] bounds one that comes as text.
fn refuse_bulk(value: &Value) -> Result<(), SchemaError> {
    refuse_depth(value, MAX_DEPTH, &mut String::new())?;
    let length = value.to_string().len();
    if length > MAX_SCHEMA {
        return Err(SchemaError::TooMuch { what: "too many bytes", max: MAX_SCHEMA, pointer: String::new() });
    }
    Ok(())
}

fn refuse_depth(value: &Value, left: usize, pointer: &mut String) -> Result<(), SchemaError> {
    let refuse_members = |members: &Map<String, Value>, left, pointer: &mut String| {
        members.iter().try_for_each(|(name, value)| refuse_inside(value, left, pointer, name))
    };
    match (value, left.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => {
            Err(SchemaError::TooMuch { what: "too many levels", max: MAX_DEPTH, pointer: pointer.clone() })
        }
        (Value::Array(values), Some(left)) => {
            values.iter().enumerate().try_for_each(|(at, value)| refuse_inside(value, left, pointer, &at.to_string()))
        }
        (Value::Object(members), Some(left)) => refuse_members(members, left, pointer),
        _ => Ok(()),
    }
}

fn refuse_inside(value: &Value, left: usize, pointer: &mut String, token: &str) -> Result<(), SchemaError> {
    let length = pointer.len();
    outline::push_token(pointer, token);
    refuse_depth(value, left, pointer)?;
    pointer.truncate(length);
    Ok(())
}

/// The length of the longest pointer into a value that is no deeper than values may be, roughly.
fn longest_pointer(value: &Value, depth: usize) -> usize {
    if depth > MAX_VALUE_DEPTH {
        return usize::MAX;
    }
    let inside = |value, token: usize| longest_pointer(value, depth + 1).saturating_add(token);
    match value {
        Value::Array(values) => values.iter().map(|value| inside(value, 8)).max().unwrap_or(0),
        Value::Object(members) => members.iter().map(|(name, value)| inside(value, name.len() + 1)).max().unwrap_or(0),
        _ => 0,
    }
}
