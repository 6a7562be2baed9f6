//! The offer of a server: its tools, in its own words, within bounds.

use palisade::tool::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most tools of one server.
pub(crate) const MAX_TOOLS: usize = 256;
/// The most bytes of the words of one server's tools together.
pub(crate) const MAX_WORDS: usize = 2 << 20;

/// A tool in the words of its server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OfferedTool {
    /// The name that the server gives it.
    pub name: String,
    /// A short name for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its input.
    pub input: Map<String, Value>,
    /// The JSON Schema of its structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Map<String, Value>>,
}

impl OfferedTool {
    /// Returns the length of the words, in bytes.
    pub(crate) fn length(&self) -> usize {
        let texts = [&self.title, &self.description].into_iter().flatten().map(String::len);
        let schemas = std::iter::once(&self.input).chain(&self.output);
        let schemas = schemas.map(|it| serde_json::to_vec(it).map_or(0, |text| text.len()));
        self.name.len() + texts.sum::<usize>() + schemas.sum::<usize>()
    }
}

impl From<rmcp::model::Tool> for OfferedTool {
    fn from(tool: rmcp::model::Tool) -> Self {
        let of_annotations = || tool.annotations.as_ref().and_then(|it| it.title.clone());
        Self {
            title: tool.title.clone().or_else(of_annotations),
            name: tool.name.into_owned(),
            description: tool.description.map(std::borrow::Cow::into_owned),
            input: tool.input_schema.as_ref().clone(),
            output: tool.output_schema.map(|schema| schema.as_ref().clone()),
        }
    }
}

/// The tools that a server offers, with the name and the version that it gives itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Offer {
    /// The name that the server gives itself, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The version that it gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its tools, sorted by name.
    pub tools: Vec<OfferedTool>,
}

impl Offer {
    /// Returns the SHA-256 of all words, by which a person approves what a terminal cannot show.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns a tool by the name that the server gives it.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
