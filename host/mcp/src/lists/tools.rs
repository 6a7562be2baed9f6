//! The tools for `tools/list`, converted once each.

use crate::clients::known_lists::ListDigest;
use crate::messages::offload;
use crate::messages::serialize::CANNOT_ANSWER;
use crate::protocol::lifecycle::Lifecycle;
use crate::protocol::tool_result::exhausted_error;
use crate::state::ServerState;
use crate::state::list_cache::{HeaderParameters, ListItem, ListedTool};
use palisade::Definition;
use palisade::Host;
use palisade::Session;
use palisade::formats::{Format, Strictness, export};
use palisade::internal::{Owed, answer_turns, offload};
use palisade::plugins::Compiling;
use palisade::registry::Registered;
use palisade::tool::json::footprint;
use rmcp::model::{ErrorData, ListToolsResult, MetaObject, Tool};
use serde_json::{Value, json};
use std::sync::Arc;

/// The metadata key of the plugins whose tools are missing from a list.
const COMPILING: &str = "dev.palisade/compiling";

/// Builds the list result, naming the approved plugins that are still being compiled.
pub(crate) fn list_result(host: &Host, tools: Vec<Tool>) -> ListToolsResult {
    let mut listed = ListToolsResult::with_all_items(tools);
    let compiling: Vec<String> =
        host.compiling().into_iter().filter_map(Compiling::approved_name).collect();
    if !compiling.is_empty() {
        let mut meta = MetaObject::default();
        meta.insert(COMPILING.to_owned(), json!(compiling));
        listed.meta = Some(meta);
    }
    listed
}

/// Returns the tools that a session may see, sorted by name, so that the list is stable. New ones
/// are converted on another thread: plugins choose their number and size.
///
/// # Errors
///
/// The error response if they were not converted in time.
pub(crate) async fn visible(
    server: &Arc<ServerState>,
    session: &Session,
) -> Result<Vec<Arc<ListedTool>>, ErrorData> {
    let tools = registered(&server.host, session);
    if let Some(known) = known(server, &tools) {
        return Ok(known);
    }
    let budget = offload::budget(server.host.limits().account());
    let server = server.clone();
    let made = offload(&budget, answer_turns(), move |budget| {
        let listed = |tool| budget.check().map(|()| listed(&server, tool));
        tools.iter().filter_map(|tool| listed(tool).transpose()).collect()
    });
    made.await.map_err(|why| exhausted_error(CANNOT_ANSWER, why))
}

/// Same as [`visible`], if all of them were converted before.
pub(super) fn visible_if_known(
    server: &ServerState,
    session: &Session,
) -> Option<Vec<Arc<ListedTool>>> {
    known(server, &registered(&server.host, session))
}

/// Same as [`visible`], on this thread. It may take long.
pub(super) fn visible_here(server: &ServerState, session: &Session) -> Vec<Arc<ListedTool>> {
    registered(&server.host, session).iter().filter_map(|tool| listed(server, tool)).collect()
}

fn registered(host: &Host, session: &Session) -> Vec<Arc<Registered>> {
    let mut tools = host.tools(session);
    let by_name = |one: &Arc<Registered>, other: &Arc<Registered>| {
        one.definition().name().as_str().cmp(other.definition().name().as_str())
    };
    tools.sort_by(by_name);
    tools
}

fn known(server: &ServerState, tools: &[Arc<Registered>]) -> Option<Vec<Arc<ListedTool>>> {
    let known: Option<Vec<_>> = tools.iter().map(|tool| server.lists.known_tool(tool)).collect();
    Some(known?.into_iter().flatten().collect())
}

/// Returns one tool, converting it if necessary.
pub(crate) fn listed(server: &ServerState, tool: &Arc<Registered>) -> Option<Arc<ListedTool>> {
    server.lists.tool(tool, |tool| convert(tool.definition()))
}

/// Returns the form of a tool in this lifecycle.
pub(crate) fn form(tool: &ListedTool, lifecycle: Lifecycle) -> &ListItem<Tool> {
    match lifecycle {
        Lifecycle::Stateful => &tool.stateful,
        Lifecycle::Stateless => &tool.stateless,
    }
}

/// Returns the digest of the list of these tools.
pub(crate) fn digest(tools: &[Arc<ListedTool>], lifecycle: Lifecycle) -> ListDigest {
    ListDigest::of_hashes(tools.iter().map(|tool| &form(tool, lifecycle).hash))
}

/// Converts one tool. Its hints are derived from the sandbox's enforcement.
fn convert(definition: &Definition) -> Option<ListedTool> {
    let exported = export(&definition.into(), Format::Mcp, Strictness::AsIs).tool;
    let memory = footprint::of(&exported).saturating_mul(2);
    let stateless: Tool = serde_json::from_value(exported)
        .inspect_err(|error| tracing::error!("a tool cannot be listed: {error}"))
        .ok()?;
    let mut stateful = stateless.clone();
    if !has_object_output(definition) {
        stateful.output_schema = None;
    }
    Some(ListedTool {
        stateful: ListItem::new(stateful),
        stateless: ListItem::new(stateless),
        header_parameters: header_parameters(definition),
        memory: Owed::new(usize::try_from(memory).unwrap_or(usize::MAX)),
    })
}

/// Returns true if every output is an object, as revisions before 2026-07-28 require.
fn has_object_output(definition: &Definition) -> bool {
    definition.output_schema().is_none_or(|schema| {
        schema.as_value().get("type").and_then(Value::as_str) == Some("object")
    })
}

/// Returns whether clients repeat parameters of this tool in headers.
fn header_parameters(definition: &Definition) -> HeaderParameters {
    fn mentions(value: &Value) -> bool {
        match value {
            Value::Object(members) => {
                members.contains_key("x-mcp-header") || members.values().any(mentions)
            }
            Value::Array(elements) => elements.iter().any(mentions),
            _ => false,
        }
    }
    match mentions(definition.parameters()) {
        true => HeaderParameters::Some,
        false => HeaderParameters::None,
    }
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
        let listed = convert(&definition).unwrap().stateless.item;
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
        assert!(registered(&host, host.session()).is_empty());
        let listed = serde_json::to_value(list_result(&host, Vec::new())).unwrap();
        assert_eq!(listed["_meta"], json!({"dev.palisade/compiling": ["slow"]}));
        let host = builder().build().unwrap();
        assert_eq!(list_result(&host, Vec::new()).meta, None);
    }
}
