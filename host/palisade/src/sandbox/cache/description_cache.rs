//! The description of a plugin as the cache stores it: in the plugin's own words, which are checked
//! again at each read.

use crate::sandbox::description::Description;
use crate::sandbox::stored_description::StoredDescription;
use serde::{Deserialize, Serialize};

/// The version of the checks. Raised whenever they become stricter, so that older entries count as
/// absent.
const RULES: u32 = 4;

/// A description with the versions that it is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedDescription {
    rules: u32,
    host: String,
    #[serde(flatten)]
    description: StoredDescription,
}

impl CachedDescription {
    pub(super) fn new(description: &Description) -> Self {
        Self {
            rules: RULES,
            host: env!("CARGO_PKG_VERSION").to_owned(),
            description: StoredDescription::from(description),
        }
    }

    /// Parses an entry. Returns `None` unless this version of the host wrote it.
    pub(super) fn parse(bytes: &[u8]) -> Option<Description> {
        let cached: Self = serde_json::from_slice(bytes).ok()?;
        (cached.rules == RULES && cached.host == env!("CARGO_PKG_VERSION"))
            .then(|| cached.description.into())
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Serialisation fails only for maps with keys that are not strings. There are none.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::bindings::exports::palisade::tool::tool::Definition;
    use crate::sandbox::bindings::palisade::tool::types::SideEffects;
    use crate::sandbox::description::LeftOut;
    use crate::tool::offer::Offer;

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
            left_out: vec![LeftOut::new("a:b/c#f", &"it is asynchronous")],
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
