//! The JSON Schemas of tools: untrusted, checked once and then used for validation.
//!
//! They live in the crate `palisade-schema`, so that the large validator is compiled separately and
//! optimised for size.

pub(crate) use palisade_schema::schema::hidden_in;

pub use palisade_schema::schema::unreviewed;
pub use palisade_schema::schema::{
    Building, Dialect, MAX_CHAIN, MAX_DEPTH, MAX_EXPANDED, MAX_NAME, MAX_PATTERN,
    MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_PATTERNS_TOGETHER, MAX_SCHEMA, MAX_STEPS, MAX_SUBSCHEMAS,
    MAX_VALUE_DEPTH, MAX_VIOLATIONS, MAX_VISITS, PATH_ACCESS, PathAccess, PatternAllowance, Schema,
    SchemaError, Violation, Violations, WORKSPACE_PATH, drop_absent,
};
