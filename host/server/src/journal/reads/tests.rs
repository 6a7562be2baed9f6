//! No read grows with the journal: each is led by an index, and none sorts.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::{calls, confirmations, events, sessions};
use crate::journal::filters::{CallFilter, ConfirmationFilter, EventFilter, SessionFilter};
use crate::journal::ids::CallKey;
use crate::journal::rows::CallState;
use crate::journal::schema::{Access, connect};

/// Returns the steps of SQLite's plan.
fn plan(query: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    let conn = connect(file.path(), Access::Write).unwrap();
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    // Parameters without a value are NULL, and the plan does not depend on them.
    let mut rows = explain.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get::<_, String>(3).unwrap());
    }
    steps.join("; ")
}

#[track_caller]
fn led_by(query: &str, index: &str) {
    let plan = plan(query);
    assert!(plan.contains(index), "{plan}");
    assert!(plan.starts_with("SEARCH") && !plan.contains("TEMP B-TREE"), "{plan}");
}

#[test]
fn each_filter_of_calls_has_its_index() {
    let all = CallFilter::default;
    let text = || Some("x".into());
    let index = |filter: CallFilter, index: &str| led_by(calls::driver(&filter).0, index);
    index(all(), "INTEGER PRIMARY KEY");
    index(CallFilter { client: text(), ..all() }, "calls_of_client");
    index(CallFilter { session_id: text(), ..all() }, "calls_of_session");
    index(CallFilter { tool: text(), ..all() }, "calls_of_tool");
    index(CallFilter { class: text(), ..all() }, "calls_of_class");
    index(CallFilter { error_class: text(), ..all() }, "calls_by_error");
    for state in CallState::ALL {
        index(CallFilter { state: Some(state), ..all() }, "calls_in_state");
    }
    let running = CallFilter { tool: text(), state: Some(CallState::Running), ..all() };
    index(running, "calls_in_state");
}

#[test]
fn each_filter_of_events_questions_and_sessions_has_its_index() {
    let all = EventFilter::default;
    let text = || Some("x".into());
    let index = |filter: EventFilter, index: &str| led_by(events::driver(&filter).0, index);
    index(all(), "INTEGER PRIMARY KEY");
    index(EventFilter { client: text(), ..all() }, "events_of_client");
    index(EventFilter { session_id: text(), ..all() }, "events_of_session");
    index(EventFilter { call: Some(CallKey::new(1)), ..all() }, "events_of_call");
    let all = ConfirmationFilter::default;
    let index =
        |filter: ConfirmationFilter, index: &str| led_by(confirmations::driver(&filter).0, index);
    index(all(), "INTEGER PRIMARY KEY");
    index(ConfirmationFilter { request_id: text(), ..all() }, "confirmations_by_id");
    index(ConfirmationFilter { session_id: text(), ..all() }, "confirmations_of_session");
    index(ConfirmationFilter { resolution: text(), ..all() }, "confirmations_by_resolution");
    let index = |filter: SessionFilter, index: &str| led_by(sessions::driver(&filter).0, index);
    index(SessionFilter::default(), "INTEGER PRIMARY KEY");
    index(SessionFilter { client: text() }, "sessions_of_client");
    led_by(sessions::CALLS, "calls_of_session");
}
