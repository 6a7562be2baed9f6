//! The calls of a journal as JSON.

use palisade_server::journal::{Body, CallPage, CallRow, ConfirmationRow};
use serde_json::{Value, json};

/// Returns a call of a listing.
pub(super) fn row_value(row: &CallRow) -> Value {
    json!({
        "key": row.key.get(),
        "call_id": row.id,
        "session_id": row.session_id,
        "turn_id": row.turn_id,
        "client": row.client,
        "client_name": row.client_name,
        "tool": row.tool,
        "class": row.class,
        "plugin": row.plugin,
        "digest": row.digest,
        "state": row.state.as_str(),
        "error_class": row.error_class,
        "message": row.message,
        "created_at": row.created.to_string(),
        "started_at": row.started.map(|at| at.to_string()),
        "ended_at": row.ended.map(|at| at.to_string()),
        "duration_ms": row.duration.map(|time| time.as_secs_f64() * 1e3),
        "input_preview": row.input_start,
    })
}

/// Returns everything about a call.
pub(super) fn call_value(page: &CallPage) -> Value {
    let mut value = row_value(&page.call);
    let events: Vec<Value> =
        page.events.iter().filter_map(|event| serde_json::from_str(&event.line).ok()).collect();
    let more = json!({
        "input": page.input.as_ref().map(body_value),
        "output": page.output.as_ref().map(body_value),
        "files_modified": page.files_modified,
        "files_modified_unlisted": page.files_unlisted,
        "command_executed": page.command_executed,
        "confirmations": page.confirmations.iter().map(question_value).collect::<Vec<_>>(),
        "events": events,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
        all.extend(more);
    }
    value
}

fn body_value(body: &Body) -> Value {
    json!({"text": body.text.as_deref(), "bytes": body.length, "digest": body.digest.as_deref()})
}

fn question_value(row: &ConfirmationRow) -> Value {
    json!({
        "request_id": row.request_id,
        "asked_at": row.asked.to_string(),
        "resolved_at": row.resolved.map(|at| at.to_string()),
        "decision": row.resolution,
        "answered_by": row.answered_by,
        "projected_modifications": row.projected_modifications,
    })
}
