//! Reads the history of questions.

use super::{listing, meets, texts, time};
use crate::journal::filters::{ConfirmationFilter, Page};
use crate::journal::ids::CallKey;
use crate::journal::rows::{ConfirmationRow, Listing};
use rusqlite::{Connection, Result, Row, params};

/// The most questions of one call.
const OF_CALL: i64 = 32;

/// Defines a query for questions with an index for one condition.
macro_rules! select {
    ($condition:literal, $order:literal) => {
        concat!(
            "SELECT key, request_id, call, call_id, session_id, turn_id, tool, class, asked,
             expires, resolved, resolution, answered_by, input_summary, modifications
             FROM confirmations WHERE ",
            $condition,
            " AND key < ?2 ORDER BY key ",
            $order
        )
    };
}

/// Returns a page of questions, the newest first.
pub(in crate::journal) fn page(
    conn: &Connection,
    filter: &ConfirmationFilter,
    page: Page,
) -> Result<Listing<ConfirmationRow>> {
    let (query, value) = driver(filter);
    let mut select = conn.prepare_cached(query)?;
    let rows = select.query(params![value, page.below()])?;
    listing(rows, page, |row| {
        let question = confirmation(row)?;
        let is_found = meets(filter.request_id.as_deref(), Some(&question.request_id))
            && meets(filter.session_id.as_deref(), question.session_id.as_deref())
            && meets(filter.resolution.as_deref(), question.resolution.as_deref());
        Ok(is_found.then_some(question))
    })
}

/// Returns the query with an index for a condition, and the value of the condition.
pub(super) fn driver(filter: &ConfirmationFilter) -> (&'static str, Option<&str>) {
    match filter {
        ConfirmationFilter { request_id: Some(id), .. } => {
            (select!("request_id = ?1", "DESC"), Some(id))
        }
        ConfirmationFilter { session_id: Some(id), .. } => {
            (select!("session_id = ?1", "DESC"), Some(id))
        }
        ConfirmationFilter { resolution: Some(resolution), .. } => {
            (select!("resolution = ?1", "DESC"), Some(resolution))
        }
        _ => (select!("?1 IS NULL", "DESC"), None),
    }
}

/// Returns the questions of a call, the oldest first.
pub(super) fn of_call(conn: &Connection, call: CallKey) -> Result<Vec<ConfirmationRow>> {
    let mut select = conn.prepare_cached(select!("call = ?1", "LIMIT ?3"))?;
    select.query_map(params![call.stored(), i64::MAX, OF_CALL], confirmation)?.collect()
}

fn confirmation(row: &Row<'_>) -> Result<ConfirmationRow> {
    let modifications: String = row.get(14)?;
    Ok(ConfirmationRow {
        request_id: row.get(1)?,
        call: CallKey::from_stored(row.get(2)?),
        call_id: row.get(3)?,
        session_id: row.get(4)?,
        turn_id: row.get(5)?,
        tool: row.get(6)?,
        class: row.get(7)?,
        asked: time(row.get(8)?),
        expires: time(row.get(9)?),
        resolved: row.get::<_, Option<i64>>(10)?.map(time),
        resolution: row.get(11)?,
        answered_by: row.get(12)?,
        input_summary: row.get(13)?,
        projected_modifications: texts(&modifications),
    })
}
