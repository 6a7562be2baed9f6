//! Converts tool definitions for `tools/list`.

use crate::protocol::lifecycle::Lifecycle;
use palisade::Definition;
use palisade::Host;
use palisade::Session;
use palisade::formats::{Format, Strictness, export};
use rmcp::model::{ErrorData, ListToolsResult, MetaObject, PaginatedRequestParams, Tool};
use serde_json::{Value, json};

/// The metadata key of the plugins whose tools are missing from a list.
const COMPILING: &str = "dev.palisade/compiling";

/// Builds the list result, naming the plugins that are still being compiled.
pub(crate) fn list_result(host: &Host, tools: Vec<Tool>) -> ListToolsResult {
    let mut listed = ListToolsResult::with_all_items(tools);
    let compiling: Vec<String> =
        host.compiling().into_iter().map(|compiling| compiling.plugin).collect();
    if !compiling.is_empty() {
        let mut meta = MetaObject::default();
        meta.insert(COMPILING.to_owned(), json!(compiling));
        listed.meta = Some(meta);
    }
    listed
}

/// Rejects a cursor: lists are returned whole, so that the server never issues one.
pub(crate) fn reject_cursor(page: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params(
            "the cursor is none: lists are given whole, without one",
            None,
        )),
    }
}

/// Returns the tools that a session may see, sorted by name, so that the list is stable.
pub(crate) fn visible_tools(host: &Host, session: &Session, lifecycle: Lifecycle) -> Vec<Tool> {
    let mut definitions = host.definitions(session);
    definitions.sort_by(|one, other| one.name().as_str().cmp(other.name().as_str()));
    definitions.iter().filter_map(|definition| convert(definition, lifecycle)).collect()
}

/// Converts one tool. Its hints are derived from the sandbox's enforcement.
pub(crate) fn convert(definition: &Definition, lifecycle: Lifecycle) -> Option<Tool> {
    let mut exported = export(&definition.into(), Format::Mcp, Strictness::AsIs).tool;
    if lifecycle == Lifecycle::Stateful && !has_object_output(definition) {
        exported.as_object_mut()?.remove("outputSchema");
    }
    serde_json::from_value(exported)
        .inspect_err(|error| tracing::error!("a tool cannot be listed: {error}"))
        .ok()
}

/// Returns true if every output is an object, as revisions before 2026-07-28 require.
fn has_object_output(definition: &Definition) -> bool {
    definition.output_schema().is_none_or(|schema| {
        schema.as_value().get("type").and_then(Value::as_str) == Some("object")
    })
}

/// Returns true if clients repeat parameters of this tool in headers.
pub(crate) fn has_header_parameters(definition: &Definition) -> bool {
    fn mentions(value: &Value) -> bool {
        match value {
            Value::Object(members) => {
                members.contains_key("x-mcp-header") || members.values().any(mentions)
            }
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
    use palisade::CacheMode;
    use palisade::SideEffects;
    use palisade::plugins::Shipped;

    #[test]
    fn listed_schema_is_portable_and_the_exact_one_validates() {
        let schema = json!({"type": "object", "properties": {
            "path": {"type": ["string", "null"], "format": "workspace-path"},
            "note": {"type": ["string", "null"]},
        }, "required": ["note"]});
        let definition = Definition::new("t", "A tool.", SideEffects::Read, schema).unwrap();
        let listed = convert(&definition, Lifecycle::Stateless).unwrap();
        let expected = json!({
            "path": {"type": "string", "description": "A path relative to the workspace."},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        });
        assert_eq!(listed.input_schema["properties"], expected);
        for accepted in [json!({"path": null, "note": null}), json!({"note": "a"})] {
            assert!(definition.validate_params(&accepted).is_ok(), "{accepted}");
        }
    }

    #[test]
    fn list_names_compiling_plugins() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("slow.wasm"), palisade_plugins::hostile().bytes())
            .unwrap();
        let builder = || {
            Host::builder().workspace(place.path()).shipped(Shipped::LeftOut).cache(CacheMode::Off)
        };
        let host = builder().plugins(place.path()).build_from_cache().unwrap();
        let listed = serde_json::to_value(list_result(
            &host,
            visible_tools(&host, host.session(), Lifecycle::Stateless),
        ))
        .unwrap();
        assert_eq!(listed["_meta"], json!({"dev.palisade/compiling": ["slow"]}));
        let host = builder().build().unwrap();
        assert_eq!(list_result(&host, Vec::new()).meta, None);
    }
}
