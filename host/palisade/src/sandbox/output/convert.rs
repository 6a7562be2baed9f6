//! Conversion of the result of a guest's `execute`. All data from a guest is bounded and checked
//! here.

use super::breach::Promiser;
use super::content::{self, ContentConverter, Unfit};
use crate::execution::account::CallBudget;
use crate::execution::offload::{IN_PLACE, exhaustion_error, offload};
use crate::execution::share::Share;
use crate::execution::{Outcome, ToolOutput};
use crate::sandbox::bindings::exports::palisade::tool::tool as exported;
use crate::sandbox::bindings::palisade::tool::types as wit;
use crate::sandbox::limits;
use crate::sandbox::refusal::denied;
use crate::sandbox::run::{State, quota};
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::json::{JsonBounds, JsonError, parse_within, type_name};
use crate::tool::text::{cut, elided, visible};
use crate::tool::{ErrorKind, ExecutionKind, Limit, PermissionReason, SideEffects};
use palisade_wasi_fs::Refusal;
use serde_json::{Map, Value};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// The maximum length of a guest's error message, in bytes.
const MESSAGE: usize = 16 << 10;
/// The explanation of a failure on a full disk, which some standard libraries report as an I/O
/// error.
const NO_ROOM: &str = "; the file system of the workspace had no room for a write: it is full, or \
                       a quota of its user is used up";
/// The bounds of the metadata of a definition or an output.
pub(crate) const METADATA: JsonBounds = JsonBounds { bytes: 64 << 10, depth: 64, members: 10_000 };

/// Returns the output of a guest, unless the guest failed or was cancelled.
pub(crate) fn returned(
    returned: Result<exported::Output, exported::ToolError>,
    state: &State,
    class: SideEffects,
) -> Result<exported::Output, ErrorKind> {
    if state.messages.cancel().is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    returned.map_err(|error| tool_error(error, state, class))
}

/// A converted output.
pub(crate) struct Converted {
    pub(crate) output: ToolOutput,
    /// The host's warning about the blocks that were left out.
    pub(crate) left_out: Option<String>,
}

/// The limits for the host's work on the output of a call.
pub(crate) struct Terms<'a> {
    pub(crate) budget: &'a CallBudget,
    /// The share of the turns to compute that the call is charged to.
    pub(crate) turns: &'a Arc<Share>,
    /// The time limit of the call.
    pub(crate) time: Duration,
    /// The class of the tool.
    pub(crate) class: SideEffects,
    pub(crate) promiser: Promiser,
}

impl Terms<'_> {
    /// Returns the error of a call whose budget is exhausted.
    pub(super) fn exhausted(&self, why: Exhausted) -> ErrorKind {
        exhaustion_error(why, self.time, self.class)
    }
}

/// Converts an output. A large one is converted off the runtime's threads.
pub(crate) async fn output(
    raw: exported::Output,
    terms: &Terms<'_>,
) -> Result<Converted, ErrorKind> {
    let budget = terms.budget;
    let bytes = size(&raw);
    let records = records(&raw);
    let exhausted = |why| terms.exhausted(why);
    if bytes > limits::RESULT {
        let _ = offload(budget, terms.turns, move |_| {
            drop(raw);
            Ok(())
        })
        .await;
        return Err(ErrorKind::ResourceExhausted { limit: Limit::Result, value: limits::RESULT });
    }
    budget.reserve(bytes + records).map_err(exhausted)?;
    let converted = if bytes + records <= IN_PLACE as u64 {
        convert(raw, budget)
    } else {
        let work = move |budget: Arc<dyn Budget>| Ok(convert(raw, &*budget));
        Box::pin(offload(budget, terms.turns, work)).await.map_err(exhausted)?
    };
    converted.map_err(|unfit| match unfit {
        Unfit::Contract(kind) => kind,
        Unfit::Exhausted(why) => exhausted(why),
    })
}

