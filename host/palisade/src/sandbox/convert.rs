//! Conversion between the records of the WIT and the host's types. All data from a guest is bounded
//! and checked here.

use super::bindings::exports::palisade::tool::tool as exported;
use super::bindings::palisade::tool::types as wit;
use super::blocks::{self, Blocks, Unfit};
use super::ended::quota;
use super::limits;
use super::prepare::PluginRefused;
use super::refusal::denied;
use super::state::State;
use crate::execution::account::CallBudget;
use crate::execution::offload::{IN_PLACE, ended, offload};
use crate::execution::share::Share;
use crate::execution::{Outcome, ToolOutput};
use crate::tool::budget::Budget;
use crate::tool::json::{JsonBounds, JsonError, parse_object, parse_within, type_name};
use crate::tool::schema::{Building, hidden_in};
use crate::tool::text::{cut, elided, visible};
use crate::tool::{
    Definition, DefinitionError, ErrorKind, ExecutionKind, Limit, Schema, SideEffects,
    definition::Idempotence,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// The maximum length of a guest's error message, in bytes.
const MESSAGE: usize = 16 << 10;
/// The bounds of the metadata of a definition or an output.
const METADATA: JsonBounds = JsonBounds { bytes: 64 << 10, depth: 64, members: 10_000 };

/// Checks and converts one definition of a plugin.
pub(super) fn definition(
    raw: &exported::Definition,
    building: Building,
) -> Result<Definition, PluginRefused> {
    let tool = elided(&raw.name, 64);
    let refused = |source: DefinitionError| PluginRefused::Tool { tool: tool.clone(), source };
    let input = Schema::parse_input_built(&raw.input_schema, building)
        .map_err(DefinitionError::Input)
        .map_err(refused)?;
    let class = side_effects(raw.side_effects);
    let mut definition =
        Definition::with_schema(&raw.name, &raw.description, class, input).map_err(refused)?;
    if let Some(title) = &raw.title {
        definition = definition.with_title(title).map_err(refused)?;
    }
    if let Some(schema) = &raw.output_schema {
        definition = definition.with_checked_output(
            Schema::parse_output_built(schema, building)
                .map_err(DefinitionError::Output)
                .map_err(refused)?,
        );
    }
    if let Some(ms) = raw.timeout_ms {
        definition = definition.with_timeout(Duration::from_millis(ms.into())).map_err(refused)?;
    }
    let metadata = object(&raw.metadata)
        .map_err(|reason| PluginRefused::Metadata { tool: tool.clone(), reason })?;
    if let Some((at, character)) = hidden_in(&metadata) {
        return Err(PluginRefused::HiddenMetadata {
            tool,
            at: elided(&at, 128),
            character: character.into(),
        });
    }
    let idempotence =
        if raw.idempotent { Idempotence::Idempotent } else { Idempotence::NotIdempotent };
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

/// Returns the output of a guest, unless the guest failed or was cancelled.
pub(super) fn returned(
    returned: Result<exported::Output, exported::ToolError>,
    state: &State,
) -> Result<exported::Output, ErrorKind> {
    if state.talk.cancel().is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    returned.map_err(|error| tool_error(error, state))
}

/// Converts an output, and returns the host's warning about the blocks that were left out. A large
/// output is converted off the runtime's threads.
pub(super) async fn output(
    raw: exported::Output,
    class: SideEffects,
    budget: &CallBudget,
    turns: &Arc<Share>,
    time: Duration,
) -> Result<(ToolOutput, Option<String>), ErrorKind> {
    let bytes = size(&raw);
    let records = records(&raw);
    let exhausted = |why| ended(why, time, class);
    if bytes > limits::RESULT {
        let _ = offload(budget, turns, move |_| {
            drop(raw);
            Ok(())
        })
        .await;
        return Err(ErrorKind::ResourceExhausted { limit: Limit::Result, value: limits::RESULT });
    }
    budget.reserve(bytes + records).map_err(exhausted)?;
    let taken = if bytes + records <= IN_PLACE as u64 {
        taken(raw, budget)
    } else {
        let away = move |budget: Arc<dyn Budget>| Ok(taken(raw, &*budget));
        Box::pin(offload(budget, turns, away)).await.map_err(exhausted)?
    };
    taken.map_err(|unfit| match unfit {
        Unfit::Contract(kind) => kind,
        Unfit::Exhausted(why) => exhausted(why),
    })
}

/// Converts the error of a guest. A guest alone cannot produce an error class of the host: those
/// depend on what the host observed.
fn tool_error(error: exported::ToolError, state: &State) -> ErrorKind {
    // A guest may recover from a refused memory growth. Only an unspecific failure is attributed to
    // it; a more specific error is the guest's own.
    let memory =
        if let exported::ToolError::Failed(_) = &error { state.limiter.denied() } else { None };
    if let Some((limit, value)) = memory.or_else(|| state.filesystem.exhausted().map(quota)) {
        return ErrorKind::ResourceExhausted { limit, value };
    }
    match error {
        exported::ToolError::InvalidInput(wit::InvalidInput { field, reason }) => {
            ErrorKind::Execution {
                kind: ExecutionKind::InvalidInput,
                message: format!("`{}`: {}", elided(&field, 128), message(&reason)),
                field: Some(elided(&field, 128)),
                source: None,
            }
        }
        exported::ToolError::NotFound(text) => {
            ErrorKind::execution(ExecutionKind::NotFound, message(&text))
        }
        exported::ToolError::PermissionDenied(text) => match state.filesystem.refusal() {
            Some(refusal) => denied(refusal, &message(&text)),
            None => ErrorKind::execution(ExecutionKind::PermissionDenied, message(&text)),
        },
        exported::ToolError::Failed(text) => {
            ErrorKind::execution(ExecutionKind::Failed, message(&text))
        }
        exported::ToolError::Cancelled => ErrorKind::execution(
            ExecutionKind::Cancelled,
            "the tool says that it was cancelled; nobody cancelled it",
        ),
    }
}

fn message(text: &str) -> String {
    let text = visible(cut(text, MESSAGE).trim());
    if text.is_empty() { "the tool failed without saying why".to_owned() } else { text }
}

fn taken(
    raw: exported::Output,
    budget: &dyn Budget,
) -> Result<(ToolOutput, Option<String>), Unfit> {
    let mut blocks = Blocks::default();
    let content = raw
        .content
        .into_iter()
        .map(|block| blocks.take(block, budget))
        .collect::<Result<Vec<_>, _>>()?;
    let metadata = metadata(&raw.metadata, budget)?;
    let output = ToolOutput {
        content,
        outcome: if raw.success { Outcome::Success } else { Outcome::Failure },
        metadata,
        // The host reports the files that it saw change, whatever the guest claims.
        files_modified: Vec::new(),
        command_executed: raw.command_executed.map(|command| message(&command)),
    };
    Ok((output, blocks.left_out()))
}

fn size(raw: &exported::Output) -> u64 {
    let files = raw.files_modified.iter().map(String::len).sum::<usize>();
    let rest = files + raw.metadata.len() + raw.command_executed.as_ref().map_or(0, String::len);
    (blocks::size(&raw.content) + rest) as u64
}

/// Returns the size of the block and file name records without their content, in bytes.
fn records(raw: &exported::Output) -> u64 {
    (size_of_val(raw.content.as_slice()) + size_of_val(raw.files_modified.as_slice())) as u64
}

fn metadata(text: &str, budget: &dyn Budget) -> Result<Map<String, Value>, Unfit> {
    if text.is_empty() || text == "{}" {
        return Ok(Map::new());
    }
    let wrong = |reason: &dyn Display| {
        Unfit::Contract(contract(&format!("its metadata is not a JSON object: {reason}")))
    };
    match parse_within(text, METADATA, budget) {
        Ok((Value::Object(metadata), _kept)) => Ok(metadata),
        Ok((other, _)) => Err(wrong(&JsonError::NotAnObject { got: type_name(&other) })),
        Err(JsonError::Exhausted(exhausted)) => Err(exhausted.into()),
        Err(error) => Err(wrong(&error)),
    }
}

pub(super) fn contract(what: &str) -> ErrorKind {
    ErrorKind::execution(ExecutionKind::Contract, format!("the plugin broke its contract: {what}"))
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    parse_object(text, METADATA).map_err(|error| error.to_string())
}

/// Serialises a value to JSON text, without an allocation for an empty object.
pub(super) fn compact(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Object(map) => compact_object(map),
        other => Cow::Owned(other.to_string()),
    }
}

/// Serialises an object, as [`compact`] does.
pub(super) fn compact_object(map: &Map<String, Value>) -> Cow<'static, str> {
    if map.is_empty() {
        Cow::Borrowed("{}")
    } else {
        Cow::Owned(serde_json::to_string(map).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::Asking;
    use super::super::engine::Allocation;
    use super::super::limiter::Limiter;
    use super::super::talk::Talk;
    use super::*;
    use crate::execution::owner::input_turns;
    use crate::tool::Content;
    use crate::tool::budget::Unlimited;
    use palisade_wasi_fs::Filesystem;
    use tokio_util::sync::CancellationToken;
    use wasmtime::ResourceLimiter as _;

    #[test]
    fn a_guest_that_made_do_without_memory_says_itself_what_it_has_not_found()
    -> wasmtime::Result<()> {
        let account = limits::Limits::default().account();
        let mut limiter = Limiter::new(limits::MEMORY, Allocation::Pooled, &account);
        assert!(!limiter.table_growing(0, usize::MAX, None)?);
        let filesystem = Filesystem::closed();
        let now = std::time::Instant::now();
        let state = State::new(filesystem, limiter, Talk::silent(), Asking::nobody(), now);
        let said = tool_error(exported::ToolError::NotFound("no such thing".to_owned()), &state);
        assert!(
            matches!(said, ErrorKind::Execution { kind: ExecutionKind::NotFound, .. }),
            "{said:?}"
        );
        let said = tool_error(exported::ToolError::Failed("no memory".to_owned()), &state);
        assert!(
            matches!(said, ErrorKind::ResourceExhausted { limit: Limit::Tables, .. }),
            "{said:?}"
        );
        Ok(())
    }

    fn output() -> exported::Output {
        exported::Output {
            content: vec![wit::Content::Text("text".to_owned())],
            success: false,
            metadata: r#"{"a":1}"#.to_owned(),
            files_modified: vec!["one".to_owned(), "other".to_owned()],
            command_executed: Some("ls".to_owned()),
        }
    }

    #[test]
    fn everything_that_an_output_holds_counts() {
        assert_eq!(size(&output()), 4 + 7 + 8 + 2);
        assert_eq!(size(&exported::Output { command_executed: None, ..output() }), 4 + 7 + 8);
        assert_eq!(
            records(&output()),
            (size_of::<wit::Content>() + 2 * size_of::<String>()) as u64
        );
    }

    #[test]
    fn an_output_is_taken_over_but_for_what_the_host_knows_better() {
        let Ok((taken, None)) = taken(output(), &Unlimited) else { panic!("nothing is left out") };
        assert!(matches!(&*taken.content, [Content::Text(text)] if text == "text"));
        assert_eq!((taken.outcome, taken.metadata["a"].as_u64()), (Outcome::Failure, Some(1)));
        assert_eq!(
            (taken.files_modified.len(), taken.command_executed.as_deref()),
            (0, Some("ls"))
        );
    }

    #[tokio::test]
    async fn an_output_up_to_its_bound_is_reserved_for_the_call_and_a_larger_one_is_refused() {
        let whole = usize::try_from(limits::RESULT).unwrap_or(usize::MAX);
        for (length, fits) in [(whole, true), (whole + 1, false)] {
            let account = limits::Limits::default().account();
            let far = std::time::Instant::now() + Duration::from_secs(3_600);
            let budget = CallBudget::new(account.clone(), far, CancellationToken::new());
            let content = vec![wit::Content::Text("x".repeat(length))];
            let metadata = String::new();
            let raw = exported::Output {
                content,
                metadata,
                files_modified: Vec::new(),
                command_executed: None,
                ..output()
            };
            let taken = super::output(
                raw,
                SideEffects::None,
                &budget,
                input_turns(),
                Duration::from_secs(1),
            )
            .await;
            let refused =
                matches!(taken, Err(ErrorKind::ResourceExhausted { limit: Limit::Result, .. }));
            assert_eq!((taken.is_ok(), refused), (fits, !fits), "{length}");
            let held = if fits { limits::RESULT + size_of::<wit::Content>() as u64 } else { 0 };
            assert_eq!(account.held(), held);
        }
    }

    #[test]
    fn metadata_is_an_object_and_may_be_left_out() {
        for (text, members) in [("", 0), ("{}", 0), (" { } ", 0), (r#"{"a":1}"#, 1)] {
            assert_eq!(
                metadata(text, &Unlimited).map(|map| map.len()).ok(),
                Some(members),
                "{text}"
            );
            assert_eq!(object(text).map(|map| map.len()), Ok(members), "{text}");
        }
        for text in ["[]", "{", "1"] {
            assert!(
                matches!(metadata(text, &Unlimited), Err(Unfit::Contract(_)))
                    && object(text).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_a_guest_says_is_shown_within_bounds_and_never_empty() {
        assert_eq!(message(" no\u{202e} "), visible("no\u{202e}"));
        assert_eq!(message(" \n"), "the tool failed without saying why");
        assert_eq!(message(&"x".repeat(MESSAGE + 1)).len(), MESSAGE);
    }

    #[test]
    fn json_for_a_guest_is_compact() {
        for (value, text) in [
            (serde_json::json!({}), "{}"),
            (serde_json::json!({"a": [1]}), r#"{"a":[1]}"#),
            (Value::Null, "null"),
        ] {
            assert_eq!(compact(&value), text);
        }
    }
}
