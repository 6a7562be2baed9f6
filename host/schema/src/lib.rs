//! Untrusted JSON for the host Palisade: bounded parsing, validation against untrusted schemas, and
//! display that cannot deceive a reader.
//!
//! The crate `palisade` re-exports the parts that embedders need below `palisade::tool`; use them
//! from there.
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
