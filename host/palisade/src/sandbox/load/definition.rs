//! Conversion of the definition of a tool, whose parts are bounded and checked.

use super::error::PluginRefused;
use crate::sandbox::bindings::exports::palisade::tool::tool as exported;
use crate::sandbox::bindings::palisade::tool::types as wit;
use crate::sandbox::output::METADATA;
use crate::tool::definition::Idempotence;
use crate::tool::json::parse_object;
use crate::tool::schema::{Building, PatternAllowance, SchemaError, hidden_in};
use crate::tool::text::elided;
use crate::tool::{Definition, DefinitionError, Schema, SideEffects};
use serde_json::{Map, Value};
use std::time::Duration;

/// The maximum number of patterns of a plugin: two for each tool of one with the maximum number of
/// tools.
const MAX_PATTERNS: usize = 512;
/// The maximum size of the compiled patterns of a plugin, in bytes: that of two of the largest
/// schemas.
const MAX_PATTERN_BYTES: usize = 8 << 20;

/// Returns what the patterns of a plugin may take together.
pub(crate) fn pattern_allowance() -> PatternAllowance {
    PatternAllowance::new(MAX_PATTERNS, MAX_PATTERN_BYTES)
}

/// Checks and converts one definition of a plugin. The patterns of its schemas are charged to what
/// the plugin has left.
pub(crate) fn definition(
    raw: &exported::Definition,
    building: Building,
    patterns: &mut PatternAllowance,
) -> Result<Definition, PluginRefused> {
    let tool = elided(&raw.name, 64);
    let refused = |source: DefinitionError| PluginRefused::Tool { tool: tool.clone(), source };
    let input = Schema::parse_input_within(&raw.input_schema, building, patterns)
        .map_err(|source| refused_schema(&tool, "input", source, DefinitionError::Input))?;
    let class = side_effects(raw.side_effects);
    let mut definition =
        Definition::with_schema(&raw.name, &raw.description, class, input).map_err(refused)?;
    if let Some(title) = &raw.title {
        definition = definition.with_title(title).map_err(refused)?;
    }
    if let Some(schema) = &raw.output_schema {
        definition = definition.with_checked_output(
            Schema::parse_output_within(schema, building, patterns).map_err(|source| {
                refused_schema(&tool, "output", source, DefinitionError::Output)
            })?,
        );
    }
    if let Some(ms) = raw.timeout_ms {
        definition = definition.with_timeout(Duration::from_millis(ms.into())).map_err(refused)?;
    }
    let metadata = metadata(&raw.metadata)
        .map_err(|reason| PluginRefused::Metadata { tool: tool.clone(), reason })?;
    if let Some((at, character)) = hidden_in(&metadata) {
        return Err(PluginRefused::HiddenMetadata {
            tool,
            at: elided(&at, 128),
            character: character.into(),
        });
    }
    let idempotence =
        if raw.idempotent { Idempotence::Idempotent } else { Idempotence::NotIdempotent };
    Ok(definition.with_idempotence(idempotence).with_metadata(metadata))
}

/// Returns the refusal of the schema of a tool.
fn refused_schema(
    tool: &str,
    schema: &'static str,
    source: SchemaError,
    other: fn(SchemaError) -> DefinitionError,
) -> PluginRefused {
    let tool = tool.to_owned();
    match source {
        SchemaError::PatternAllowance { keyword, pointer } => PluginRefused::Patterns {
            tool,
            schema,
            keyword,
            pointer: elided(&pointer, 128),
            count: MAX_PATTERNS,
            bytes: MAX_PATTERN_BYTES,
        },
        source => PluginRefused::Tool { tool, source: other(source) },
    }
}

fn side_effects(class: wit::SideEffects) -> SideEffects {
    match class {
        wit::SideEffects::None => SideEffects::None,
        wit::SideEffects::Read => SideEffects::Read,
        wit::SideEffects::Write => SideEffects::Write,
        wit::SideEffects::Execute => SideEffects::Execute,
        wit::SideEffects::Network => SideEffects::Network,
    }
}

fn metadata(text: &str) -> Result<Map<String, Value>, String> {
    parse_object(text, METADATA).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_a_definition_is_an_object() {
        for (text, members) in [("", 0), ("{}", 0), (" { } ", 0), (r#"{"a":1}"#, 1)] {
            assert_eq!(metadata(text).map(|map| map.len()), Ok(members), "{text}");
        }
        for text in ["[]", "{", "1"] {
            assert!(metadata(text).is_err(), "{text}");
        }
    }
}
