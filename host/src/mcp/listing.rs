//! The tools as clients are shown them.

use super::era::Era;
use crate::host::Host;
use crate::session::Session;
use crate::tool::Definition;
use crate::tool::formats::{Format, Strictness, export};
use rmcp::model::Tool;
use serde_json::Value;

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
