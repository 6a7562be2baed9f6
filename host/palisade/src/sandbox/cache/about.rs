//! The description of a plugin as the cache stores it: in the plugin's own words, which are checked
//! again at each read.

use super::super::bindings::exports::palisade::tool::tool::Definition;
use super::super::bindings::palisade::tool::types::SideEffects;
use crate::tool::offer::Offer;
use serde::{Deserialize, Serialize};

/// The version of the checks. Raised whenever they become stricter, so that older entries count as
/// absent.
const RULES: u32 = 2;

/// The imports, the tools, and the resources and prompts of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct About {
    rules: u32,
    host: String,
    pub(in super::super) imports: Vec<String>,
    tools: Vec<Told>,
    offer: Offer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
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

impl About {
    pub(in super::super) fn new(
        imports: Vec<String>,
        described: &[Definition],
        offer: &Offer,
    ) -> Self {
        let tools = described.iter().map(Told::from).collect();
        Self {
            rules: RULES,
            host: env!("CARGO_PKG_VERSION").to_owned(),
            imports,
            tools,
            offer: offer.clone(),
        }
    }

    /// Parses an entry. Returns `None` unless this version of the host wrote it.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let about: Self = serde_json::from_slice(bytes).ok()?;
        (about.rules == RULES && about.host == env!("CARGO_PKG_VERSION")).then_some(about)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Serialisation fails only for maps with keys that are not strings. There are none.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the plugin's own description.
    pub(in super::super) fn described(self) -> (Vec<Definition>, Offer) {
        (self.tools.into_iter().map(Definition::from).collect(), self.offer)
    }
}

impl From<&Definition> for Told {
    fn from(told: &Definition) -> Self {
        Self {
            name: told.name.clone(),
            title: told.title.clone(),
            description: told.description.clone(),
            input_schema: told.input_schema.clone(),
            output_schema: told.output_schema.clone(),
            class: told.side_effects.into(),
            idempotent: told.idempotent,
            timeout_ms: told.timeout_ms,
            metadata: told.metadata.clone(),
        }
    }
}

impl From<Told> for Definition {
    fn from(told: Told) -> Self {
        Self {
            name: told.name,
            title: told.title,
            description: told.description,
            input_schema: told.input_schema,
            output_schema: told.output_schema,
            side_effects: told.class.into(),
            idempotent: told.idempotent,
            timeout_ms: told.timeout_ms,
            metadata: told.metadata,
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
        let about = About::new(vec!["wasi:io/streams".to_owned()], &[said], &Offer::default());
        assert_eq!(About::parse(&about.to_bytes()), Some(about.clone()));
        let (described, _) = about.clone().described();
        assert_eq!(described.iter().map(|told| &*told.name).collect::<Vec<_>>(), ["t"]);
        let of_other_rules = About { rules: RULES - 1, ..about.clone() };
        let of_other_host = About { host: "0.0.0".to_owned(), ..about };
        for other in [of_other_rules, of_other_host] {
            assert_eq!(About::parse(&other.to_bytes()), None);
        }
    }
}
