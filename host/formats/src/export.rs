//! Tool definitions in the formats of model providers and MCP clients.
//!
//! The canonical form is JSON Schema 2020-12. Keywords that a provider does not read move into a
//! description, after the convention of Anthropic's own libraries (`{minimum: 1, maximum: 10}`),
//! and are reported as a [`Weakening`]. A program validates every call against the canonical
//! schema, regardless of the exported one.

mod merge;
mod portable;
mod profile;
mod recursion;
mod references;
mod rewrite;
mod strict;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::DefinitionView;
use profile::Profile;
use rewrite::{Rewritten, rewrite, rewrite_output};
use strict::Rules;

/// MCP's name for the schema of an output.
const OUTPUT_SCHEMA: &str = "outputSchema";

/// A format of tool definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// OpenAI's Chat Completions.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// The Model Context Protocol.
    Mcp,
}

/// The degree to which a schema may be changed for a provider's strict mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// The schema stays as close to the original as the provider permits. An OpenAI tool is
    /// `strict` only if the schema conforms unchanged.
    AsIs,
    /// The schema is transformed into the provider's strict subset if possible.
    Transform,
}

/// A part of a definition that a format cannot carry unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weakening {
    /// The tool's name.
    pub tool: String,
    /// A JSON pointer into the input schema; empty for the root and for parts outside the schema.
    pub pointer: String,
    /// The keyword, or the name of the part.
    pub keyword: String,
    /// The effect of the export on it.
    pub effect: String,
}

impl fmt::Display for Weakening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, pointer, keyword, effect } = self;
        match pointer.as_str() {
            "" if keyword == OUTPUT_SCHEMA => write!(f, "{tool}: `{keyword}` {effect}"),
            "" => write!(f, "{tool}: `{keyword}` of the schema itself {effect}"),
            _ => write!(f, "{tool}: `{keyword}` at `{pointer}` {effect}"),
        }
    }
}

/// An exported definition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Exported {
    /// The tool in the form of the provider's list.
    pub tool: Value,
    /// The parts that were weakened.
    pub weakened: Vec<Weakening>,
}

/// Exports one tool as an element of a request's list.
#[must_use]
pub fn export(view: &DefinitionView<'_>, format: Format, strictness: Strictness) -> Exported {
    let input = convert_input(view, format, strictness);
    let mut weakened = input.weakened;
    weakened.extend(lost_output_schema(view, format));
    let tool = match format {
        Format::OpenAi => {
            let function = openai_function(view, input.schema, input.strict);
            json!({"type": "function", "function": function})
        }
        Format::OpenAiResponses => {
            let mut tool = openai_function(view, input.schema, input.strict);
            tool.insert("type".to_owned(), json!("function"));
            Value::Object(tool)
        }
        Format::Anthropic => anthropic_tool(view, input.schema, input.strict),
        Format::Gemini => {
            json!({
                "name": view.name,
                "description": view.description,
                "parametersJsonSchema": input.schema,
            })
        }
        Format::Mcp => mcp_tool(view, input.schema),
    };
    Exported { tool, weakened }
}

/// Exports tools as the value that goes into a request: an array for OpenAI and Anthropic,
/// `[{"functionDeclarations": […]}]` for Gemini, `{"tools": […]}` for MCP.
#[must_use]
pub fn export_all(
    views: &[DefinitionView<'_>],
    format: Format,
    strictness: Strictness,
) -> (Value, Vec<Weakening>) {
    let mut tools = Vec::with_capacity(views.len());
    let mut weakened = Vec::new();
    for view in views {
        let exported = export(view, format, strictness);
        tools.push(exported.tool);
        weakened.extend(exported.weakened);
    }
    let request = match format {
        Format::Gemini => json!([{"functionDeclarations": tools}]),
        Format::Mcp => json!({"tools": tools}),
        Format::OpenAi | Format::OpenAiResponses | Format::Anthropic => Value::Array(tools),
    };
    (request, weakened)
}

/// Returns the hints that MCP clients display, for a class of side effects as in
/// [`DefinitionView::side_effects`]. An unknown class counts as the highest. All four hints are
/// always sent, because the protocol's defaults differ. A tool with granted requests is of the open
/// world in any class.
#[must_use]
pub fn annotations(side_effects: &str, idempotent: bool) -> Value {
    json!({
        "readOnlyHint": matches!(side_effects, "none" | "read"),
        "destructiveHint": !matches!(side_effects, "none" | "read"),
        "idempotentHint": idempotent,
        "openWorldHint": !matches!(side_effects, "none" | "read" | "write"),
    })
}

impl Format {
    /// All formats, in the order in which they are listed to users.
    pub const ALL: [Self; 5] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp];

    /// Returns the format's name, such as `openai-responses`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
        }
    }

    fn profile(self, strictness: Strictness) -> &'static Profile {
        match (self, strictness) {
            (Self::OpenAi | Self::OpenAiResponses, Strictness::AsIs) => &profile::OPENAI,
            (Self::OpenAi | Self::OpenAiResponses, Strictness::Transform) => {
                &profile::OPENAI_STRICT
            }
            (Self::Anthropic, Strictness::AsIs) => &profile::ANTHROPIC,
            (Self::Anthropic, Strictness::Transform) => &profile::ANTHROPIC_STRICT,
            (Self::Gemini, Strictness::AsIs) => &profile::GEMINI,
            (Self::Gemini, Strictness::Transform) => &profile::GEMINI_STRICT,
            (Self::Mcp, _) => &profile::MCP,
        }
    }

    /// Returns the strict-mode rules that a tool is checked against, if the format has any.
    fn rules(self, strictness: Strictness) -> Option<&'static Rules> {
        match (self, strictness) {
            (Self::OpenAi | Self::OpenAiResponses, _) => Some(&strict::OPENAI),
            (Self::Anthropic, Strictness::Transform) => Some(&strict::ANTHROPIC),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An unknown format name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error(
    "no format is called {name:?}; there are openai, openai-responses, anthropic, gemini and mcp"
)]
pub struct UnknownFormat {
    /// The given name.
    pub name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == name)
            .ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// An input schema in the provider's form.
