//! A tool's definition as the exporters read it.

use serde_json::Value;

/// A borrowed view of a tool's definition.
///
/// ```
/// use palisade_formats::{DefinitionView, Format, Strictness, export};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
/// let mut view = DefinitionView::new("echo", "Repeats a text.", &schema);
/// view.side_effects = "none";
/// let exported = export(&view, Format::Mcp, Strictness::AsIs);
/// assert_eq!(exported.tool["annotations"]["readOnlyHint"], true);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DefinitionView<'a> {
    /// The tool's name. Every format accepts a letter and up to 63 letters, digits and `_`.
    pub name: &'a str,
    /// A short name for display.
    pub title: Option<&'a str>,
    /// The description for the model.
    pub description: &'a str,
    /// The schema of the input, accepted by
    /// [`Schema::input`](palisade_schema::schema::Schema::input).
    pub input_schema: &'a Value,
    /// The schema of the output, accepted likewise.
    pub output_schema: Option<&'a Value>,
    /// The highest class of side effects: `none`, `read`, `write`, `execute` or `network`.
    pub side_effects: &'a str,
    /// True if a repeated call leaves the same state as a single call.
    pub idempotent: bool,
    /// True if the tool reaches servers beyond this machine, although its class does not say so.
    pub sends_requests: bool,
    /// True if the tool calls others, so that a call of it may have every effect that those have.
    pub calls_tools: bool,
}

impl<'a> DefinitionView<'a> {
    /// Creates the view of a tool without a title or an output schema. Its class is `network`, the
    /// highest, and it is not idempotent, so that no hint promises too much.
    #[must_use]
    pub fn new(name: &'a str, description: &'a str, input_schema: &'a Value) -> Self {
        Self {
            name,
            title: None,
            description,
            input_schema,
            output_schema: None,
            side_effects: "network",
            idempotent: false,
            sends_requests: false,
            calls_tools: false,
        }
    }
}
