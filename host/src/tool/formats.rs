//! Definitions in the forms that model providers and MCP clients read.
//!
//! The canonical form is JSON Schema 2020-12. Where a provider reads less, what it cannot read moves into a description, after the
//! convention of Anthropic's own libraries (`{minimum: 1, maximum: 10}`), and is reported as a [`Weakening`]. The host validates
//! every call against the canonical schema, whatever the provider was told.

mod absent;
mod local;
mod profile;
mod rewrite;
mod strict;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

pub use absent::drop_absent;

use profile::Profile;
use rewrite::{Rewritten, rewrite};
use strict::Rules;

/// How MCP calls the schema of an output.
const OUTPUT_SCHEMA: &str = "outputSchema";

/// What an exporter needs to know of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolView<'a> {
    /// The tool's name; every accepted name is valid in every format.
    pub name: &'a str,
    /// A short name for people.
    pub title: Option<&'a str>,
    /// What the tool does.
    pub description: &'a str,
    /// The schema of the input, already accepted by [`Schema::input`](super::schema::Schema::input).
    pub input_schema: &'a Value,
    /// The schema of the output, likewise.
    pub output_schema: Option<&'a Value>,
    /// `none`, `read`, `write`, `execute` or `network`.
    pub side_effects: &'a str,
    /// The plugin's word that calling twice leaves the same state as calling once.
    pub idempotent: bool,
}

/// The formats that definitions are exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// Whether a schema may be changed so that the provider can hold the model to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// The schema stays as near to its original as the provider lets it. An OpenAI tool is `strict` only if it conforms as it is.
    AsIs,
    /// The schema is brought into the provider's strict subset where it can be.
    Transform,
}

/// Something of a definition that a format cannot carry as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weakening {
    /// The tool's name.
    pub tool: String,
    /// A JSON pointer into the input schema; empty for its root and for what is no part of it.
    pub pointer: String,
    /// The keyword, or the part of the definition.
    pub keyword: String,
    /// What has become of it.
    pub what: String,
}

impl fmt::Display for Weakening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, pointer, keyword, what } = self;
        match pointer.as_str() {
            "" if keyword == OUTPUT_SCHEMA => write!(f, "{tool}: `{keyword}` {what}"),
            "" => write!(f, "{tool}: `{keyword}` of the schema itself {what}"),
            _ => write!(f, "{tool}: `{keyword}` at `{pointer}` {what}"),
        }
    }
}

/// A definition in another form.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// One tool, as it stands in the provider's list.
    pub tool: Value,
    /// What got lost on the way.
    pub weakened: Vec<Weakening>,
}

/// Exports one tool.
#[must_use]
pub fn export(view: &ToolView<'_>, format: Format, strictness: Strictness) -> Exported {
    let input = input(view, format, strictness);
    let mut weakened = input.weakened;
    weakened.extend(without_place(view, format));
    let tool = match format {
        Format::OpenAi => json!({"type": "function", "function": openai(view, input.schema, input.strict)}),
        Format::OpenAiResponses => {
            let mut tool = openai(view, input.schema, input.strict);
            tool.insert("type".to_owned(), json!("function"));
            Value::Object(tool)
        }
        Format::Anthropic => anthropic(view, input.schema, input.strict),
        Format::Gemini => {
            json!({"name": view.name, "description": view.description, "parametersJsonSchema": input.schema})
        }
        Format::Mcp => mcp(view, input.schema),
    };
    Exported { tool, weakened }
}

