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
mod multiple;
mod outline;
mod paths;
mod pattern;
pub mod unreviewed;
mod validate;
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
pub use violation::{Violation, Violations};

use crate::budget::{Budget, Exhausted};
use crate::json::{JsonBounds, parse_bounded, type_name};
use meter::{ErrorCost, Metered, Tariff};
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
/// The steps that one validation may take: looks at a value or a part of it. Ten million take some 50 ms, and half a second where
/// each is of the slowest kind (measured, optimised).
pub const MAX_STEPS: u64 = 10_000_000;
/// The most violations that are listed.
pub const MAX_VIOLATIONS: usize = 10;

/// The format that marks a text as the path of a file in the workspace.
pub const WORKSPACE_PATH: &str = "workspace-path";

/// A schema that has been checked and compiled. Cheap to clone; never changes.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    value: Value,
    dialect: Dialect,
    validator: OnceLock<Result<Validator<Metered>, SchemaError>>,
    patterns: PatternLoad,
    /// What a value costs for subschemas that do not look at it, in steps.
    silent: u64,
    /// The length of its compact text, in bytes.
    length: usize,
    /// The most that an error repeats of the schema, in bytes.
    quoted: u64,
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
        let length = refuse_bulk(&value)?;
        let dialect =
            Dialect::of(value.get("$schema")).ok_or_else(|| SchemaError::Dialect { pointer: "/$schema".to_owned() })?;
        let outline = Outline::read(&value, dialect)?;
        hidden::refuse(&value)?;
        let silent = cost::check(&outline)?;
        let patterns = pattern::check(&outline)?;
        let plan = Plan::new(&outline)?;
        let quoted = explain::quoted(&value);
        let validator = match building {
            Building::Now => OnceLock::from(Ok(compile(&value, dialect)?)),
            Building::AtFirstUse => OnceLock::new(),
        };
        Ok(Self(Arc::new(Compiled { value, dialect, validator, patterns, silent, length, quoted, plan })))
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

    /// Whether any value can be a workspace path at all.
    #[must_use]
    pub fn has_workspace_paths(&self) -> bool {
        !self.0.plan.is_empty()
    }

    /// Shows every workspace path of a validated input to `f`, for as long as `budget` allows.
    ///
    /// # Errors
    ///
    /// The first error of `f`, or why the budget ended it.
    pub fn each_workspace_path<E: From<Exhausted>>(
        &self,
        input: &Value,
        budget: &dyn Budget,
        mut f: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.0.plan.each(input, budget, &mut f)
    }

    /// Replaces every workspace path of a validated input by what `f` makes of its pointer and value, for as long as
    /// `budget` allows.
    ///
    /// # Errors
    ///
    /// The first error of `f`, or why the budget ended it; the paths before it have been replaced by then.
    pub fn map_workspace_paths<E: From<Exhausted>>(
        &self,
        input: &mut Value,
        budget: &dyn Budget,
        mut f: impl FnMut(&str, &str) -> Result<String, E>,
    ) -> Result<(), E> {
        self.0.plan.map(input, budget, &mut f)
    }

    fn validator(&self) -> Result<&Validator<Metered>, &SchemaError> {
        self.0.validator.get_or_init(|| compile(&self.0.value, self.0.dialect)).as_ref()
    }

    /// Whether the validator is there, or is built in a moment.
    fn is_at_hand(&self) -> bool {
        /// The longest text of a schema, and its largest patterns when they are compiled, in bytes: some 300 µs.
        const SMALL: (usize, usize) = (8 << 10, 16 << 10);
        let Compiled { validator, length, patterns, .. } = &*self.0;
        validator.get().is_some() || (*length <= SMALL.0 && patterns.together <= SMALL.1)
    }

    fn tariff(&self, steps: u64, error: Option<ErrorCost>) -> Tariff {
        let PatternLoad { value: value_pattern, name: name_pattern, .. } = self.0.patterns;
        Tariff { steps, value_pattern, name_pattern, silent: self.0.silent, error }
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
        .with_keyword(multiple::KEYWORD, multiple::keyword)
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

/// Bounds a schema that came as a value, as [`parse`] bounds one that comes as text. Returns the length of its text, in bytes.
fn refuse_bulk(value: &Value) -> Result<usize, SchemaError> {
    refuse_depth(value, MAX_DEPTH, &mut String::new())?;
    let length = value.to_string().len();
    if length > MAX_SCHEMA {
        return Err(SchemaError::TooMuch { what: "too many bytes", max: MAX_SCHEMA, pointer: String::new() });
    }
    Ok(length)
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
