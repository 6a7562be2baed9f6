//! The one result that every call gives back, whatever happened inside it.

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

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The most memory that the guest held at once, in bytes.
    pub peak_memory_bytes: u64,
    /// Bytes read from the workspace.
    pub bytes_read: u64,
    /// Bytes written to the workspace.
    pub bytes_written: u64,
    /// Bytes of logs, progress, emitted text and standard output that were dropped.
    pub truncated_bytes: u64,
}

/// The result of a call. Made once, read-only.
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
    /// In a box, since most calls have none, and a result goes through many hands.
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
    /// A success whose output is `output`.
    #[must_use]
    pub fn success(call_id: CallId, tool: &str, output: impl Into<String>) -> Self {
        Self::success_with(call_id, tool, vec![Content::Text(output.into())])
    }

    /// A success whose output is made of blocks.
    #[must_use]
    pub fn success_with(call_id: CallId, tool: &str, content: Vec<Content>) -> Self {
        Self::bare(call_id, tool, content, None)
    }

    /// A failure.
    #[must_use]
    pub fn failure(call_id: CallId, tool: &str, kind: ErrorKind) -> Self {
        Self::failure_with(call_id, tool, kind, Vec::new())
    }

    /// A failure of a tool that ran to its end and left blocks for the model.
    #[must_use]
    pub fn failure_with(call_id: CallId, tool: &str, kind: ErrorKind, content: Vec<Content>) -> Self {
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

    /// Adds what the program that embeds the host is meant to see, and the model is not.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Says where the operator's settings stand, for the error's advice.
    pub(crate) fn with_places(mut self, places: &Arc<Places>) -> Self {
        self.error = self.error.map(|error| Box::new(error.with_places(places.clone())));
        self
    }

    /// The call that this is the result of.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The tool that was called; `<unnamed>` where the name was blank.
    #[must_use]
    pub fn tool(&self) -> &str {
        named(&self.tool)
    }

    /// Whether the call succeeded.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.error.is_none()
    }

    /// Whether it failed.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.error.is_some()
    }

    /// The text that the model reads. `None` on failure: exactly one of output and error is there.
    #[must_use]
    pub fn output(&self) -> Option<Cow<'_, str>> {
        self.error.is_none().then(|| joined(&self.content))
    }

    /// What the tool had said until it failed, blocks joined as in [`output`](Self::output). `None` on success, where that is nothing, and where it is told as the
    /// reason.
    #[must_use]
    pub fn partial_output(&self) -> Option<Cow<'_, str>> {
        self.error.as_ref()?;
        Some(joined(self.output_blocks())).filter(|text| !text.is_empty())
    }

    /// The output's blocks.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// Why it failed. `None` on success.
    #[must_use]
    pub fn error(&self) -> Option<&ToolError> {
        self.error.as_deref()
    }

    /// What the tool says to the program that embeds the host, such as `{"stop_loop": true}`. Never part of what the model reads.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// The files that were changed, relative to the workspace, each under its real name. Whoever shows one to a person or to a model escapes it first: a
    /// name may hold anything but a NUL.
    #[must_use]
    pub fn files_modified(&self) -> &[PathBuf] {
        &self.files_modified
    }

    /// The command that was run, if one was.
    #[must_use]
    pub fn command_executed(&self) -> Option<&str> {
        self.command_executed.as_deref()
    }

    /// How long the call took, without the time in a queue or a confirmation.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// What it used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The plugin that the tool came from, unless it is a native one.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// The digest of that plugin.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// All of it, in the form that `palisade call --json` prints.
    ///
    /// Each of `files_modified` is a string, the very name, where that is UTF-8, and else an object: `{"path", "bytes"}`, the name as it can be shown, and its
    /// bytes in Base64. So no two names look alike.
    #[must_use]
    pub fn to_json(&self) -> Value {
        // Only maps with keys that are no strings fail to serialise, and there are none.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The result as a model's next turn takes it: `{"tool_use_id", "content", "is_error"}`.
    #[must_use]
    pub fn to_block(&self) -> Value {
        let content: Vec<Value> = self.blocks().iter().map(|block| block.to_json()).collect();
        json!({"tool_use_id": self.call_id.as_str(), "content": content, "is_error": self.is_failure()})
    }

    /// The blocks that the model reads: the output's, or what was refused and why, and after it what the tool had said until then.
    #[must_use]
    pub fn blocks(&self) -> Vec<Cow<'_, Content>> {
        let message = self.error.as_ref().map(|error| Cow::Owned(Content::Text(error.reason())));
        message.into_iter().chain(self.output_blocks().iter().map(Cow::Borrowed)).collect()
    }

    /// The blocks that the model reads besides the error's message.
    pub(crate) fn output_blocks(&self) -> &[Content] {
        // A tool that reports a failure itself does so in its blocks; the message is their text.
        let is_told = self.error.as_ref().is_some_and(|error| error.kind().is_in_the_tools_words());
        if is_told { &[] } else { &self.content }
    }
}

/// What [`to_json`](ToolResult::to_json) gives, without building a value of it: its blocks may be large.
impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usage = json!({
            "peak_memory_bytes": self.usage.peak_memory_bytes,
            "bytes_read": self.usage.bytes_read,
            "bytes_written": self.usage.bytes_written,
            "truncated_bytes": self.usage.truncated_bytes,
        });
        // In the order of the alphabet, as the keys of a value are.
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

/// What a model reads: the output on success, on failure what was refused and why.
impl fmt::Display for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => fmt::Display::fmt(error, f),
            None => f.write_str(&joined(&self.content)),
        }
    }
}

/// A file's name as it is, or marked as one that is not UTF-8.
fn named_file(path: &Path) -> Value {
    match path.to_str() {
        Some(name) => Value::from(name),
        None => json!({
            "path": path.to_string_lossy(),
            "bytes": STANDARD.encode(path.as_os_str().as_encoded_bytes()),
        }),
    }
}

/// In milliseconds, to the microsecond: finer digits say nothing.
pub(crate) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// The blocks as one text, borrowed where there is but one: a file's text is not copied to be printed.
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

    #[cfg(unix)]
    #[test]
    fn no_two_names_of_changed_files_look_alike() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;
        let names: [&[u8]; 6] = [b"a\nb", b"a\\nb", b"a\xffb", "a\u{fffd}b".as_bytes(), b"a\x1b[2Jb", b"a\\u{1b}[2Jb"];
        let mut result = ToolResult::success(CallId::new("c"), "t", "");
        result.files_modified = names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
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
