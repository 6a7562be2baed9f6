//! The checks of a plugin's description, and its tools' definitions.

use crate::sandbox::bindings::exports::palisade::tool::tool as wit;
use crate::sandbox::description::Description;
use crate::sandbox::load::definition::definition;
use crate::sandbox::load::error::PluginRefused;
use crate::tool::Definition;
use crate::tool::schema::Building;
use std::collections::HashSet;

/// The maximum number of tools of one plugin.
const MAX_TOOLS: usize = 256;

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
    let mut budget = SchemaBudget::default();
    let mut definitions = Vec::with_capacity(tools.len());
    for raw in tools {
        budget.charge_text(raw)?;
        let definition = definition(raw, building)?;
        budget.charge_patterns(&definition)?;
        definitions.push(definition);
    }
    let mut names = HashSet::new();
    match definitions.iter().find(|definition| !names.insert(definition.name().clone())) {
        Some(twice) => Err(PluginRefused::TwiceNamed(twice.name().to_string())),
        None => Ok(definitions),
    }
}

/// The budget of all schemas of a plugin together. Each schema has bounds of its own, but a plugin
/// may have hundreds of schemas.
#[derive(Default)]
struct SchemaBudget {
    text: usize,
    count: usize,
    bytes: usize,
}

impl SchemaBudget {
    /// The size of four of the largest schemas, in bytes of JSON. Compiled, they take about a
    /// hundred times as much memory.
    const TEXT: usize = 1 << 20;
    /// Two patterns for each tool of a plugin with the maximum number of tools.
    const COUNT: usize = 512;
    /// The size of the compiled patterns of two of the largest schemas, in bytes.
    const BYTES: usize = 8 << 20;

    fn charge_text(&mut self, raw: &wit::Definition) -> Result<(), PluginRefused> {
        self.text += raw.input_schema.len() + raw.output_schema.as_ref().map_or(0, String::len);
        if self.text <= Self::TEXT {
            Ok(())
        } else {
            Err(PluginRefused::Schemas { bytes: Self::TEXT })
        }
    }

    fn charge_patterns(&mut self, definition: &Definition) -> Result<(), PluginRefused> {
        for schema in std::iter::once(definition.input_schema()).chain(definition.output_schema()) {
            let (count, bytes) = schema.pattern_cost();
            self.count += count;
            self.bytes += bytes;
        }
        let is_within = self.count <= Self::COUNT && self.bytes <= Self::BYTES;
        if is_within {
            Ok(())
        } else {
            Err(PluginRefused::Patterns { count: Self::COUNT, bytes: Self::BYTES })
        }
    }
}
