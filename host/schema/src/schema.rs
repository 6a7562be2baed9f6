//! Untrusted schemas of tools: checked once, then compiled for validation.
//!
//! Accepted are draft-07 and JSON Schema 2020-12, with every assertion and applicator keyword and
//! with local `$ref`. `format` and `content…` are annotations in both. Refused, with keyword and
//! position, are keywords whose meaning depends on something outside the document (other
//! references, dynamic references, `$id` below the root), and schemas that would be too expensive.

mod absent;
mod access;
mod allowance;
mod build;
mod bulk;
mod cost;
mod document;
mod error;
mod explain;
mod hidden;
mod keyword;
mod matcher;
mod meter;
mod multiple;
mod outline;
mod paths;
mod pattern;
mod pointer;
mod reading;
mod size;
mod translation;
pub mod unreviewed;
mod validate;
mod violation;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

pub use absent::drop_absent;
pub use access::{PATH_ACCESS, PathAccess};
pub use allowance::PatternAllowance;
pub use error::SchemaError;
pub use hidden::in_object as hidden_in;
pub use keyword::{Dialect, Reach, Shape, holds};
pub use pointer::{join, resolve_local_ref};
pub use violation::{Violation, Violations};

use crate::budget::{Budget, Exhausted};
use crate::json::type_name;
use build::Built;
use bulk::parse;
use cost::Unseen;
use meter::{ErrorCost, Tariff};
use outline::Outline;
use paths::Plan;
use pattern::PatternLoad;

/// The maximum size of a schema, in bytes of its compact JSON text. Real schemas have a few KiB,
/// and every request sends them to a model.
pub const MAX_SCHEMA: usize = 256 << 10;
/// The maximum nesting of a schema's JSON.
pub const MAX_DEPTH: usize = 32;
/// The maximum number of subschemas.
pub const MAX_SUBSCHEMAS: usize = 2_000;
/// The maximum number of subschemas after expanding every `$ref` up to its recursion.
pub const MAX_EXPANDED: usize = 20_000;
/// The maximum number of subschemas that are applied to a single value, through `$ref`, `allOf` and
/// the like.
pub const MAX_VISITS: usize = 2_000;
/// The maximum chain of such subschemas. Together with the depth of a value it bounds the stack of
/// validation.
pub const MAX_CHAIN: usize = 16;
/// Returns the maximum length of the JSON pointers of all keywords together, given the length of
/// the schema, both in bytes. A validator keeps the pointer of each keyword, and in a deep schema
/// with long names these are a thousand times as long as the schema. In real schemas they are some
/// three times as long.
const fn max_pointers(length: usize) -> usize {
    (32 << 10) + 32 * length
}

/// The maximum length of a pattern, in bytes.
pub const MAX_PATTERN: usize = 4 << 10;
/// The maximum compiled size of a pattern in one direction, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;
/// The maximum number of patterns.
pub const MAX_PATTERNS: usize = 128;
/// The maximum compiled size of all patterns together, in both directions and with the working
/// memory of those for names, in bytes.
pub const MAX_PATTERNS_TOGETHER: usize = 4 << 20;
/// The maximum length of the name of a property or definition, in bytes.
pub const MAX_NAME: usize = 256;
/// The maximum depth of a validated value.
pub const MAX_VALUE_DEPTH: usize = 64;
/// The maximum number of steps of one validation. A step is one access to a value or a part of it.
/// Ten million take some 50 ms, and half a second if each is of the slowest kind (measured,
/// optimised).
pub const MAX_STEPS: u64 = 10_000_000;
/// The maximum number of listed violations.
pub const MAX_VIOLATIONS: usize = 10;

/// The format that marks a string as the path of a file in the workspace.
pub const WORKSPACE_PATH: &str = "workspace-path";

/// A checked and compiled schema. Immutable and cheap to clone.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    value: Value,
    dialect: Dialect,
    validator: OnceLock<Result<Built, SchemaError>>,
    patterns: PatternLoad,
    /// The cost of work that the accessors of values cannot observe.
    unseen: Unseen,
    /// The length of the compact text, in bytes.
    length: usize,
    /// The memory of the validator, once it is built, in bytes.
    validator_memory: u64,
    /// The maximum part of the schema that an error repeats, in bytes.
    quoted: u64,
    plan: Plan,
}