/// Converts the error that a guest returned. A guest cannot choose an error class of the host: the
/// host sets those only if it has itself observed their cause.
fn tool_error(error: exported::ToolError, state: &State, class: SideEffects) -> ErrorKind {
    // A guest may recover from a refused growth of its memory, and fail later for another reason.
    // So only `failed`, which names no reason, is attributed to the refusal.
    let memory =
        if let exported::ToolError::Failed(_) = &error { state.limiter.denied() } else { None };
    if let Some((limit, value)) = memory.or_else(|| state.filesystem.exhausted().map(quota)) {
        return ErrorKind::ResourceExhausted { limit, value };
    }
    let refused = state.refused_power();
    let (reason, advice) = refused.map(|it| (it.reason, it.advice)).unzip();
    let missed = missed(state, class, reason);
    let message = |text: &str| match &missed {
        Some(missed) => format!("{}; {missed}", message(text)),
        None => message(text),
    };
    let kind = match error {
        exported::ToolError::InvalidInput(wit::InvalidInput { field, reason }) => {
            ErrorKind::Execution {
                kind: ExecutionKind::InvalidInput,
                message: format!("`{}`: {}", elided(&field, 128), message(&reason)),
                field: Some(elided(&field, 128)),
                advice: None,
                source: None,
            }
        }
        exported::ToolError::NotFound(text) => {
            ErrorKind::execution(ExecutionKind::NotFound, message(&text))
        }
        exported::ToolError::PermissionDenied(text) => match state.filesystem.refusal() {
            Some(refusal) if *refusal != Refusal::Unmounted => denied(refusal, &message(&text)),
            // The explanation names the class, which a refusal without a mount does not know.
            _ if missed.is_some() => ErrorKind::denied(PermissionReason::Sandbox, message(&text)),
            _ => ErrorKind::execution(ExecutionKind::PermissionDenied, message(&text)),
        },
        exported::ToolError::Failed(text) => {
            let full = state.filesystem.is_full().then_some(NO_ROOM);
            let message = message(&text) + full.unwrap_or_default();
            ErrorKind::execution(ExecutionKind::Failed, message)
        }
        exported::ToolError::Cancelled => ErrorKind::execution(
            ExecutionKind::Cancelled,
            "the tool says that it was cancelled; nobody cancelled it",
        ),
    };
    match advice.flatten() {
        Some(advice) => kind.with_advice(advice),
        None => kind,
    }
}

/// Returns the explanation of a failure for a guest that has looked for something that its class
/// or its grants do not have: the error of its standard library names only a missing file or host.
fn missed(state: &State, class: SideEffects, refused: Option<String>) -> Option<String> {
    let files = state.filesystem.is_missed().then(|| {
        format!(
            "the tool looked for files, and a tool of class {class} has none: its author declares \
             class read or write for a tool that uses files"
        )
    });
    let network = state.misses_network.then(|| {
        format!(
            "the tool looked for the network, which no tool of a plugin has (class {class}): give \
             it the data in its input"
        )
    });
    let missed = files.into_iter().chain(network).chain(refused);
    missed.reduce(|before, next| format!("{before}; {next}"))
}

fn message(text: &str) -> String {
    let text = visible(cut(text, MESSAGE).trim());
    if text.is_empty() { "the tool failed without saying why".to_owned() } else { text }
}

fn convert(raw: exported::Output, budget: &dyn Budget) -> Result<Converted, Unfit> {
    let mut converter = ContentConverter::default();
    let content = raw
        .content
        .into_iter()
        .map(|block| converter.convert(block, budget))
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
    Ok(Converted { output, left_out: converter.left_out() })
}

fn size(raw: &exported::Output) -> u64 {
    let files = raw.files_modified.iter().map(String::len).sum::<usize>();
    let rest = files + raw.metadata.len() + raw.command_executed.as_ref().map_or(0, String::len);
    (content::size(&raw.content) + rest) as u64
}

/// Returns the memory of the vectors of blocks and file names, without what their elements point
/// to, in bytes.
fn records(raw: &exported::Output) -> u64 {
    (size_of_val(raw.content.as_slice()) + size_of_val(raw.files_modified.as_slice())) as u64
}

