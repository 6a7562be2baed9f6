//! The schemas that tools bring along: checked once, then used to validate, and never trusted.
//!
//! They are a crate of their own, `palisade-schema`, so that the validator, which is large, is compiled by itself and to be small.

pub(crate) use palisade_schema::schema::hidden_in;
pub(in crate::tool) use palisade_schema::schema::{Shape, holds, join, percent_decode};

pub use palisade_schema::schema::unreviewed;
pub use palisade_schema::schema::{
    Building, Dialect, MAX_CHAIN, MAX_DEPTH, MAX_EXPANDED, MAX_NAME, MAX_PATTERN, MAX_PATTERN_BYTES, MAX_PATTERNS,
    MAX_PATTERNS_TOGETHER, MAX_SCHEMA, MAX_STEPS, MAX_SUBSCHEMAS, MAX_VALUE_DEPTH, MAX_VIOLATIONS, MAX_VISITS, Schema,
    SchemaError, Violation, Violations, WORKSPACE_PATH,
};
