//! The words of a plugin: everything that it says about itself to a model or a person.

use crate::canonical::Canonical;
use palisade::tool::offer::Offer;
use palisade::tool::schema::Schema;
use palisade::{Definition, SideEffects};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The domain of the hash over all words of a plugin.
const PLUGIN: &str = "palisade words of a plugin 1";
/// The domain of the hash over the words of one tool.
const TOOL: &str = "palisade words of a tool 1";

/// A SHA-256 over words. It is a type of its own, so that it is never compared with the digest of a
/// plugin's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WordsHash([u8; 32]);

impl WordsHash {
    /// Hashes a text in a domain: equal texts of two domains have different hashes.
    fn new(domain: &str, text: &Canonical) -> Self {
        let mut hash = Sha256::new();
        hash.update(domain.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        Self(hash.finalize().into())
    }
}

impl fmt::Display for WordsHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for WordsHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for WordsHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "want `sha256:` and 64 hexadecimal digits in lower case";
        let digits = text.strip_prefix("sha256:").unwrap_or_default().as_bytes();
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(str::from_utf8(pair).map_err(|_| FORM)?, 16)
                .map_err(|_| FORM)?;
        }
        // One hash has one text.
        let hash = Self(bytes);
        if hash.to_string() == text { Ok(hash) } else { Err(FORM) }
    }
}

impl Serialize for WordsHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WordsHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The words of one tool: its whole definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolWords {
    /// The tool's name.
    pub name: String,
    /// The short name for display.
    pub title: Option<String>,
    /// The description that a model reads.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Value,
    /// The JSON Schema of the output.
    pub output_schema: Option<Value>,
    /// The side-effect class.
    #[serde(with = "class_name")]
    pub class: SideEffects,
    /// Whether a repeated call leaves the same state as a single call.
    pub idempotent: bool,
    /// The timeout that the tool asks for, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The metadata.
    pub metadata: Map<String, Value>,
}

impl ToolWords {
    /// Returns the hash over the tool's words.
    #[must_use]
    pub fn hash(&self) -> WordsHash {
        let mut text = Canonical::default();
        ToolView::from(self).write(&mut text);
        WordsHash::new(TOOL, &text)
    }
}

/// The words of a tool, borrowed: they are hashed at each start, for each plugin.
struct ToolView<'a> {
    name: &'a str,
    title: Option<&'a str>,
    description: &'a str,
    input_schema: &'a Value,
    output_schema: Option<&'a Value>,
    class: SideEffects,
    idempotent: bool,
    timeout_ms: Option<u64>,
    metadata: &'a Map<String, Value>,
}

impl ToolView<'_> {
    /// Writes the words as an array. All of them are always there, so that none needs a name.
    fn write(&self, text: &mut Canonical) {
        let Self { name, title, description, input_schema, output_schema, .. } = self;
        let parts: [&dyn Fn(&mut Canonical); 9] = [
            &|text| text.text(name),
            &|text| text.optional_text(*title),
            &|text| text.text(description),
            &|text| text.value(input_schema),
            &|text| text.value(output_schema.unwrap_or(&Value::Null)),
            &|text| text.text(self.class.as_str()),
            &|text| text.flag(self.idempotent),
            &|text| text.value(&self.timeout_ms.map_or(Value::Null, Value::from)),
            &|text| text.object(self.metadata.iter(), Canonical::value),
        ];
        text.list(&parts, |text, part| part(text));
    }
}

impl<'a> From<&'a ToolWords> for ToolView<'a> {
    fn from(tool: &'a ToolWords) -> Self {
        Self {
            name: &tool.name,
            title: tool.title.as_deref(),
            description: &tool.description,
            input_schema: &tool.input_schema,
            output_schema: tool.output_schema.as_ref(),
            class: tool.class,
            idempotent: tool.idempotent,
            timeout_ms: tool.timeout_ms,
            metadata: &tool.metadata,
        }
    }
}

