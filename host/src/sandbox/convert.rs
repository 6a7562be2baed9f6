//! Between the records of the WIT and the host's own types. Everything that comes from a guest is bounded and checked here.

use super::bindings::exports::palisade::tool::tool as exported;
use super::bindings::palisade::tool::types as wit;
use super::blocks::{self, Blocks};
use super::guard::Refusal;
use super::limits;
use super::prepare::PluginRefused;
use super::state::State;
use super::talk::Talk;
use crate::execution::{Outcome, ToolOutput};
use crate::tool::json::{JsonBounds, parse_object};
use crate::tool::schema::{Building, hidden_in};
use crate::tool::text::{cut, elided, visible};
use crate::tool::{
    Content, Definition, DefinitionError, ErrorKind, ExecutionKind, Limit, PermissionReason, Schema, SideEffects,
    definition::Idempotence,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::time::Duration;

/// The longest error message of a guest that is passed on, in bytes.
const MESSAGE: usize = 16 << 10;
/// The bounds of a definition's or an output's metadata.
const METADATA: JsonBounds = JsonBounds { bytes: 64 << 10, depth: 64, members: 10_000 };
/// How many modified files a guest may list.
const FILES: usize = 10_000;

/// Checks one definition of a plugin.
pub(super) fn definition(raw: &exported::Definition, building: Building) -> Result<Definition, PluginRefused> {
    let tool = elided(&raw.name, 64);
    let refused = |source: DefinitionError| PluginRefused::Tool { tool: tool.clone(), source };
    let input =
        Schema::parse_input_built(&raw.input_schema, building).map_err(DefinitionError::Input).map_err(refused)?;
    let class = side_effects(raw.side_effects);
    let mut definition = Definition::with_schema(&raw.name, &raw.description, class, input).map_err(refused)?;
    if let Some(title) = &raw.title {
        definition = definition.with_title(title).map_err(refused)?;
    }
    if let Some(schema) = &raw.output_schema {
        definition = definition.with_checked_output(
            Schema::parse_output_built(schema, building).map_err(DefinitionError::Output).map_err(refused)?,
        );
    }
    if let Some(ms) = raw.timeout_ms {
        definition = definition.with_timeout(Duration::from_millis(ms.into())).map_err(refused)?;
    }
    let metadata = object(&raw.metadata).map_err(|reason| PluginRefused::Metadata { tool: tool.clone(), reason })?;
    if let Some((at, character)) = hidden_in(&metadata) {
        return Err(PluginRefused::HiddenMetadata { tool, at: elided(&at, 128), character: character.into() });
    }
    let idempotence = if raw.idempotent { Idempotence::Idempotent } else { Idempotence::NotIdempotent };
    Ok(definition.with_idempotence(idempotence).with_metadata(metadata))
}

fn side_effects(class: wit::SideEffects) -> SideEffects {
    match class {
        wit::SideEffects::None => SideEffects::None,
        wit::SideEffects::Read => SideEffects::Read,
        wit::SideEffects::Write => SideEffects::Write,
        wit::SideEffects::Execute => SideEffects::Execute,
        wit::SideEffects::Network => SideEffects::Network,
    }
}

/// What a guest returned, in the host's terms.
pub(super) fn returned(
    returned: Result<exported::Output, exported::ToolError>,
    definition: &Definition,
    state: &State,
) -> Result<ToolOutput, ErrorKind> {
    if state.talk.cancel().is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    match returned {
        Ok(raw) => output(raw, definition, &state.talk),
        Err(error) => Err(tool_error(error, state)),
    }
}

/// A guest can never mint a class of the host's. The exceptions rest on what the host saw itself.
fn tool_error(error: exported::ToolError, state: &State) -> ErrorKind {
    if let Some((limit, value)) = state.limiter.denied().or_else(|| state.guard.exhausted().map(Into::into)) {
        return ErrorKind::ResourceExhausted { limit, value };
    }
    match error {
        exported::ToolError::InvalidInput(wit::InvalidInput { field, reason }) => ErrorKind::Execution {
            kind: ExecutionKind::InvalidInput,
            message: format!("`{}`: {}", elided(&field, 128), message(&reason)),
            field: Some(elided(&field, 128)),
            source: None,
        },
        exported::ToolError::NotFound(text) => ErrorKind::execution(ExecutionKind::NotFound, message(&text)),
        exported::ToolError::PermissionDenied(text) => match state.guard.refusal() {
            Some(refusal) => denied(&text, refusal),
            None => ErrorKind::execution(ExecutionKind::PermissionDenied, message(&text)),
        },
        exported::ToolError::Failed(text) => ErrorKind::execution(ExecutionKind::Failed, message(&text)),
        exported::ToolError::Cancelled => {
            ErrorKind::execution(ExecutionKind::Cancelled, "the tool says that it was cancelled; nobody cancelled it")
        }
    }
}

/// What the host knows, and behind it the tool's own words.
fn denied(text: &str, refusal: &Refusal) -> ErrorKind {
    let tree = refusal.tree().cloned();
    let reason = if tree.is_some() { PermissionReason::Protected } else { PermissionReason::Sandbox };
    ErrorKind::PermissionDenied {
        reason,
        message: format!("{refusal}; the tool says: {}", message(text)),
        advice: refusal.advice(),
        tree,
    }
}

fn message(text: &str) -> String {
    let text = visible(cut(text.trim(), MESSAGE));
    if text.is_empty() { "the tool failed without saying why".to_owned() } else { text }
}

fn output(raw: exported::Output, definition: &Definition, talk: &Talk) -> Result<ToolOutput, ErrorKind> {
    if size(&raw) > limits::RESULT {
        return Err(ErrorKind::ResourceExhausted { limit: Limit::Result, value: limits::RESULT });
    }
    let mut blocks = Blocks::default();
    let content = raw.content.into_iter().map(|block| blocks.take(block)).collect::<Result<Vec<_>, _>>()?;
    let metadata =
        object(&raw.metadata).map_err(|reason| contract(&format!("its metadata is not a JSON object: {reason}")))?;
    if raw.success {
        conforms(&content, definition)?;
    }
    if let Some(left_out) = blocks.left_out() {
        talk.warn(&left_out);
    }
    Ok(ToolOutput {
        content,
        outcome: if raw.success { Outcome::Success } else { Outcome::Failure },
        metadata,
        files_modified: raw.files_modified.into_iter().take(FILES).map(|path| visible(&path)).collect(),
        command_executed: raw.command_executed.map(|command| message(&command)),
    })
}

fn size(raw: &exported::Output) -> u64 {
    let files = raw.files_modified.iter().map(String::len).sum::<usize>();
    let rest = files + raw.metadata.len() + raw.command_executed.as_ref().map_or(0, String::len);
    (blocks::size(&raw.content) + rest) as u64
}

fn conforms(content: &[Content], definition: &Definition) -> Result<(), ErrorKind> {
    let Some(schema) = definition.output_schema() else { return Ok(()) };
    match content {
        [Content::Json(value)] => {
            schema.validate(value).map_err(|wrong| contract(&format!("its output breaks its own schema: {wrong}")))
        }
        _ => Err(contract("it has an output schema, so a successful output is exactly one json block")),
    }
}

pub(super) fn contract(what: &str) -> ErrorKind {
    ErrorKind::execution(ExecutionKind::Contract, format!("the plugin broke its contract: {what}"))
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    if text.is_empty() || text == "{}" {
        return Ok(Map::new());
    }
    parse_object(text, METADATA).map_err(|error| error.to_string())
}

/// JSON text without a copy for the common case of nothing in it.
pub(super) fn compact(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Object(map) => compact_object(map),
        other => Cow::Owned(other.to_string()),
    }
}

/// As [`compact`], for an object.
pub(super) fn compact_object(map: &Map<String, Value>) -> Cow<'static, str> {
    if map.is_empty() { Cow::Borrowed("{}") } else { Cow::Owned(serde_json::to_string(map).unwrap_or_default()) }
}
