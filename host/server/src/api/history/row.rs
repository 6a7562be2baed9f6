//! A call in the list.

use crate::journal::CallRow;
use serde::Serialize;
use utoipa::ToSchema;

/// The length of a preview, in characters.
const PREVIEW: usize = 200;

/// A call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CallRow)]
pub(in crate::api) struct CallRowView {
    /// The key in the journal, for `/calls/{key}`.
    id: String,
    /// The caller's id.
    call_id: String,
    session_id: Option<String>,
    turn_id: Option<String>,
    /// The id of the client that opened the session.
    client: Option<String>,
    /// The name and version that the client claims; `null` if it claims none.
    client_name: Option<String>,
    tool: String,
    plugin: Option<String>,
    /// `none`, `read`, `write`, `execute` or `network`; `null` for an unknown tool.
    class: Option<String>,
    /// `waiting`, `running`, `succeeded`, `failed` or `unknown`.
    state: &'static str,
    /// The class of the error, with the state `failed`.
    error_class: Option<String>,
    /// When the journal saw the call first.
    requested_at: String,
    /// When it began to run; `null` if it never did.
    started_at: Option<String>,
    /// When it ended; `null` while it is open, and if that is not known.
    ended_at: Option<String>,
    /// The run time.
    duration_ms: Option<f64>,
    /// The beginning of the input, if inputs are recorded.
    input_preview: Option<String>,
}

impl From<CallRow> for CallRowView {
    fn from(row: CallRow) -> Self {
        let duration = row.duration.filter(|_| row.ended.is_some());
        Self {
            id: row.key.to_string(),
            call_id: row.id,
            session_id: row.session_id,
            turn_id: row.turn_id,
            client: row.client,
            client_name: row.client_name,
            tool: row.tool,
            plugin: row.plugin,
            class: row.class,
            state: row.state.as_str(),
            error_class: row.error_class,
            requested_at: row.created.to_string(),
            started_at: row.started.map(|at| at.to_string()),
            ended_at: row.ended.map(|at| at.to_string()),
            duration_ms: duration.map(|time| time.as_secs_f64() * 1e3),
            input_preview: row.input_start.map(|input| input.chars().take(PREVIEW).collect()),
        }
    }
}