/// The time when the validator is built, which takes longer than all checks of a schema together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Building {
    /// Together with the schema, so that every error shows before the tool is offered.
    Now,
    /// At the first validation, for a schema that this version of the program has built before.
    AtFirstUse,
}

impl Schema {
    /// Checks the schema of an input, whose root must be an object.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the keyword, its position and the accepted alternative.
    pub fn input(value: Value) -> Result<Self, SchemaError> {
        Self::input_built(value, Building::Now, &mut PatternAllowance::unbounded())
    }

    fn input_built(
        value: Value,
        building: Building,
        allowance: &mut PatternAllowance,
    ) -> Result<Self, SchemaError> {
        let root = value.get("type");
        if root.and_then(Value::as_str) == Some("object") {
            return Self::checked(value, building, allowance);
        }
        let got = match root {
            Some(got) => crate::text::elided(&got.to_string(), 64),
            None if value.is_object() => "no `type`".to_owned(),
            None => format!("{} as the whole schema", type_name(&value)),
        };
        Err(SchemaError::RootNotObject { got })
    }

    /// Checks the schema of an output, whose root may have any type.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the keyword, its position and the accepted alternative.
    pub fn output(value: Value) -> Result<Self, SchemaError> {
        Self::checked(value, Building::Now, &mut PatternAllowance::unbounded())
    }

    fn checked(
        value: Value,
        building: Building,
        allowance: &mut PatternAllowance,
    ) -> Result<Self, SchemaError> {
        let length = bulk::refuse(&value)?;
        let dialect = Dialect::of(value.get("$schema"))
            .ok_or_else(|| SchemaError::Dialect { pointer: "/$schema".to_owned() })?;
        let outline = Outline::read(&value, length, dialect)?;
        hidden::refuse(&value)?;
        let order = cost::children_first(&outline.nodes)?;
        let unseen = cost::check(&outline, &order)?;
        let patterns = pattern::check(&outline, &order, allowance)?;
        let plan = Plan::new(&outline)?;
        let quoted = explain::quoted(&value).saturating_add(patterns.translated);
        let validator_memory = build::memory(&value, &outline);
        let validator = match building {
            Building::Now => OnceLock::from(Ok(Built::new(&value, &outline, dialect)?)),
            Building::AtFirstUse => OnceLock::new(),
        };
        Ok(Self(Arc::new(Compiled {
            value,
            dialect,
            validator,
            patterns,
            unseen,
            length,
            validator_memory,
            quoted,
            plan,
        })))
    }

    /// Parses and checks the text of an input schema: at most 256 KiB, depth 32, no duplicate keys.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the keyword, its position and the accepted alternative.
    pub fn parse_input(text: &str) -> Result<Self, SchemaError> {
        Self::parse_input_built(text, Building::Now)
    }

    /// Parses and checks as [`parse_input`](Self::parse_input), and builds the validator now or
    /// later.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the keyword, its position and the accepted alternative. Errors of
    /// building the validator are returned only with [`Building::Now`]; otherwise every validation
    /// fails with them.
    pub fn parse_input_built(text: &str, building: Building) -> Result<Self, SchemaError> {
        Self::parse_input_within(text, building, &mut PatternAllowance::unbounded())
    }

    /// Parses and checks as [`parse_input_built`](Self::parse_input_built), and charges the
    /// patterns to `allowance` before they are compiled.
    ///
    /// # Errors
    ///
    /// As [`parse_input_built`](Self::parse_input_built), and [`SchemaError::PatternAllowance`].
    pub fn parse_input_within(
        text: &str,
        building: Building,
        allowance: &mut PatternAllowance,
    ) -> Result<Self, SchemaError> {
        Self::input_built(parse(text)?, building, allowance)
    }

    /// Parses and checks the text of an output schema, within the bounds of
    /// [`parse_input`](Self::parse_input).
    ///
    /// # Errors
    ///
    /// [`SchemaError`] with the keyword, its position and the accepted alternative.
    pub fn parse_output(text: &str) -> Result<Self, SchemaError> {
        Self::parse_output_built(text, Building::Now)
    }

