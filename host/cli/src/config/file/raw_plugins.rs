//! The table `[plugins]` of a file, before its values are checked: three keys, and a table for each
//! plugin.

use crate::config::keys::RawKey;
use crate::config::plugins::RawPlugin;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The keys of the table. A plugin of such a name cannot have a table.
const KEYS: [&str; 3] = ["directories", "builtin", "keys"];

#[derive(Default)]
pub(super) struct RawPlugins {
    pub(super) directories: Vec<String>,
    pub(super) builtin: Option<bool>,
    pub(super) keys: Vec<RawKey>,
    /// The tables of plugins, by name.
    pub(super) named: BTreeMap<String, RawPlugin>,
}

impl<'de> Deserialize<'de> for RawPlugins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor)
    }
}

/// Reads the whole table.
struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = RawPlugins;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawPlugins, A::Error> {
        let mut plugins = RawPlugins::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "directories" => plugins.directories = map.next_value()?,
                "builtin" => plugins.builtin = map.next_value()?,
                "keys" => plugins.keys = map.next_value()?,
                name => {
                    let plugin = map.next_value_seed(OfPlugin)?;
                    let plugin = plugin.ok_or_else(|| A::Error::unknown_field(name, &KEYS))?;
                    plugins.named.insert(key, plugin);
                }
            }
        }
        Ok(plugins)
    }
}

/// Reads the table of a plugin, or nothing if the value is no table: the key is then a misspelled
/// one.
struct OfPlugin;

impl<'de> DeserializeSeed<'de> for OfPlugin {
    type Value = Option<RawPlugin>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OfPlugin {
    type Value = Option<RawPlugin>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table of a plugin")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        RawPlugin::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}