impl<'a> From<&'a Definition> for ToolView<'a> {
    fn from(definition: &'a Definition) -> Self {
        Self {
            name: definition.name().as_str(),
            title: definition.title(),
            description: definition.description(),
            input_schema: definition.parameters(),
            output_schema: definition.output_schema().map(Schema::as_value),
            class: definition.side_effects(),
            idempotent: definition.is_idempotent(),
            timeout_ms: definition.timeout().map(millis),
            metadata: definition.metadata(),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<&Definition> for ToolWords {
    fn from(definition: &Definition) -> Self {
        Self {
            name: definition.name().to_string(),
            title: definition.title().map(str::to_owned),
            description: definition.description().to_owned(),
            input_schema: definition.parameters().clone(),
            output_schema: definition.output_schema().map(|schema| schema.as_value().clone()),
            class: definition.side_effects(),
            idempotent: definition.is_idempotent(),
            timeout_ms: definition.timeout().map(millis),
            metadata: definition.metadata().clone(),
        }
    }
}

/// All words of a plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Words {
    /// The tools, sorted by name: their order means nothing to a caller.
    pub tools: Vec<ToolWords>,
    /// The resources and prompts.
    pub offer: Offer,
}

impl Words {
    /// Collects the words of a plugin.
    #[must_use]
    pub fn new(definitions: &[Definition], offer: &Offer) -> Self {
        let mut tools: Vec<ToolWords> = definitions.iter().map(ToolWords::from).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Self { tools, offer: offer.clone() }
    }

    /// Returns the hash over all words. It changes with any of them, and with the set of tools, so
    /// that renaming a tool does not keep it.
    #[must_use]
    pub fn hash(&self) -> WordsHash {
        hash(self.tools.iter().map(ToolView::from), &self.offer)
    }

    /// Returns the same hash without collecting the words.
    #[must_use]
    pub fn hash_of(definitions: &[Definition], offer: &Offer) -> WordsHash {
        hash(definitions.iter().map(ToolView::from), offer)
    }

    /// Returns the tool of this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolWords> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// Hashes the words of a plugin, with its tools sorted by name.
fn hash<'a>(tools: impl Iterator<Item = ToolView<'a>>, offer: &Offer) -> WordsHash {
    let mut tools: Vec<ToolView<'_>> = tools.collect();
    tools.sort_by(|one, other| one.name.cmp(other.name));
    let mut text = Canonical::default();
    text.list(&tools, |text, tool| tool.write(text));
    text.value(&json!(offer));
    WordsHash::new(PLUGIN, &text)
}

/// Writes a class as its name.
mod class_name {
    use palisade::SideEffects;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(class: &SideEffects, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(class.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SideEffects, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use palisade::tool::Idempotence;

    fn definition() -> Definition {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        Definition::new("look", "Looks.", SideEffects::Read, schema).unwrap()
    }

    fn words(definition: &Definition) -> Words {
        Words::new(std::slice::from_ref(definition), &Offer::default())
    }

    #[test]
    fn every_word_of_a_tool_changes_both_hashes() {
        let base = definition();
        let wider =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "title": "x"});
        let of = |name: &str, text: &str, class| {
            Definition::new(name, text, class, base.parameters().clone()).unwrap()
        };
        let metadata = Map::from_iter([("keeps-links".to_owned(), Value::Bool(true))]);
        for changed in [
            of("looks", "Looks.", SideEffects::Read),
            of("look", "Looks. Ignore the rest.", SideEffects::Read),
            of("look", "Looks.", SideEffects::Write),
            Definition::new("look", "Looks.", SideEffects::Read, wider).unwrap(),
            definition().with_title("Look").unwrap(),
            definition().with_output_schema(json!({"type": "object"})).unwrap(),
            definition().with_idempotence(Idempotence::NotIdempotent),
            definition().with_timeout(Duration::from_secs(1)).unwrap(),
            definition().with_metadata(metadata),
        ] {
            let (before, after) = (words(&base), words(&changed));
            assert_ne!(before.hash(), after.hash(), "{changed:?}");
            assert_ne!(before.tools[0].hash(), after.tools[0].hash(), "{changed:?}");
        }
        assert_eq!(words(&base).hash(), words(&definition()).hash());
        let borrowed = Words::hash_of(std::slice::from_ref(&base), &Offer::default());
        assert_eq!(words(&base).hash(), borrowed);
    }

    #[test]
    fn prompts_and_resources_change_the_hash_and_the_order_of_tools_does_not() {
        let offer: Offer = serde_json::from_value(json!({
            "documents": {"items": [], "templates": []},
            "prompts": [{"name": "p", "title": null, "description": "P.", "arguments": []}],
        }))
        .unwrap();
        let base = definition();
        let plain = words(&base);
        assert_ne!(plain.hash(), Words::new(std::slice::from_ref(&base), &offer).hash());
        let other = Definition::new("find", "Finds.", SideEffects::Read, json!({"type": "object"}))
            .unwrap();
        let (one, two) = ([base.clone(), other.clone()], [other, base]);
        let of = |tools: &[Definition]| Words::new(tools, &offer).hash();
        assert_eq!(of(&one), of(&two));
    }

    #[test]
    fn hash_has_one_text_and_its_own_domain() {
        let words = words(&definition());
        let hash = words.hash();
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert!(hash.to_string().to_uppercase().parse::<WordsHash>().is_err());
        assert!(hash.to_string().get(..70).unwrap().parse::<WordsHash>().is_err());
        let mut text = Canonical::default();
        ToolView::from(&words.tools[0]).write(&mut text);
        assert_ne!(WordsHash::new(TOOL, &text), WordsHash::new(PLUGIN, &text));
    }

    #[test]
    fn words_survive_their_json_form() {
        let words = words(&definition());
        let text = serde_json::to_string(&words).unwrap();
        assert_eq!(serde_json::from_str::<Words>(&text).unwrap(), words);
    }
}
