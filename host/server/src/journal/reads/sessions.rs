//! Reads sessions.

use super::{SCAN, count, listing, meets, time};
use crate::journal::filters::{Page, SessionFilter};
use crate::journal::ids::SessionKey;
use crate::journal::rows::{Listing, SessionRow, UNKNOWN};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

/// Defines a query for sessions with an index for one condition.
macro_rules! select {
    ($condition:literal) => {
        concat!(
            "SELECT key, id, client, title, origin, workspace, opened, closed, calls, last_call,
             protocol FROM sessions WHERE ",
            $condition,
            " AND key < ?2 ORDER BY key DESC"
        )
    };
}

/// Returns a page of sessions, the newest first.
pub(in crate::journal) fn page(
    conn: &Connection,
    filter: &SessionFilter,
    page: Page,
) -> Result<Listing<SessionRow>> {
    let (query, value) = driver(filter);
    let mut select = conn.prepare_cached(query)?;
    let rows = select.query(params![value, page.below()])?;
    listing(rows, page, |row| {
        let session = session(row)?;
        Ok(meets(filter.client.as_deref(), session.client.as_deref()).then_some(session))
    })
}

/// Returns the query with an index for a condition, and the value of the condition.
pub(super) fn driver(filter: &SessionFilter) -> (&'static str, Option<&str>) {
    match filter {
        SessionFilter { client: Some(client) } => (select!("client = ?1"), Some(client)),
        SessionFilter { client: None } => (select!("?1 IS NULL"), None),
    }
}

/// Returns the number of the newest session that was ever opened.
pub(in crate::journal) fn newest(conn: &Connection) -> Result<SessionKey> {
    let mut find =
        conn.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'sessions'")?;
    let newest = find.query_row([], |row| row.get(0)).optional()?;
    Ok(SessionKey::from_stored(newest.unwrap_or_default()))
}

/// Returns the newest session of this id.
pub(in crate::journal) fn one(conn: &Connection, id: &str) -> Result<Option<SessionRow>> {
    let mut select = conn.prepare_cached(select!("id = ?1"))?;
    select.query_row(params![id, i64::MAX], session).optional()
}

/// The calls of a session. Its index leads to them.
pub(super) const CALLS: &str = "SELECT client, created FROM calls WHERE session_id = ?1 LIMIT ?2";

/// Returns what the calls of a session tell of it, if its record is not kept or there never was
/// one: a program can begin sessions without one.
pub(in crate::journal) fn of_calls(conn: &Connection, id: &str) -> Result<Option<SessionRow>> {
    let query = format!("SELECT count(*), min(created), max(created), max(client) FROM ({CALLS})");
    let mut select = conn.prepare_cached(&query)?;
    let most = i64::try_from(SCAN).unwrap_or(i64::MAX);
    select.query_row(params![id, most], |row| {
        let (first, last): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
        let Some((first, last)) = first.zip(last) else { return Ok(None) };
        Ok(Some(SessionRow {
            // It has no record, and so it is of no run.
            key: SessionKey::new(0),
            id: id.to_owned(),
            client: row.get(3)?,
            title: None,
            origin: UNKNOWN.to_owned(),
            protocol: None,
            workspace: None,
            opened: time(first),
            closed: Some(time(last)),
            calls: count(row.get(0)?),
            last_call: Some(time(last)),
        }))
    })
}

fn session(row: &Row<'_>) -> Result<SessionRow> {
    Ok(SessionRow {
        key: SessionKey::from_stored(row.get(0)?),
        id: row.get(1)?,
        client: row.get(2)?,
        title: row.get(3)?,
        origin: row.get(4)?,
        protocol: row.get(10)?,
        workspace: row.get(5)?,
        opened: time(row.get(6)?),
        closed: row.get::<_, Option<i64>>(7)?.map(time),
        calls: count(row.get(8)?),
        last_call: row.get::<_, Option<i64>>(9)?.map(time),
    })
}