/// Exports tools as the one value that goes into a request: an array for OpenAI and Anthropic, `[{"functionDeclarations": […]}]` for
/// Gemini, `{"tools": […]}` for MCP.
#[must_use]
pub fn export_all(views: &[ToolView<'_>], format: Format, strictness: Strictness) -> (Value, Vec<Weakening>) {
    let mut tools = Vec::with_capacity(views.len());
    let mut weakened = Vec::new();
    for view in views {
        let exported = export(view, format, strictness);
        tools.push(exported.tool);
        weakened.extend(exported.weakened);
    }
    let whole = match format {
        Format::Gemini => json!([{"functionDeclarations": tools}]),
        Format::Mcp => json!({"tools": tools}),
        Format::OpenAi | Format::OpenAiResponses | Format::Anthropic => Value::Array(tools),
    };
    (whole, weakened)
}

/// The hints that MCP clients show, computed from the class that the sandbox enforces; only `idempotentHint` is the plugin's word. All
/// four are always sent, since the protocol's defaults for absent ones are other values.
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
    /// All formats, in the order in which they are listed to people.
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp];

    /// The name on the command line.
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

    fn profile(self, strictness: Strictness) -> Option<&'static Profile> {
        Some(match (self, strictness) {
            (Self::OpenAi | Self::OpenAiResponses, Strictness::AsIs) => &profile::OPENAI,
            (Self::OpenAi | Self::OpenAiResponses, Strictness::Transform) => &profile::OPENAI_STRICT,
            (Self::Anthropic, Strictness::AsIs) => &profile::ANTHROPIC,
            (Self::Anthropic, Strictness::Transform) => &profile::ANTHROPIC_STRICT,
            (Self::Gemini, Strictness::AsIs) => &profile::GEMINI,
            (Self::Gemini, Strictness::Transform) => &profile::GEMINI_STRICT,
            (Self::Mcp, _) => return None,
        })
    }

    /// The rules of the provider's strict mode, where a tool is declared to follow them.
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

/// A name that no format has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no format is called {name:?}; there are openai, openai-responses, anthropic, gemini and mcp")]
pub struct UnknownFormat {
    /// The name that was given.
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

/// An input schema in its provider's terms.
struct Input {
    schema: Value,
    strict: bool,
    weakened: Vec<Weakening>,
}

fn input(view: &ToolView<'_>, format: Format, strictness: Strictness) -> Input {
    let Some(profile) = format.profile(strictness) else {
        return Input { schema: view.input_schema.clone(), strict: false, weakened: Vec::new() };
    };
    let Rewritten { schema, weakened, blocked } = rewrite(view, profile);
    let Some(rules) = format.rules(strictness) else { return Input { schema, strict: false, weakened } };
    match (blocked.map_or_else(|| rules.check(&schema), Err), strictness) {
        (Ok(()), _) => Input { schema, strict: true, weakened },
        (Err(_), Strictness::AsIs) => Input { schema, strict: false, weakened },
        (Err(reason), Strictness::Transform) => {
            let mut input = input(view, format, Strictness::AsIs);
            input.strict = false;
            input.weakened.push(Weakening {
                tool: view.name.to_owned(),
                pointer: reason.pointer,
                keyword: "strict".to_owned(),
                what: format!("is not possible: {}", reason.why),
            });
            input
        }
    }
}

/// The part of a definition that only MCP has a place for. A title is for people, and no loss to a model.
fn without_place(view: &ToolView<'_>, format: Format) -> Option<Weakening> {
    let is_lost = view.output_schema.is_some() && format != Format::Mcp;
    is_lost.then(|| Weakening {
        tool: view.name.to_owned(),
        pointer: String::new(),
        keyword: OUTPUT_SCHEMA.to_owned(),
        what: "is left out: this format has no place for it".to_owned(),
    })
}

fn openai(view: &ToolView<'_>, schema: Value, strict: bool) -> Map<String, Value> {
    // `strict` is always there, because the two interfaces of OpenAI take its absence for different things.
    Map::from_iter([
        ("name".to_owned(), json!(view.name)),
        ("description".to_owned(), json!(view.description)),
        ("parameters".to_owned(), schema),
        ("strict".to_owned(), json!(strict)),
    ])
}

fn anthropic(view: &ToolView<'_>, schema: Value, strict: bool) -> Value {
    let fields = [
        ("name", Some(json!(view.name))),
        ("description", Some(json!(view.description))),
        ("input_schema", Some(schema)),
        ("strict", strict.then_some(json!(true))),
    ];
    present(fields)
}

fn mcp(view: &ToolView<'_>, schema: Value) -> Value {
    let fields = [
        ("name", Some(json!(view.name))),
        ("title", view.title.map(Value::from)),
        ("description", Some(json!(view.description))),
        ("inputSchema", Some(schema)),
        ("outputSchema", view.output_schema.cloned()),
        ("annotations", Some(annotations(view.side_effects, view.idempotent))),
    ];
    present(fields)
}

fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map<_, _>>().into()
}