fn metadata(text: &str, budget: &dyn Budget) -> Result<Map<String, Value>, Unfit> {
    if text.is_empty() || text == "{}" {
        return Ok(Map::new());
    }
    let wrong = |reason: &dyn Display| {
        Unfit::Contract(
            Promiser::Plugin.breach(&format!("its metadata is not a JSON object: {reason}")),
        )
    };
    match parse_within(text, METADATA, budget) {
        Ok((Value::Object(metadata), _kept)) => Ok(metadata),
        Ok((other, _)) => Err(wrong(&JsonError::NotAnObject { got: type_name(&other) })),
        Err(JsonError::Exhausted(exhausted)) => Err(exhausted.into()),
        Err(error) => Err(wrong(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::owner::input_turns_of;
    use crate::sandbox::engine::Allocation;
    use crate::sandbox::run::{ClientRequests, Limiter, Messages};
    use crate::tool::Content;
    use crate::tool::budget::Unlimited;
    use palisade_wasi_fs::Filesystem;
    use tokio_util::sync::CancellationToken;
    use wasmtime::ResourceLimiter as _;

    #[test]
    fn handled_memory_refusal_keeps_the_guests_error() -> wasmtime::Result<()> {
        let account = limits::Limits::default().account();
        let mut limiter = Limiter::new(limits::MEMORY, Allocation::Pooled, &account);
        assert!(!limiter.table_growing(0, usize::MAX, None)?);
        let filesystem = Filesystem::closed();
        let now = std::time::Instant::now();
        let state = State::new(
            filesystem,
            limiter,
            Messages::silent(),
            ClientRequests::without_client(),
            now,
        );
        let said = tool_error(
            exported::ToolError::NotFound("no such thing".to_owned()),
            &state,
            SideEffects::None,
        );
        assert!(
            matches!(said, ErrorKind::Execution { kind: ExecutionKind::NotFound, .. }),
            "{said:?}"
        );
        let said = tool_error(
            exported::ToolError::Failed("no memory".to_owned()),
            &state,
            SideEffects::None,
        );
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
    fn every_part_of_an_output_counts() {
        assert_eq!(size(&output()), 4 + 7 + 8 + 2);
        assert_eq!(size(&exported::Output { command_executed: None, ..output() }), 4 + 7 + 8);
        assert_eq!(
            records(&output()),
            (size_of::<wit::Content>() + 2 * size_of::<String>()) as u64
        );
    }

    #[test]
    fn output_is_kept_except_claimed_changes() {
        let Ok(Converted { output: taken, left_out: None }) = convert(output(), &Unlimited) else {
            panic!("nothing is left out")
        };
        assert!(matches!(&*taken.content, [Content::Text(text)] if text == "text"));
        assert_eq!((taken.outcome, taken.metadata["a"].as_u64()), (Outcome::Failure, Some(1)));
        assert_eq!(
            (taken.files_modified.len(), taken.command_executed.as_deref()),
            (0, Some("ls"))
        );
    }

    #[tokio::test]
    async fn output_memory_is_reserved_up_to_its_bound() {
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
            let time = Duration::from_secs(1);
            let terms = Terms {
                budget: &budget,
                turns: input_turns_of(None),
                time,
                class: SideEffects::None,
                promiser: Promiser::Plugin,
            };
            let taken = super::output(raw, &terms).await;
            let refused =
                matches!(taken, Err(ErrorKind::ResourceExhausted { limit: Limit::Result, .. }));
            assert_eq!((taken.is_ok(), refused), (fits, !fits), "{length}");
            let held = if fits { limits::RESULT + size_of::<wit::Content>() as u64 } else { 0 };
            assert_eq!(account.held(), held);
        }
    }

    #[test]
    fn metadata_is_an_optional_object() {
        for (text, members) in [("", 0), ("{}", 0), (" { } ", 0), (r#"{"a":1}"#, 1)] {
            assert_eq!(
                metadata(text, &Unlimited).map(|map| map.len()).ok(),
                Some(members),
                "{text}"
            );
        }
        for text in ["[]", "{", "1"] {
            assert!(matches!(metadata(text, &Unlimited), Err(Unfit::Contract(_))), "{text}");
        }
    }

    #[test]
    fn guest_message_is_bounded_and_never_empty() {
        assert_eq!(message(" no\u{202e} "), visible("no\u{202e}"));
        assert_eq!(message(" \n"), "the tool failed without saying why");
        assert_eq!(message(&"x".repeat(MESSAGE + 1)).len(), MESSAGE);
    }
}
