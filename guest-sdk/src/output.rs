//! The output of a tool, and the types that convert to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bindings::palisade::tool::types::Output as WitOutput;
use crate::{Content, Error, Result};

/// The output of a tool that ran to its end: content blocks for the model, and metadata for the
/// program that embeds the host.
///
/// ```
/// use palisade_guest::Output;
///
/// let output = Output::text("Replaced 1 of 1.").modified("src/main.rs").metadata("replaced", 1);
/// assert!(output.succeeded());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Output {
    content: Vec<Content>,
    failed: bool,
    metadata: Map<String, Value>,
    files_modified: Vec<String>,
    command_executed: Option<String>,
}

impl Output {
    /// Returns an output with these blocks, in this order. It may be empty.
    pub fn new(content: Vec<Content>) -> Self {
        Self {
            content,
            failed: false,
            metadata: Map::new(),
            files_modified: Vec::new(),
            command_executed: None,
        }
    }

    /// Returns an output of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![Content::text(text)])
    }

    /// Returns an output of one JSON value.
    ///
    /// # Errors
    /// If `value` cannot be serialised as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self> {
        Ok(Self::new(vec![Content::json(value)?]))
    }

    /// Adds a block.
    pub fn and(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Marks the outcome as a failure for the model, such as failing tests, although the tool did
    /// its work. A tool that could not do its work returns an error.
    pub fn failure(mut self) -> Self {
        self.failed = true;
        self
    }

    /// Records a file that the tool changed, relative to the workspace.
    pub fn modified(mut self, path: impl Into<String>) -> Self {
        self.files_modified.push(path.into());
        self
    }

    /// Records the command that the tool ran.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command_executed = Some(command.into());
        self
    }

    /// Adds metadata for the program that embeds the host; the model never sees it. An existing key
    /// gets the new value.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Returns the blocks.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// Returns the text blocks, joined with newlines.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = |block: &Content| {
            if let Content::Text(text) = block { Some(text.clone()) } else { None }
        };
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }

    /// Returns the value of the first JSON block. `None` if there is no such block or its JSON is
    /// invalid.
    #[must_use]
    pub fn to_json(&self) -> Option<Value> {
        let json = |block: &Content| {
            if let Content::Json(json) = block { serde_json::from_str(json).ok() } else { None }
        };
        self.content.iter().find_map(json)
    }

    /// Returns false if [`failure`](Self::failure) marked the outcome.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        !self.failed
    }

    /// Returns the metadata added by [`metadata`](Self::metadata).
    #[must_use]
    pub fn metadata_map(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Returns the files recorded by [`modified`](Self::modified).
    #[must_use]
    pub fn files_modified(&self) -> &[String] {
        &self.files_modified
    }

    /// Returns the command recorded by [`command`](Self::command).
    #[must_use]
    pub fn command_executed(&self) -> Option<&str> {
        self.command_executed.as_deref()
    }
}

impl From<Output> for WitOutput {
    fn from(output: Output) -> Self {
        // The empty string means `{}` and saves most tools the code for serialising objects.
        let metadata = if output.metadata.is_empty() {
            String::new()
        } else {
            Value::Object(output.metadata).to_string()
        };
        Self {
            content: output.content,
            success: !output.failed,
            metadata,
            files_modified: output.files_modified,
            command_executed: output.command_executed,
        }
    }
}

/// A value that a tool returns as JSON. The schema of its type becomes the tool's output schema.
///
/// ```
/// use palisade_guest::{Json, tool};
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Weather {
///     /// Degrees Celsius.
///     temperature: f64,
/// }
///
/// /// Tells today's weather.
/// #[tool(side_effects = "none")]
/// fn weather() -> Json<Weather> {
///     Json(Weather { temperature: 21.5 })
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json<T>(
    /// The value.
    pub T,
);

/// The types that a tool may return.
///
/// A function under `#[tool]` returns one of these, or a `Result` of one of these and any error
/// that `?` converts.
///
/// Other types do not compile without `Json`:
///
/// ```compile_fail,E0277
/// /// Counts.
/// #[palisade_guest::tool(side_effects = "none")]
/// fn count() -> u32 {
///     1
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "a tool cannot return this",
    note = "return `String`, `&str`, `()`, `Json<T>` where `T: Serialize + JsonSchema`, `Output`, `Content` or `Vec<Content>`, or a \
            `Result` of one of these"
)]
pub trait IntoOutput {
    /// Converts the value to the output of the call.
    ///
    /// # Errors
    /// The error of the tool, or of serialising the value as JSON.
    fn into_output(self) -> Result<Output>;

