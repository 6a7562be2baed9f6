//! The description of a plugin, in the plugin's own words.

mod stored;

pub(crate) use stored::StoredDescription;

use super::bindings::exports::palisade::tool::tool::Definition;
use crate::tool::offer::Offer;

/// The imports, the tools, and the resources and prompts of a plugin. Nothing in it is checked.
pub(crate) struct Description {
    /// The names of the imports.
    pub(crate) imports: Vec<String>,
    /// The tools.
    pub(crate) tools: Vec<Definition>,
    /// The resources and prompts.
    pub(crate) offer: Offer,
}

impl Description {
    /// Parses a stored description.
    pub(crate) fn parse(stored: &str) -> Option<Self> {
        serde_json::from_str::<StoredDescription>(stored).ok().map(Self::from)
    }
}
