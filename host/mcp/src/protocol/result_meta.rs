//! The parts of a result that no model reads, under `_meta` for the program behind the client.

use palisade::ToolResult;
use palisade::internal::named_file;
use rmcp::model::MetaObject;
use serde_json::{Map, Value};

/// The metadata key of these parts.
const RESULT_KEY: &str = "dev.palisade/result";

/// Adds `metadata`, `files_modified` and `command_executed` of a result, as far as they have a
/// value.
pub(crate) fn add_result_meta(meta: &mut Option<MetaObject>, result: &ToolResult) {
    let mut parts = Map::new();
    if !result.metadata().is_empty() {
        parts.insert("metadata".to_owned(), Value::Object(result.metadata().clone()));
    }
    if !result.files_modified().is_empty() {
        let files = result.files_modified().iter().map(|file| named_file(file));
        parts.insert("files_modified".to_owned(), files.collect());
    }
    if let Some(command) = result.command_executed() {
        parts.insert("command_executed".to_owned(), command.into());
    }
    if !parts.is_empty() {
        let meta = meta.get_or_insert_with(MetaObject::new);
        meta.insert(RESULT_KEY.to_owned(), Value::Object(parts));
    }
}

/// Returns the approximate memory of these parts in bytes, besides the metadata, which is small.
pub(crate) fn meta_footprint(result: &ToolResult) -> u64 {
    let files = result.files_modified().iter();
    let files: usize = files.map(|file| size_of::<Value>() + file.as_os_str().len()).sum();
    (files + result.command_executed().map_or(0, str::len)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::CallId;
    use serde_json::json;

    #[test]
    fn result_without_such_parts_has_no_meta() {
        let mut meta = None;
        add_result_meta(&mut meta, &ToolResult::success(CallId::new("c"), "t", "text"));
        assert_eq!(meta, None);
    }

    #[test]
    fn metadata_is_added_to_the_meta_of_an_error() {
        let stop = Map::from_iter([("stop_loop".to_owned(), json!(true))]);
        let result = ToolResult::success(CallId::new("c"), "t", "text").with_metadata(stop);
        let mut meta = Some(MetaObject::new());
        add_result_meta(&mut meta, &result);
        let parts = meta.and_then(|meta| meta.get(RESULT_KEY).cloned());
        assert_eq!(parts, Some(json!({"metadata": {"stop_loop": true}})));
    }
}