    /// Returns the schema to which every successful output conforms, if this type has one.
    #[must_use]
    fn output_schema() -> Option<Value>
    where
        Self: Sized,
    {
        None
    }
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output> {
        Ok(self)
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<Output> {
        Ok(Output::new(Vec::new()))
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<Output> {
        Ok(Output::text(self))
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> Result<Output> {
        Ok(Output::text(self))
    }
}

impl IntoOutput for Content {
    fn into_output(self) -> Result<Output> {
        Ok(Output::new(vec![self]))
    }
}

impl IntoOutput for Vec<Content> {
    fn into_output(self) -> Result<Output> {
        Ok(Output::new(self))
    }
}

impl<T: Serialize + JsonSchema> IntoOutput for Json<T> {
    fn into_output(self) -> Result<Output> {
        Output::json(&self.0)
    }

    fn output_schema() -> Option<Value> {
        Some(crate::schema::of_output::<T>())
    }
}

impl<T: IntoOutput, E: Into<Error>> IntoOutput for Result<T, E> {
    fn into_output(self) -> Result<Output> {
        self.map_err(Into::into)?.into_output()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use serde_json::json;

    fn blocks(value: impl IntoOutput) -> Vec<Content> {
        value.into_output().unwrap().content().to_vec()
    }

    #[test]
    fn every_documented_type_becomes_its_blocks() {
        let text = || Content::text("a");
        assert_eq!(blocks("a".to_owned()), [text()]);
        assert_eq!(blocks("a"), [text()]);
        assert_eq!(blocks(()), []);
        assert_eq!(blocks(text()), [text()]);
        assert_eq!(blocks(vec![text(), text()]), [text(), text()]);
        assert_eq!(blocks(Output::text("a").and("b")), [text(), Content::text("b")]);
        assert_eq!(blocks(Json(json!({"a": 1}))), [Content::Json(r#"{"a":1}"#.to_owned())]);
        assert_eq!(blocks(Ok::<_, std::io::Error>("a")), [text()]);
    }

    #[test]
    fn error_of_any_type_becomes_a_tool_error() {
        let failed: Result<String, std::fmt::Error> = Err(std::fmt::Error);
        assert!(failed.into_output().is_err());
        let failed: Result<()> = Err(Error::cancelled());
        assert_eq!(failed.into_output().unwrap_err(), Error::cancelled());
    }

    #[test]
    fn only_json_results_have_an_output_schema() {
        assert_eq!(Json::<u8>::output_schema().unwrap()["type"], "integer");
        assert_eq!(<Result<Json<u8>>>::output_schema(), Json::<u8>::output_schema());
        assert_eq!(<Result<String>>::output_schema(), None);
        assert_eq!(Output::output_schema(), None);
    }

    #[test]
    fn every_output_property_is_converted() {
        let output = Output::text("a")
            .modified("x")
            .modified("y")
            .command("ls")
            .metadata("k", 1)
            .metadata("k", 2)
            .failure();
        assert!(!output.succeeded());
        assert_eq!(output.metadata_map()["k"], 2);
        let wit = WitOutput::from(output);
        assert_eq!(wit.files_modified, ["x", "y"]);
        assert_eq!(wit.command_executed.as_deref(), Some("ls"));
        assert_eq!(wit.metadata, r#"{"k":2}"#);
        assert!(!wit.success);
    }

    #[test]
    fn plain_output_is_a_success_without_metadata() {
        let wit = WitOutput::from(Output::text("a"));
        assert!(wit.success && wit.metadata.is_empty() && wit.files_modified.is_empty());
        assert_eq!(wit.command_executed, None);
    }

    #[test]
    fn outputs_can_be_read_back_in_tests() {
        let output = Output::text("a").and(Content::json(&json!([1])).unwrap()).and("b");
        assert_eq!(output.to_text(), "a\nb");
        assert_eq!(output.to_json(), Some(json!([1])));
        assert_eq!(Output::text("a").to_json(), None);
    }
}
