//! The names of formats and providers in requests: those that `palisade-formats` reads and prints.

use serde::{Deserialize as _, Deserializer, de};
use std::fmt::Display;
use std::str::FromStr;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

/// Reads a value by its name.
///
/// # Errors
///
/// The error of an unknown name.
pub(super) fn named<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let name = String::deserialize(from)?;
    name.parse().map_err(de::Error::custom)
}

/// Returns the schema of a text that is one of these names.
pub(super) fn one_of(names: impl IntoIterator<Item = &'static str>) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build()
}
