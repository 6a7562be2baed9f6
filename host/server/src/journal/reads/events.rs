//! Reads events from the file, for readers that are behind.

use super::SCAN;
use crate::journal::filters::EventFilter;
use crate::journal::ids::{CallKey, EventId};
use crate::journal::ring::EventPage;
use crate::journal::rows::{Events, StoredEvent};
use crate::journal::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};
use std::sync::Arc;

/// Defines a query for events in a range of numbers, with an index for one condition.
macro_rules! select {
    ($condition:literal) => {
        concat!(
            "SELECT id, time, name, session_id, client, call_id, call, line FROM events WHERE ",
            $condition,
            " AND id > ?2 AND id <= ?3 ORDER BY id LIMIT ?4"
        )
    };
}

/// Returns the number of the newest event that was ever committed.
pub(in crate::journal) fn newest(conn: &Connection) -> Result<EventId> {
    let mut find = conn.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'events'")?;
    let newest = find.query_row([], |row| row.get(0)).optional()?;
    Ok(EventId::from_stored(newest.unwrap_or_default()))
}

/// Returns the events after a position, up to one that is committed.
pub(in crate::journal) fn after(
    conn: &mut Connection,
    after: EventId,
    newest: EventId,
    filter: &EventFilter,
    limit: usize,
) -> Result<Events> {
    // One view of the file: a removal meanwhile would be a gap that nobody notices.
    let view = conn.transaction()?;
    let pruned_to = pruned_to(&view)?;
    let gap = (after < pruned_to).then(|| pruned_to.next());
    let mut events = page(&view, after.max(pruned_to), newest, filter, limit)?;
    events.gap = gap;
    Ok(events)
}

/// Returns the number up to which events are no longer kept.
fn pruned_to(conn: &Connection) -> Result<EventId> {
    let mut find = conn.prepare_cached("SELECT value FROM meta WHERE name = 'pruned_to'")?;
    find.query_row([], |row| row.get(0)).map(EventId::from_stored)
}

pub(super) fn page(
    conn: &Connection,
    after: EventId,
    newest: EventId,
    filter: &EventFilter,
    limit: usize,
) -> Result<Events> {
    let (query, value) = driver(filter);
    let mut select = conn.prepare_cached(query)?;
    let scan = i64::try_from(SCAN).unwrap_or(i64::MAX);
    let mut rows = select.query(params![value, after.stored(), newest.stored(), scan])?;
    let mut page = EventPage::new(limit);
    let (mut scanned, mut last) = (0, after);
    while let Some(row) = rows.next()? {
        let event = Arc::new(event(row)?);
        (scanned, last) = (scanned + 1, event.id);
        if filter.admits(&event) && !page.add(&event) {
            return Ok(page.ended_before(event.id));
        }
    }
    let scanned_to = if scanned == SCAN { last } else { newest.max(after) };
    Ok(page.complete(scanned_to))
}

/// Returns the query with an index for a condition, and the value of the condition.
pub(super) fn driver(filter: &EventFilter) -> (&'static str, Value) {
    let of = |text: &Arc<str>| Value::from(text.to_string());
    match filter {
        EventFilter { call: Some(call), .. } => (select!("call = ?1"), call.stored().into()),
        EventFilter { session_id: Some(id), .. } => (select!("session_id = ?1"), of(id)),
        EventFilter { client: Some(client), .. } => (select!("client = ?1"), of(client)),
        _ => (select!("?1 IS NULL"), Value::Null),
    }
}

fn event(row: &Row<'_>) -> Result<StoredEvent> {
    Ok(StoredEvent {
        id: EventId::from_stored(row.get(0)?),
        time: Timestamp::from_micros(row.get(1)?),
        name: row.get(2)?,
        session_id: row.get(3)?,
        client: row.get(4)?,
        call_id: row.get(5)?,
        call: row.get::<_, Option<i64>>(6)?.map(CallKey::from_stored),
        line: row.get(7)?,
    })
}
