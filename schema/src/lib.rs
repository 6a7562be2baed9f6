//! JSON that nobody trusts, for the host Palisade: read within bounds, held against schemas that nobody trusts either, and shown without deceiving a reader.
//!
//! The crate `palisade` re-exports what embedders need of it, below `palisade::tool`; use it from there.
//!
//! ```
//! use palisade_schema::schema::Schema;
//! use serde_json::json;
//!
//! let schema = Schema::input(json!({"type": "object", "properties": {"x": {"type": "integer"}}}))?;
//! assert!(schema.validate(&json!({"x": 1})).is_ok());
//! assert!(schema.validate(&json!({"x": "one"})).is_err());
//! # Ok::<(), palisade_schema::schema::SchemaError>(())
//! ```

pub mod budget;
pub mod json;
mod nearest;
pub mod schema;
pub mod text;

pub use nearest::nearest_names;
