//! Between the records of the WIT and the host's own types. Everything that comes from a guest is bounded and checked here.

use super::bindings::exports::palisade::tool::tool as exported;
use super::bindings::palisade::tool::types as wit;
use super::guard::Refusal;
use super::limits;
use super::prepare::PluginRefused;
use super::state::State;
use super::talk::Talk;
use crate::execution::{Outcome, ToolOutput};
use crate::tool::json::{JsonBounds, parse_bounded, parse_object};
use crate::tool::schema::{Building, hidden_in};
use crate::tool::text::{cut, elided, is_ignorable, visible};
use crate::tool::{
    Body, Content, Definition, DefinitionError, ErrorKind, ExecutionKind, Limit, PermissionReason, Schema, SideEffects,
    definition::Idempotence,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::time::Duration;

/// The longest error message of a guest that is passed on, in bytes.
const MESSAGE: usize = 16 << 10;
/// The bounds of a definition's or an output's metadata.
const METADATA: JsonBounds = JsonBounds { bytes: 64 << 10, depth: 64, members: 10_000 };
/// The bounds of a json block.
const OUTPUT: JsonBounds = JsonBounds { bytes: limits::RESULT as usize, depth: 64, members: 1_000_000 };
/// What a block that is left out counts for besides what is in it, in bytes: the words that stand for it.
const LEFT_OUT: usize = 64;
/// How much of a name is looked at for where it points, in characters.
const LOOKED_AT: usize = 256;
/// Why a block is left out.
const NO_FILE: &str = "for a plugin points at no file of this machine";
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
    let left_out = left_out(&raw.content);
    let content = raw.content.into_iter().map(block).collect::<Result<Vec<_>, _>>()?;
    let metadata =
        object(&raw.metadata).map_err(|reason| contract(&format!("its metadata is not a JSON object: {reason}")))?;
    if raw.success {
        conforms(&content, definition)?;
    }
    if let Some(left_out) = left_out {
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

fn conforms(content: &[Content], definition: &Definition) -> Result<(), ErrorKind> {
    let Some(schema) = definition.output_schema() else { return Ok(()) };
    match content {
        [Content::Json(value)] => {
            schema.validate(value).map_err(|wrong| contract(&format!("its output breaks its own schema: {wrong}")))
        }
        _ => Err(contract("it has an output schema, so a successful output is exactly one json block")),
    }
}

fn size(raw: &exported::Output) -> u64 {
    let blocks = raw.content.iter().map(block_size).sum::<usize>();
    let files = raw.files_modified.iter().map(String::len).sum::<usize>();
    (blocks + files + raw.metadata.len() + raw.command_executed.as_ref().map_or(0, String::len)) as u64
}

fn block_size(block: &wit::Content) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let words = file(block).map_or(0, |_| LEFT_OUT);
    words
        + match block {
            wit::Content::Text(text) | wit::Content::Json(text) => text.len(),
            wit::Content::Image(media) | wit::Content::Audio(media) => media.mime.len() + media.data.len(),
            wit::Content::Resource(resource) => {
                let body = match &resource.body {
                    wit::ResourceBody::Text(text) => text.len(),
                    wit::ResourceBody::Bytes(bytes) => bytes.len(),
                };
                resource.uri.len() + optional(&resource.mime) + body
            }
            wit::Content::Link(link) => link.uri.len() + link.name.len() + optional(&link.mime),
        }
}

fn block(block: wit::Content) -> Result<Content, ErrorKind> {
    if let Some(uri) = file(&block) {
        return Ok(Content::Text(format!("[left out: `{}`, {NO_FILE}]", elided(uri, 128))));
    }
    Ok(match block {
        wit::Content::Text(text) => Content::Text(text),
        wit::Content::Json(text) => Content::Json(
            parse_bounded(&text, OUTPUT)
                .map_err(|error| contract(&format!("a json block of its output is not valid JSON: {error}")))?,
        ),
        wit::Content::Image(media) => Content::Image { mime: media.mime, data: media.data },
        wit::Content::Audio(media) => Content::Audio { mime: media.mime, data: media.data },
        wit::Content::Resource(resource) => Content::Resource {
            uri: resource.uri,
            mime: resource.mime,
            body: match resource.body {
                wit::ResourceBody::Text(text) => Body::Text(text),
                wit::ResourceBody::Bytes(bytes) => Body::Bytes(bytes),
            },
        },
        wit::Content::Link(link) => Content::Link { uri: link.uri, name: link.name, mime: link.mime },
    })
}

/// What the host says of the blocks that it leaves out: once for all of them.
fn left_out(content: &[wit::Content]) -> Option<String> {
    let mut files = content.iter().filter_map(file);
    let (first, more) = (files.next()?, files.count());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Some(format!("left out of the output: `{}`{more}, {NO_FILE}", elided(first, 128)))
}

/// The file that a block points at.
fn file(block: &wit::Content) -> Option<&str> {
    match block {
        wit::Content::Resource(wit::EmbeddedResource { uri, .. })
        | wit::Content::Link(wit::ResourceLink { uri, .. })
            if points_at_a_file(uri) =>
        {
            Some(uri)
        }
        _ => None,
    }
}

/// Whether whoever follows this would open a file with the rights of the user: a `file:` as browsers read it, in any spelling, without what they leave out and
/// behind a `view-source:`; or a path that needs no scheme, of this machine or of another in its network.
fn points_at_a_file(uri: &str) -> bool {
    let is_read = |character: &char| !character.is_whitespace() && !character.is_control() && !is_ignorable(*character);
    let read: String = uri.chars().filter(is_read).flat_map(char::to_lowercase).take(LOOKED_AT).collect();
    let mut read = read.as_str();
    while let Some(inner) = read.strip_prefix("view-source:") {
        read = inner;
    }
    read.starts_with("file:") || read.starts_with(['/', '\\', '~']) || is_on_a_drive(read)
}

/// `c:\x` and `c:/x`, as Windows writes paths. Behind a scheme of one letter there would be two slashes.
fn is_on_a_drive(read: &str) -> bool {
    let mut characters = read.chars();
    let letter = characters.next().is_some_and(|it| it.is_ascii_alphabetic());
    let rest = characters.as_str();
    letter && (rest.starts_with(":\\") || rest.starts_with(":/") && !rest.starts_with("://"))
}

fn contract(what: &str) -> ErrorKind {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_opens_a_file_is_told_from_one_that_does_not() {
        for file in [
            "file:///etc/passwd",
            "FILE:/x",
            " f\ti\nle:x",
            "\u{feff}file:x",
            "\u{a0}fi\u{200b}le:x",
            "view-source:file:///x",
            "view-source:view-source:FILE:x",
            "/etc/passwd",
            "//host/share",
            "\\\\host\\share",
            "~/.ssh/id_rsa",
            "C:\\x",
            "c:/x",
        ] {
            assert!(points_at_a_file(file), "{file:?}");
        }
        for other in
            ["note:1", "https://example.org/file:", "a://x", "a:1", "profile:x", "", "view-source:https://x", "notes/1"]
        {
            assert!(!points_at_a_file(other), "{other:?}");
        }
    }

    #[test]
    fn what_stands_for_a_block_that_is_left_out_is_no_longer_than_it_counted_for() {
        let link = wit::ResourceLink { uri: "file:".to_owned(), name: String::new(), mime: None };
        let counted = block_size(&wit::Content::Link(link.clone()));
        let Ok(Content::Text(text)) = block(wit::Content::Link(link)) else { panic!("it is left out") };
        assert!(text.len() <= counted, "{text:?} has {} bytes, and counts for {counted}", text.len());
    }
}
