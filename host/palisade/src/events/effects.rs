//! The parts of a result that no model reads, as far as they fit in an event.

use crate::tool::json::Json;
use crate::tool::result::named_file;
use crate::tool::text::cut;
use crate::tool::{ToolResult, UNLISTED};
use serde::ser::SerializeMap;
use serde_json::Value;
use std::path::PathBuf;

/// The longest metadata in an event, in bytes: four times those of a plugin, because numbers may be
/// written longer than the plugin wrote them. A native tool may return more.
const METADATA: usize = 256 << 10;

/// The longest list of files and the longest command in an event, in bytes.
const TEXT: usize = 64 << 10;

/// The effects of a call besides its output. The result has all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effects {
    /// The tool's message to the embedder, such as `{"stop_loop":true}`; `None` if it is empty or
    /// too long.
    pub metadata: Option<Json>,
    /// The length in bytes of metadata that is too long for an event, or 0.
    pub metadata_omitted: usize,
    /// The changed files, relative to the workspace, under their real names.
    pub files_modified: Vec<PathBuf>,
    /// The number of changed files that are not listed.
    pub files_unlisted: u64,
    /// The executed command, if there is one; its beginning, if it is too long.
    pub command_executed: Option<String>,
}

impl Effects {
    /// Returns those of a result.
    pub(crate) fn of(result: &ToolResult) -> Self {
        let mut effects = Self::default();
        if !result.metadata().is_empty() {
            let metadata = Json::from(Value::Object(result.metadata().clone()));
            match metadata.as_str().len() {
                fits if fits <= METADATA => effects.metadata = Some(metadata),
                length => effects.metadata_omitted = length,
            }
        }
        let mut room = TEXT;
        for file in result.files_modified() {
            match room.checked_sub(file.as_os_str().len()) {
                Some(left) if effects.files_unlisted == 0 => {
                    room = left;
                    effects.files_modified.push(file.clone());
                }
                _ => effects.files_unlisted += 1,
            }
        }
        effects.files_unlisted += result.metadata().get(UNLISTED).map_or(0, count);
        effects.command_executed = result.command_executed().map(|text| cut(text, TEXT).to_owned());
        effects
    }

    /// Returns the memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let files = self.files_modified.iter();
        self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
            + files.map(|file| size_of::<PathBuf>() + file.as_os_str().len()).sum::<usize>()
            + self.command_executed.as_ref().map_or(0, String::len)
    }

    /// Writes the keys that have a value.
    pub(super) fn write<M: SerializeMap>(&self, line: &mut M) -> Result<(), M::Error> {
        if let Some(metadata) = &self.metadata {
            line.serialize_entry("metadata", metadata)?;
        }
        if self.metadata_omitted > 0 {
            line.serialize_entry("metadata_omitted", &self.metadata_omitted)?;
        }
        if !self.files_modified.is_empty() {
            let files: Vec<Value> =
                self.files_modified.iter().map(|file| named_file(file)).collect();
            line.serialize_entry("files_modified", &files)?;
        }
        if self.files_unlisted > 0 {
            line.serialize_entry(UNLISTED, &self.files_unlisted)?;
        }
        if let Some(command) = &self.command_executed {
            line.serialize_entry("command_executed", command)?;
        }
        Ok(())
    }
}

fn count(unlisted: &Value) -> u64 {
    unlisted.as_u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::CallId;
    use serde_json::{Map, json};

    fn result() -> ToolResult {
        ToolResult::success(CallId::new("c"), "t", "")
    }

    #[test]
    fn plain_result_has_no_effects() {
        assert_eq!(Effects::of(&result()), Effects::default());
        assert_eq!(Effects::default().bytes(), 0);
    }

    #[test]
    fn effects_fit_in_an_event() {
        let long = "x".repeat(METADATA);
        let mut result = result().with_metadata(Map::from_iter([("a".to_owned(), json!(long))]));
        result.metadata.insert(UNLISTED.to_owned(), json!(7));
        result.files_modified = (0..100).map(|_| PathBuf::from("y".repeat(TEXT / 64))).collect();
        result.command_executed = Some("é".repeat(TEXT));
        let effects = Effects::of(&result);
        assert_eq!(effects.metadata, None);
        assert!(effects.metadata_omitted > METADATA);
        assert_eq!((effects.files_modified.len(), effects.files_unlisted), (64, 36 + 7));
        assert_eq!(effects.command_executed.as_ref().map(String::len), Some(TEXT));
        assert!(effects.bytes() < 3 * TEXT);
    }
}
