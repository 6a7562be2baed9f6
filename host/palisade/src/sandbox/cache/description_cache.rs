//! The description of a plugin as the cache stores it: in the plugin's own words, which are checked
//! again at each read.

use crate::sandbox::bindings::exports::palisade::tool::tool::Definition;
use crate::sandbox::bindings::palisade::tool::types::SideEffects;
use crate::sandbox::description::Description;
use crate::tool::offer::Offer;
use serde::{Deserialize, Serialize};

/// The version of the checks. Raised whenever they become stricter, so that older entries count as
/// absent.
const RULES: u32 = 3;

/// The imports, the tools, and the resources and prompts of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedDescription {
    rules: u32,
    host: String,
    imports: Vec<String>,
    tools: Vec<CachedTool>,
    offer: Offer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedTool {
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

impl CachedDescription {
    pub(super) fn new(description: &Description) -> Self {
        Self {
            rules: RULES,
            host: env!("CARGO_PKG_VERSION").to_owned(),
            imports: description.imports.clone(),
            tools: description.tools.iter().map(CachedTool::from).collect(),
            offer: description.offer.clone(),
        }
    }

    /// Parses an entry. Returns `None` unless this version of the host wrote it.
    pub(super) fn parse(bytes: &[u8]) -> Option<Description> {
        let cached: Self = serde_json::from_slice(bytes).ok()?;
        (cached.rules == RULES && cached.host == env!("CARGO_PKG_VERSION")).then(|| Description {
            imports: cached.imports,
            tools: cached.tools.into_iter().map(Definition::from).collect(),
            offer: cached.offer,
        })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Serialisation fails only for maps with keys that are not strings. There are none.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl From<&Definition> for CachedTool {
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

impl From<CachedTool> for Definition {
    fn from(tool: CachedTool) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_description_is_valid_for_this_version_only() {
        let said = Definition {
            name: "t".to_owned(),
            title: None,
            description: "A tool.".to_owned(),
            input_schema: "{}".to_owned(),
            output_schema: None,
            side_effects: SideEffects::Write,
            idempotent: true,
            timeout_ms: Some(5),
            metadata: "{}".to_owned(),
        };
        let description = Description {
            imports: vec!["wasi:io/streams".to_owned()],
            tools: vec![said],
            offer: Offer::default(),
        };
        let cached = CachedDescription::new(&description);
        let parsed = CachedDescription::parse(&cached.to_bytes()).map(|parsed| {
            let names: Vec<_> = parsed.tools.iter().map(|tool| tool.name.clone()).collect();
            (CachedDescription::new(&parsed), names)
        });
        assert_eq!(parsed, Some((cached.clone(), vec!["t".to_owned()])));
        let of_other_rules = CachedDescription { rules: RULES - 1, ..cached.clone() };
        let of_other_host = CachedDescription { host: "0.0.0".to_owned(), ..cached };
        for other in [of_other_rules, of_other_host] {
            assert!(CachedDescription::parse(&other.to_bytes()).is_none());
        }
    }
}
