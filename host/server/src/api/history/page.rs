//! A call's page.

use super::row::CallRowView;
use crate::api::calls::UsageView;
use crate::api::store::settlement;
use crate::confirmations::Settlement;
use crate::journal::{CallPage, CallState, ConfirmationRow, More, OtherBlock, StoredEvent};
use palisade::tool::json::{JsonBounds, parse_bounded};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The bounds of an event: a host bounds its own.
const EVENT: JsonBounds = JsonBounds { bytes: 4 << 20, depth: 120, members: 250_000 };

/// A call with everything that is known about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CallPage)]
pub(in crate::api) struct CallPageView {
    #[serde(flatten)]
    row: CallRowView,
    digest: Option<String>,
    /// The input as JSON text, or the text that came in its place; `null` if it is not recorded.
    input: Option<String>,
    input_digest: Option<String>,
    input_bytes: u64,
    input_truncated: bool,
    /// The text of the output, also what a failed call left.
    output: Option<String>,
    output_bytes: u64,
    output_truncated: bool,
    /// The blocks of the output that are not text; 64 at most. The journal keeps only these facts.
    output_other: Vec<OtherBlockView>,
    error: Option<CallError>,
    /// The tool's message to the program.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// Each name is a string, or an object `{"path", "bytes"}` if it is not UTF-8.
    files_modified: Vec<Value>,
    files_modified_unlisted: u64,
    /// The executed command; its digest if inputs are recorded as digests.
    command_executed: Option<String>,
    usage: Option<UsageView>,
    confirmations: Vec<PastConfirmation>,
    events: Vec<EventView>,
    /// True if there are more events.
    events_truncated: bool,
    /// The number of the call that made this one; `null` if no running tool did.
    parent_id: Option<String>,
    /// The calls that this one made, oldest first; 256 at most.
    nested: Vec<CallRowView>,
}

/// A block of the output that is not text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OtherBlock)]
struct OtherBlockView {
    /// `image`, `audio` or `resource`.
    kind: String,
    media_type: String,
    bytes: u64,
}

/// The error of a call.
#[derive(Debug, Serialize, ToSchema)]
struct CallError {
    class: String,
    message: String,
}

/// A question about a call.
#[derive(Debug, Serialize, ToSchema)]
struct PastConfirmation {
    request_id: String,
    requested_at: String,
    expires_at: String,
    resolution: Option<Settlement>,
}

/// An event of a call.
#[derive(Debug, Serialize, ToSchema)]
struct EventView {
    id: String,
    time: String,
    name: String,
    #[schema(value_type = Object)]
    data: Value,
}

impl From<OtherBlock> for OtherBlockView {
    fn from(block: OtherBlock) -> Self {
        let OtherBlock { kind, media_type, bytes } = block;
        Self { kind, media_type, bytes }
    }
}

impl From<&StoredEvent> for EventView {
    fn from(event: &StoredEvent) -> Self {
        Self {
            id: event.id.to_string(),
            time: event.time.to_string(),
            name: event.name.to_string(),
            data: parse_bounded(event.line.trim_end(), EVENT).unwrap_or_default(),
        }
    }
}

impl From<ConfirmationRow> for PastConfirmation {
    fn from(row: ConfirmationRow) -> Self {
        let resolution = settlement(&row);
        Self {
            request_id: row.request_id,
            requested_at: row.asked.to_string(),
            expires_at: row.expires.to_string(),
            resolution,
        }
    }
}

impl From<CallPage> for CallPageView {
    fn from(page: CallPage) -> Self {
        let events: Vec<EventView> =
            page.events.iter().map(|event| EventView::from(&**event)).collect();
        let metadata = events.iter().rev().find_map(|event| event.data.get("metadata").cloned());
        let (call, input) = (page.call, page.input.unwrap_or_default());
        let output = page.output.unwrap_or_default();
        let kept = |text: &Option<std::sync::Arc<str>>, length: u64| {
            text.as_ref().is_some_and(|text| (text.len() as u64) < length)
        };
        let error = call.error_class.clone().filter(|_| call.state == CallState::Failed);
        let error = error
            .map(|class| CallError { class, message: call.message.clone().unwrap_or_default() });
        let used = page.used.filter(|_| call.started.is_some());
        Self {
            digest: call.digest.clone(),
            row: call.into(),
            input_truncated: kept(&input.text, input.length),
            input: input.text.as_deref().map(str::to_owned),
            input_digest: input.digest.as_deref().map(str::to_owned),
            input_bytes: input.length,
            output_truncated: kept(&output.text, output.length),
            output: output.text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned),
            output_bytes: output.length,
            output_other: page.other_blocks.into_iter().map(OtherBlockView::from).collect(),
            error,
            metadata,
            files_modified: page.files_modified,
            files_modified_unlisted: page.files_unlisted,
            command_executed: page.command_executed,
            usage: used.map(|used| UsageView {
                peak_memory_bytes: used.peak_memory_bytes,
                bytes_read: used.bytes_read,
                bytes_written: used.bytes_written,
                truncated_bytes: used.truncated_bytes,
            }),
            confirmations: page.confirmations.into_iter().map(PastConfirmation::from).collect(),
            events,
            events_truncated: page.more_events == More::Yes,
            parent_id: page.parent.map(|parent| parent.to_string()),
            nested: page.nested.into_iter().map(CallRowView::from).collect(),
        }
    }
}
