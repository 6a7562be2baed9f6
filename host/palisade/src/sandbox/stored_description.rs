//! The form in which descriptions are stored: in the plugin's own words.

use super::bindings::exports::palisade::tool::tool::Definition;
use super::bindings::palisade::tool::types::SideEffects;
use super::description::{Description, LeftOut};
use crate::tool::offer::Offer;
use serde::{Deserialize, Serialize};

/// The imports, the tools, and the resources and prompts of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredDescription {
    imports: Vec<String>,
    tools: Vec<StoredTool>,
    offer: Offer,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTool {
    name: String,
    title: Option<String>,
    description: String,
    input_schema: String,
    output_schema: Option<String>,
    class: Class,
    idempotent: bool,
    timeout_ms: Option<u32>,
    metadata: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Class {
    None,
    Read,
    Write,
    Execute,
    Network,
}

impl StoredDescription {
    /// Parses a description that is part of the program.
    pub(crate) fn parse(stored: &str) -> Option<Description> {
        serde_json::from_str::<Self>(stored).ok().map(Description::from)
    }
}

impl From<&Description> for StoredDescription {
    fn from(description: &Description) -> Self {
        Self {
            imports: description.imports.clone(),
            tools: description.tools.iter().map(StoredTool::from).collect(),
            offer: description.offer.clone(),
            left_out: description.left_out.clone(),
        }
    }
}

impl From<StoredDescription> for Description {
    fn from(stored: StoredDescription) -> Self {
        Self {
            imports: stored.imports,
            tools: stored.tools.into_iter().map(Definition::from).collect(),
            offer: stored.offer,
            left_out: stored.left_out,
        }
    }
}

impl From<&Definition> for StoredTool {
    fn from(tool: &Definition) -> Self {
        Self {
            name: tool.name.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            class: tool.side_effects.into(),
            idempotent: tool.idempotent,
            timeout_ms: tool.timeout_ms,
            metadata: tool.metadata.clone(),
        }
    }
}

impl From<StoredTool> for Definition {
    fn from(tool: StoredTool) -> Self {
        Self {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            input_schema: tool.input_schema,
            output_schema: tool.output_schema,
            side_effects: tool.class.into(),
            idempotent: tool.idempotent,
            timeout_ms: tool.timeout_ms,
            metadata: tool.metadata,
        }
    }
}

impl From<SideEffects> for Class {
    fn from(class: SideEffects) -> Self {
        match class {
            SideEffects::None => Self::None,
            SideEffects::Read => Self::Read,
            SideEffects::Write => Self::Write,
            SideEffects::Execute => Self::Execute,
            SideEffects::Network => Self::Network,
        }
    }
}

impl From<Class> for SideEffects {
    fn from(class: Class) -> Self {
        match class {
            Class::None => Self::None,
            Class::Read => Self::Read,
            Class::Write => Self::Write,
            Class::Execute => Self::Execute,
            Class::Network => Self::Network,
        }
    }
}