struct Input {
    schema: Value,
    strict: bool,
    weakened: Vec<Weakening>,
}

fn convert_input(view: &DefinitionView<'_>, format: Format, strictness: Strictness) -> Input {
    let Rewritten { schema, weakened, blocked } = rewrite(view, format.profile(strictness));
    let Some(rules) = format.rules(strictness) else {
        return Input { schema, strict: false, weakened };
    };
    match (blocked.map_or_else(|| rules.check(&schema), Err), strictness) {
        (Ok(()), _) => Input { schema, strict: true, weakened },
        (Err(_), Strictness::AsIs) => Input { schema, strict: false, weakened },
        (Err(reason), Strictness::Transform) => {
            let mut input = convert_input(view, format, Strictness::AsIs);
            input.strict = false;
            input.weakened.push(Weakening {
                tool: view.name.to_owned(),
                pointer: reason.pointer,
                keyword: "strict".to_owned(),
                effect: format!("is not possible: {}", reason.explanation),
            });
            input
        }
    }
}

/// Returns the loss of the output schema, for which only MCP has a field. A dropped title is not
/// reported: titles are for users, not models.
fn lost_output_schema(view: &DefinitionView<'_>, format: Format) -> Option<Weakening> {
    let is_lost = view.output_schema.is_some() && format != Format::Mcp;
    is_lost.then(|| Weakening {
        tool: view.name.to_owned(),
        pointer: String::new(),
        keyword: OUTPUT_SCHEMA.to_owned(),
        effect: "is left out: this format has no place for it".to_owned(),
    })
}

fn openai_function(view: &DefinitionView<'_>, schema: Value, strict: bool) -> Map<String, Value> {
    // `strict` is always written, because OpenAI's two APIs have different defaults for it.
    Map::from_iter([
        ("name".to_owned(), json!(view.name)),
        ("description".to_owned(), json!(view.description)),
        ("parameters".to_owned(), schema),
        ("strict".to_owned(), json!(strict)),
    ])
}

fn anthropic_tool(view: &DefinitionView<'_>, schema: Value, strict: bool) -> Value {
    let fields = [
        ("name", Some(json!(view.name))),
        ("description", Some(json!(view.description))),
        ("input_schema", Some(schema)),
        ("strict", strict.then_some(json!(true))),
    ];
    object_of_present(fields)
}

fn mcp_tool(view: &DefinitionView<'_>, schema: Value) -> Value {
    let output = view.output_schema.map(|schema| rewrite_output(schema, view.name, &profile::MCP));
    // The effects of other tools are not known here, so no hint promises that they are harmless.
    let (class, idempotent) = match view.calls_tools {
        true => ("network", false),
        false => (view.side_effects, view.idempotent),
    };
    let mut hints = annotations(class, idempotent);
    if view.sends_requests {
        hints["openWorldHint"] = true.into();
    }
    let fields = [
        ("name", Some(json!(view.name))),
        ("title", view.title.map(Value::from)),
        ("description", Some(json!(view.description))),
        ("inputSchema", Some(schema)),
        ("outputSchema", output),
        ("annotations", Some(hints)),
    ];
    object_of_present(fields)
}

fn object_of_present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    fields
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect::<Map<_, _>>()
        .into()
}
