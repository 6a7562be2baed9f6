//! The uniform result of every call, successful or not.

use super::error::named;
use super::{CallId, Content, Digest, ErrorKind, Places, ToolError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The metadata key for the number of changed files beyond the list. A plugin's own value is
/// discarded.
pub(crate) const UNLISTED: &str = "files_modified_unlisted";

/// The resources that a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The guest's peak memory, in bytes.
    pub peak_memory_bytes: u64,
    /// Bytes read from the workspace.
    pub bytes_read: u64,
    /// Bytes written to the workspace.
    pub bytes_written: u64,
    /// Bytes of logs, progress, emitted text and standard output that were dropped.
    pub truncated_bytes: u64,
}

/// The result of a call; read-only.
///
/// ```
/// use palisade::{ErrorKind, ToolResult, CallId, json};
///
/// let done = ToolResult::success(CallId::new("tu_01"), "echo", "hello");
/// assert!(done.is_success());
/// assert_eq!(done.to_string(), "hello");
/// assert_eq!(done.to_block()["is_error"], json!(false));
///
/// let failed = ToolResult::failure(CallId::new("tu_02"), "echo", ErrorKind::Cancelled);
/// assert_eq!(failed.output(), None);
/// assert_eq!(failed.to_string(), "the call was cancelled");
/// ```
#[derive(Debug, Clone)]
pub struct ToolResult {
    call_id: CallId,
    tool: String,
    content: Vec<Content>,
    /// Boxed to keep results small, because most calls have no error.
    error: Option<Box<ToolError>>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) files_modified: Vec<PathBuf>,
    pub(crate) command_executed: Option<String>,
    pub(crate) duration: Duration,
    pub(crate) usage: Usage,
    pub(crate) plugin: Option<String>,
    pub(crate) digest: Option<Digest>,
}

impl ToolResult {
    /// Creates a success with `output` as its text.
    #[must_use]
    pub fn success(call_id: CallId, tool: &str, output: impl Into<String>) -> Self {
        Self::success_with(call_id, tool, vec![Content::Text(output.into())])
    }

    /// Creates a success with these output blocks.
    #[must_use]
    pub fn success_with(call_id: CallId, tool: &str, content: Vec<Content>) -> Self {
        Self::bare(call_id, tool, content, None)
    }

    /// Creates a failure.
    #[must_use]
    pub fn failure(call_id: CallId, tool: &str, kind: ErrorKind) -> Self {
        Self::failure_with(call_id, tool, kind, Vec::new())
    }

    /// Creates a failure of a tool that ran to completion and left output for the model.
    #[must_use]
    pub fn failure_with(
        call_id: CallId,
        tool: &str,
        kind: ErrorKind,
        content: Vec<Content>,
    ) -> Self {
        let error = ToolError::new(call_id.clone(), tool, kind);
        Self::bare(call_id, tool, content, Some(error))
    }

    fn bare(call_id: CallId, tool: &str, content: Vec<Content>, error: Option<ToolError>) -> Self {
        Self {
            call_id,
            tool: tool.to_owned(),
            content,
            error: error.map(Box::new),
            metadata: Map::new(),
            files_modified: Vec::new(),
            command_executed: None,
            duration: Duration::ZERO,
            usage: Usage::default(),
            plugin: None,
            digest: None,
        }
    }

    /// Sets the metadata, which only the embedder sees, never the model.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the locations of the operator's settings, for the error's advice.
    pub(crate) fn with_places(mut self, places: &Arc<Places>) -> Self {
        self.error = self.error.map(|error| Box::new(error.with_places(places.clone())));
        self
    }

    /// Replaces the advice of the error by that for another reader, if the call failed: see
    /// [`ToolError::with_advice`].
    #[must_use]
    pub fn with_advice(mut self, advice: Option<String>) -> Self {
        self.error = self.error.map(|error| Box::new(error.with_advice(advice)));
        self
    }

