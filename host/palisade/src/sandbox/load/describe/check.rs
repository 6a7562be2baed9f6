//! The checks of a plugin's description, and its tools' definitions.

use crate::execution::account::{DescriptionMemory, fits_address_space};
use crate::sandbox::bindings::exports::palisade::tool::tool as exported;
use crate::sandbox::description::Description;
use crate::sandbox::load::definition::{definition, pattern_allowance};
use crate::sandbox::load::error::PluginRefused;
use crate::tool::Definition;
use crate::tool::json::footprint;
use crate::tool::offer::Offer;
use crate::tool::schema::{Building, Schema};
use serde_json::Value;
use std::collections::HashSet;

/// The maximum number of tools of one plugin.
const MAX_TOOLS: usize = 256;
/// The maximum length of all schemas of a plugin together, in bytes of JSON: that of four of the
/// largest schemas. Compiled, they take about a hundred times as much memory.
const MAX_TEXT: usize = 1 << 20;
/// The maximum memory of all parsed schemas and metadata of a plugin together, in bytes: that of
/// ordinary schemas with [`MAX_TEXT`] bytes, with room to spare. Texts of small objects take up to
/// 90 times their length.
const MAX_MEMORY: u64 = 32 << 20;

/// The memory of a parsed and compiled schema for each byte of its text, at worst.
const MEMORY_PER_BYTE: usize = 100;

/// Checks a plugin's description and returns its tools.
pub(in crate::sandbox::load) fn checked(
    description: &Description,
    building: Building,
) -> Result<Vec<Definition>, PluginRefused> {
    let tools = &description.tools;
    description.offer.check()?;
    if tools.is_empty() || tools.len() > MAX_TOOLS {
        return Err(PluginRefused::Count(tools.len()));
    }
    // Before any of them is parsed and compiled.
    let schemas =
        tools.iter().flat_map(|raw| [Some(&raw.input_schema), raw.output_schema.as_ref()]);
    if schemas.flatten().map(String::len).sum::<usize>() > MAX_TEXT {
        return Err(PluginRefused::Schemas { bytes: MAX_TEXT });
    }
    let mut memory = 0_u64;
    let mut patterns = pattern_allowance();
    let mut definitions = Vec::with_capacity(tools.len());
    for raw in tools {
        check_address_space(raw)?;
        let definition = definition(raw, building, &mut patterns)?;
        memory = memory.saturating_add(parsed(&definition));
        if memory > MAX_MEMORY {
            return Err(PluginRefused::Memory { bytes: MAX_MEMORY });
        }
        definitions.push(definition);
    }
    let mut names = HashSet::new();
    match definitions.iter().find(|definition| !names.insert(definition.name().clone())) {
        Some(twice) => Err(PluginRefused::TwiceNamed(twice.name().to_string())),
        None => Ok(definitions),
    }
}

/// Refuses a tool whose schemas would take the room of the host in a limited address space.
fn check_address_space(raw: &exported::Definition) -> Result<(), PluginRefused> {
    let texts = raw.input_schema.len() + raw.output_schema.as_ref().map_or(0, String::len);
    let wanted = texts.saturating_mul(MEMORY_PER_BYTE);
    match fits_address_space(wanted) {
        true => Ok(()),
        false => Err(PluginRefused::NoAddressSpace { bytes: wanted as u64 }),
    }
}

/// Returns the memory of a description. The host holds it for as long as the plugin is loaded. The
/// resources and prompts have a bounded JSON form, and their texts are stored twice.
pub(in crate::sandbox::load) fn memory(
    definitions: &[Definition],
    offer: &Offer,
) -> DescriptionMemory {
    let described = |tool: &Definition| {
        let texts = tool.description().len() + tool.title().map_or(0, str::len);
        size_of::<Definition>() as u64 + texts as u64 + parsed(tool)
    };
    DescriptionMemory {
        described: definitions.iter().map(described).sum::<u64>() + 2 * offer.length() as u64,
        validators: definitions.iter().flat_map(schemas).map(Schema::validator_memory).sum(),
    }
}

fn schemas(definition: &Definition) -> impl Iterator<Item = &Schema> {
    std::iter::once(definition.input_schema()).chain(definition.output_schema())
}

/// Returns the memory of the parsed schemas and metadata of a tool, in bytes.
fn parsed(definition: &Definition) -> u64 {
    let schemas = schemas(definition).map(|schema| footprint::of(schema.as_value()));
    let metadata = definition.metadata().iter();
    let member = |(name, value): (&String, &Value)| {
        size_of::<(String, Value)>() as u64 + name.len() as u64 + footprint::of(value)
    };
    schemas.chain(metadata.map(member)).sum()
}