    /// Parses and checks as [`parse_output`](Self::parse_output), and builds the validator now or
    /// later.
    ///
    /// # Errors
    ///
    /// As [`parse_input_built`](Self::parse_input_built).
    pub fn parse_output_built(text: &str, building: Building) -> Result<Self, SchemaError> {
        Self::parse_output_within(text, building, &mut PatternAllowance::unbounded())
    }

    /// Parses and checks as [`parse_output_built`](Self::parse_output_built), and charges the
    /// patterns to `allowance` before they are compiled.
    ///
    /// # Errors
    ///
    /// As [`parse_input_within`](Self::parse_input_within).
    pub fn parse_output_within(
        text: &str,
        building: Building,
        allowance: &mut PatternAllowance,
    ) -> Result<Self, SchemaError> {
        Self::checked(parse(text)?, building, allowance)
    }

    /// Returns the number of patterns, and their compiled size with the working memory of those for
    /// names, in bytes, which is the memory cost of keeping the schema.
    #[must_use]
    pub fn pattern_cost(&self) -> (usize, usize) {
        (self.0.patterns.count, self.0.patterns.together)
    }

    /// Returns the memory of the validator without its patterns, in bytes, whether it is built or
    /// not: an upper bound.
    #[must_use]
    pub fn validator_memory(&self) -> u64 {
        self.0.validator_memory
    }

    /// Returns the schema document.
    #[must_use]
    pub fn as_value(&self) -> &Value {
        &self.0.value
    }

    /// Returns whether the schema marks any value as a workspace path.
    #[must_use]
    pub fn has_workspace_paths(&self) -> bool {
        !self.0.plan.is_empty()
    }

    /// Calls `f` with every workspace path of a validated input and its use, within a budget. If
    /// several subschemas mark a path, one that does not say `read` counts.
    ///
    /// # Errors
    ///
    /// The first error of `f`, or of the budget.
    pub fn each_workspace_path<E: From<Exhausted>>(
        &self,
        input: &Value,
        budget: &dyn Budget,
        mut f: impl FnMut(&str, PathAccess) -> Result<(), E>,
    ) -> Result<(), E> {
        self.0.plan.each(input, budget, &mut f)
    }

    /// Replaces every workspace path of a validated input by the result of `f`, which receives its
    /// pointer and value, within a budget.
    ///
    /// # Errors
    ///
    /// The first error of `f`, or of the budget. Earlier paths stay replaced.
    pub fn map_workspace_paths<E: From<Exhausted>>(
        &self,
        input: &mut Value,
        budget: &dyn Budget,
        mut f: impl FnMut(&str, &str) -> Result<String, E>,
    ) -> Result<(), E> {
        self.0.plan.map(input, budget, &mut f)
    }

    fn built(&self) -> Result<&Built, &SchemaError> {
        let Compiled { value, length, dialect, .. } = &*self.0;
        let build = || Built::new(value, &Outline::read(value, *length, *dialect)?, *dialect);
        self.0.validator.get_or_init(build).as_ref()
    }

    #[cfg(test)]
    fn validator(&self) -> Result<&jsonschema::Validator<meter::Metered>, &SchemaError> {
        self.built().map(|built| &built.validator)
    }

    /// Returns whether the validator is built, or is quick to build.
    fn is_at_hand(&self) -> bool {
        /// The limits for a quick build: the length of the text and the compiled size of the
        /// patterns, in bytes. Building takes some 300 µs.
        const SMALL: (usize, usize) = (8 << 10, 16 << 10);
        let Compiled { validator, length, patterns, .. } = &*self.0;
        validator.get().is_some() || (*length <= SMALL.0 && patterns.together <= SMALL.1)
    }

    fn tariff(&self, steps: u64, error: Option<ErrorCost>) -> Tariff {
        let PatternLoad { value: value_pattern, name: name_pattern, .. } = self.0.patterns;
        let Unseen { silent, passes } = self.0.unseen;
        Tariff { steps, value_pattern, name_pattern, silent, passes, error }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.0.value).finish()
    }
}

/// Two schemas are equal if their documents are.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}
