//! The tools as clients are shown them.

use super::era::Era;
use crate::host::Host;
use crate::session::Session;
use crate::tool::Definition;
use crate::tool::formats::{Format, Strictness, export};
use rmcp::model::{ErrorData, ListToolsResult, MetaObject, PaginatedRequestParams, Tool};
use serde_json::{Value, json};

/// Under which key a list names the plugins whose tools it does not have yet.
const COMPILING: &str = "dev.palisade/compiling";

/// A list of tools, with the plugins that are still being compiled, where there are any.
pub(super) fn result(host: &Host, tools: Vec<Tool>) -> ListToolsResult {
    let mut listed = ListToolsResult::with_all_items(tools);
    let compiling: Vec<String> = host.compiling().into_iter().map(|compiling| compiling.plugin).collect();
    if !compiling.is_empty() {
        let mut meta = MetaObject::default();
        meta.insert(COMPILING.to_owned(), json!(compiling));
        listed.meta = Some(meta);
    }
    listed
}

/// Refuses a request for a part of a list: lists are given whole, so that the server hands out no cursor.
pub(super) fn whole(page: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("the cursor is none: lists are given whole, without one", None)),
    }
}

/// All that a session is shown, by name: the same list in the same order, as long as nothing changes.
pub(super) fn tools(host: &Host, session: &Session, era: Era) -> Vec<Tool> {
    let mut definitions = host.definitions(session);
    definitions.sort_by(|one, other| one.name().as_str().cmp(other.name().as_str()));
    definitions.iter().filter_map(|definition| tool(definition, era)).collect()
}

/// One tool, with the hints that are computed from what the sandbox enforces.
pub(super) fn tool(definition: &Definition, era: Era) -> Option<Tool> {
    let mut exported = export(&definition.view(), Format::Mcp, Strictness::AsIs).tool;
    if era == Era::Legacy && !describes_objects(definition) {
        exported.as_object_mut()?.remove("outputSchema");
    }
    serde_json::from_value(exported).inspect_err(|error| tracing::error!("a tool cannot be listed: {error}")).ok()
}

/// Before 2026-07-28, the output that a schema describes was an object.
fn describes_objects(definition: &Definition) -> bool {
    definition
        .output_schema()
        .is_none_or(|schema| schema.as_value().get("type").and_then(Value::as_str) == Some("object"))
}

/// Whether clients repeat some parameters of this tool in headers.
pub(super) fn repeats_in_headers(definition: &Definition) -> bool {
    fn mentions(value: &Value) -> bool {
        match value {
            Value::Object(members) => members.contains_key("x-mcp-header") || members.values().any(mentions),
            Value::Array(elements) => elements.iter().any(mentions),
            _ => false,
        }
    }
    mentions(definition.parameters())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::host::CacheMode;
    use crate::plugins::Shipped;

    #[test]
    fn a_list_names_the_plugins_that_still_compile_and_is_plain_without_any() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("slow.wasm"), palisade_plugins::hostile().bytes()).unwrap();
        let builder = || Host::builder().workspace(place.path()).shipped(Shipped::LeftOut).cache(CacheMode::Off);
        let host = builder().plugins(place.path()).build_from_cache().unwrap();
        let listed = serde_json::to_value(result(&host, tools(&host, host.session(), Era::Modern))).unwrap();
        assert_eq!(listed["_meta"], json!({"dev.palisade/compiling": ["slow"]}));
        let host = builder().build().unwrap();
        assert_eq!(result(&host, Vec::new()).meta, None);
    }
}