    /// Returns the memory of the output, in bytes. The rest of a result is small.
    #[doc(hidden)]
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.content.iter().map(Content::footprint).sum()
    }

    /// Returns the output blocks.
    pub(crate) fn into_content(self) -> Vec<Content> {
        self.content
    }

    /// Returns the call's id.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// Returns the name of the called tool, or `<unnamed>` if the name was blank.
    #[must_use]
    pub fn tool(&self) -> &str {
        named(&self.tool)
    }

    /// Returns true if the call succeeded.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.error.is_none()
    }

    /// Returns true if the call failed.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the text for the model, or `None` on failure. Exactly one of output and error is
    /// present.
    #[must_use]
    pub fn output(&self) -> Option<Cow<'_, str>> {
        self.error.is_none().then(|| joined(&self.content))
    }

    /// Returns the output that a tool produced before it failed, joined as in
    /// [`output`](Self::output). `None` on success, if there is no output, and if the output is the
    /// error's message.
    #[must_use]
    pub fn partial_output(&self) -> Option<Cow<'_, str>> {
        self.error.as_ref()?;
        Some(joined(self.output_blocks())).filter(|text| !text.is_empty())
    }

    /// Returns the output's blocks.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// Returns the error, or `None` on success.
    #[must_use]
    pub fn error(&self) -> Option<&ToolError> {
        self.error.as_deref()
    }

    /// Returns the tool's message to the embedder, such as `{"stop_loop": true}`. The model never
    /// reads it.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Returns the changed files, relative to the workspace, under their real names. Escape a name
    /// before displaying it to a user or a model: it may contain any byte but NUL.
    #[must_use]
    pub fn files_modified(&self) -> &[PathBuf] {
        &self.files_modified
    }

    /// Returns the executed command, if there is one.
    #[must_use]
    pub fn command_executed(&self) -> Option<&str> {
        self.command_executed.as_deref()
    }

    /// Returns the run time of the call, without the time in a queue or a confirmation.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns the resources that the call used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the plugin or the server that provides the tool, such as `mcp/git`, or `None` for a
    /// native tool.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// Returns the digest of the plugin, or `None` for a tool of no plugin.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns the whole result in the form that `palisade call --json` prints.
    ///
    /// Each of `files_modified` is a string if the name is UTF-8. Otherwise it is an object
    /// `{"path", "bytes"}` with the lossy name and its bytes in Base64, so that two different names
    /// never look alike.
    #[must_use]
    pub fn to_json(&self) -> Value {
        // Serialization fails only for maps with non-string keys, and there are none.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the result in the form of a model's next turn: `{"tool_use_id", "content",
    /// "is_error"}`.
    #[must_use]
    pub fn to_block(&self) -> Value {
        let content: Vec<Value> = self.blocks().iter().map(|block| block.to_json()).collect();
        json!({"tool_use_id": self.call_id.as_str(), "content": content, "is_error": self.is_failure()})
    }

    /// Returns the blocks for the model: the output, or the error's message followed by the partial
    /// output.
    #[must_use]
    pub fn blocks(&self) -> Vec<Cow<'_, Content>> {
        let message = self.error.as_ref().map(|error| Cow::Owned(Content::Text(error.reason())));
        message.into_iter().chain(self.output_blocks().iter().map(Cow::Borrowed)).collect()
    }

    /// Returns the blocks for the model, without the error's message.
    pub(crate) fn output_blocks(&self) -> &[Content] {
        // A tool that reports a failure does so in its blocks, and the message is already their
        // text.
        let is_told = self.error.as_ref().is_some_and(|error| error.kind().is_in_the_tools_words());
        if is_told { &[] } else { &self.content }
    }
}

/// Writes the same JSON as [`to_json`](ToolResult::to_json) without building a value, because
/// blocks may be large.
impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usage = json!({
            "peak_memory_bytes": self.usage.peak_memory_bytes,
            "bytes_read": self.usage.bytes_read,
            "bytes_written": self.usage.bytes_written,
            "truncated_bytes": self.usage.truncated_bytes,
        });
        // Keys in alphabetical order, like those of a `serde_json` map.
        let mut result = serializer.serialize_map(Some(13))?;
        result.serialize_entry("call_id", self.call_id.as_str())?;
        result.serialize_entry("command_executed", &self.command_executed)?;
        result.serialize_entry("content", &self.content)?;
        result.serialize_entry("digest", &self.digest.map(|digest| digest.to_string()))?;
        result.serialize_entry("duration_ms", &millis(self.duration))?;
        result.serialize_entry("error", &self.error().map(ToolError::to_json))?;
        let files: Vec<_> = self.files_modified.iter().map(|path| named_file(path)).collect();
        result.serialize_entry("files_modified", &files)?;
        result.serialize_entry("metadata", &self.metadata)?;
        result.serialize_entry("output", &self.output())?;
        result.serialize_entry("plugin", &self.plugin)?;
        result.serialize_entry("success", &self.is_success())?;
        result.serialize_entry("tool", self.tool())?;
        result.serialize_entry("usage", &usage)?;
        result.end()
    }
}

/// Writes the output on success, and the error's message on failure.
impl fmt::Display for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => fmt::Display::fmt(error, f),
            None => f.write_str(&joined(&self.content)),
        }
    }
}

/// Returns a file's name as a string, or as an object if it is not UTF-8.
pub fn named_file(path: &Path) -> Value {
    match path.to_str() {
        Some(name) => Value::from(name),
        None => json!({
            "path": path.to_string_lossy(),
            "bytes": STANDARD.encode(path.as_os_str().as_encoded_bytes()),
        }),
    }
}

/// Returns a duration in milliseconds, rounded to the microsecond.
pub fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Joins the blocks into one text. A single block is borrowed, so that a large text is not copied.
pub(crate) fn joined(content: &[Content]) -> Cow<'_, str> {
    match content {
        [] => Cow::Borrowed(""),
        [one] => one.as_text(),
        many => Cow::Owned(many.iter().map(Content::as_text).collect::<Vec<_>>().join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_file_names_are_unambiguous() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;
        let names: [&[u8]; 6] =
            [b"a\nb", b"a\\nb", b"a\xffb", "a\u{fffd}b".as_bytes(), b"a\x1b[2Jb", b"a\\u{1b}[2Jb"];
        let mut result = ToolResult::success(CallId::new("c"), "t", "");
        result.files_modified =
            names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        let expected = json!([
            "a\nb",
            "a\\nb",
            {"path": "a\u{fffd}b", "bytes": "Yf9i"},
            "a\u{fffd}b",
            "a\u{1b}[2Jb",
            "a\\u{1b}[2Jb",
        ]);
        assert_eq!(result.to_json()["files_modified"], expected);
    }
}
