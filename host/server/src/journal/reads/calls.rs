//! Reads calls: a page of them, or one with everything about it.

use super::{SCAN, confirmations, count, events, listing, meets, time};
use crate::journal::filters::{CallFilter, CallRef, EventFilter, Page};
use crate::journal::ids::{CallKey, EventId};
use crate::journal::record::{Body, Used};
use crate::journal::rows::{CallPage, CallRow, CallState, Listing, More};
use crate::journal::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Calls are numbered when they are seen first, so their times are in the order of their numbers,
/// except for calls at the same moment: fewer than this.
const DISORDER: i64 = 2_048;
/// The most events of a call's page.
const EVENTS: usize = 256;
/// The most nested calls of a call's page: as many as a call may make.
const NESTED: i64 = 256;

/// The columns of a row. The first is the number.
macro_rules! columns {
    () => {
        "key, id, session_id, client, turn_id, tool, class, plugin, digest, state, error_class,
         substr(message, 1, ?5), created, started, ended, duration, substr(input, 1, 256)"
    };
}

/// A column with the name that the client of the call's session claims. Columns are read by their
/// place, and this one, which is the last of each query, by its name.
macro_rules! client_name {
    () => {
        ", (SELECT title FROM sessions WHERE sessions.id = calls.session_id
            ORDER BY sessions.key DESC LIMIT 1) AS client_name"
    };
}

/// Defines a query for calls in a range of numbers, with an index for one condition.
macro_rules! select {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            ", CASE WHEN ?4 THEN substr(input, 1, 4096) END,
             CASE WHEN ?4 THEN substr(message, 1, 4096) END,
             CASE WHEN ?4 THEN substr(output, 1, 4096) END",
            client_name!(),
            " FROM calls WHERE ",
            $condition,
            " AND key < ?2 AND key >= ?3 ORDER BY key DESC"
        )
    };
}

/// The characters of a message in a listing.
const MESSAGE: i64 = 1_024;
/// The characters of each text that is searched, as in the queries.
const SEARCHED: usize = 4_096;

/// Returns a page of calls, the newest first.
pub(in crate::journal) fn page(
    conn: &Connection,
    filter: &CallFilter,
    page: Page,
) -> Result<Listing<CallRow>> {
    let (query, value) = driver(filter);
    let (from, below) = match has_ordered_times(conn)? {
        true => (first_since(conn, filter.since)?, end_before(conn, filter.until)?),
        false => (0, i64::MAX),
    };
    let text = filter.text.as_ref().map(|text| text.to_lowercase());
    let mut select = conn.prepare_cached(query)?;
    let below = below.min(page.below());
    let rows = select.query(params![value, below, from, text.is_some(), MESSAGE])?;
    listing(rows, page, |row| {
        let call = call(row)?;
        if !filter.admits(&call) {
            return Ok(None);
        }
        let is_found = match &text {
            Some(text) => {
                let texts: [Option<String>; 3] = [row.get(17)?, row.get(18)?, row.get(19)?];
                has_text(text, &call, texts.each_ref().map(Option::as_deref))
            }
            None => true,
        };
        Ok(is_found.then_some(call))
    })
}

/// Returns true if a call has this text, in lower case, in one of its names or of its texts.
fn has_text(text: &str, call: &CallRow, texts: [Option<&str>; 3]) -> bool {
    let names = [Some(call.tool.as_str()), Some(&call.id), call.session_id.as_deref()];
    let mut all = names.into_iter().chain(texts).flatten();
    all.any(|place| place.to_lowercase().contains(text))
}

/// Returns the query whose index leads to the fewest rows, and the value of its condition.
pub(super) fn driver(filter: &CallFilter) -> (&'static str, Option<&str>) {
    use CallState::{Failed, Running, Succeeded, Unknown, Waiting};
    match filter {
        CallFilter { state: Some(state @ (Waiting | Running | Unknown)), .. } => {
            (select!("state = ?1"), Some(state.as_str()))
        }
        CallFilter { session_id: Some(id), .. } => (select!("session_id = ?1"), Some(id)),
        CallFilter { client: Some(client), .. } => (select!("client = ?1"), Some(client)),
        CallFilter { error_class: Some(class), .. } => (select!("error_class = ?1"), Some(class)),
        CallFilter { tool: Some(tool), .. } => (select!("tool = ?1"), Some(tool)),
        CallFilter { state: Some(state @ (Failed | Succeeded)), .. } => {
            (select!("state = ?1"), Some(state.as_str()))
        }
        CallFilter { class: Some(class), .. } => (select!("class = ?1"), Some(class)),
        _ => (select!("?1 IS NULL"), None),
    }
}

impl CallFilter {
    /// Returns true if a call would be in a listing with this filter.
    #[must_use]
    pub fn selects(&self, page: &CallPage) -> bool {
        let kept = |body: &Option<Body>| body.as_ref().and_then(|body| body.text.clone());
        let (input, output) = (kept(&page.input), kept(&page.output));
        let texts = [input.as_deref(), page.call.message.as_deref(), output.as_deref()];
        let is_found = |text: &str| {
            has_text(&text.to_lowercase(), &page.call, texts.map(|text| text.map(beginning)))
        };
        self.admits(&page.call) && self.text.as_deref().is_none_or(is_found)
    }

    fn admits(&self, call: &CallRow) -> bool {
        meets(self.client.as_deref(), call.client.as_deref())
            && meets(self.session_id.as_deref(), call.session_id.as_deref())
            && meets(self.tool.as_deref(), Some(&call.tool))
            && meets(self.class.as_deref(), call.class.as_deref())
            && meets(self.error_class.as_deref(), call.error_class.as_deref())
            && self.state.is_none_or(|state| state == call.state)
            && self.since.is_none_or(|since| call.created >= since)
            && self.until.is_none_or(|until| call.created < until)
    }
}

/// Returns the part of a text that is searched.
fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(SEARCHED).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default()
}

/// Returns true if the times of the kept calls are in the order of their numbers: the clock was not
/// set back between two of them.
fn has_ordered_times(conn: &Connection) -> Result<bool> {
    let mut find = conn.prepare_cached(
        "SELECT 1 FROM calls WHERE key < (SELECT value FROM meta WHERE name = 'clock_set_back')
         LIMIT 1",
    )?;
    Ok(!find.exists([])?)
}

/// Returns a number below those of all calls since this time.
fn first_since(conn: &Connection, since: Option<Timestamp>) -> Result<i64> {
    let Some(since) = since else { return Ok(0) };
    let mut find =
        conn.prepare_cached("SELECT key FROM calls WHERE created >= ?1 ORDER BY created LIMIT 1")?;
    let first = find.query_row([since.micros()], |row| row.get::<_, i64>(0)).optional()?;
    Ok(first.map_or(i64::MAX, |key| key.saturating_sub(DISORDER)))
}

/// Returns a number above those of all calls before this time.
fn end_before(conn: &Connection, until: Option<Timestamp>) -> Result<i64> {
    let Some(until) = until else { return Ok(i64::MAX) };
    let mut find = conn
        .prepare_cached("SELECT key FROM calls WHERE created < ?1 ORDER BY created DESC LIMIT 1")?;
    let last = find.query_row([until.micros()], |row| row.get::<_, i64>(0)).optional()?;
    Ok(last.map_or(0, |key| key.saturating_add(DISORDER)))
}

/// Returns one call with everything about it.
pub(in crate::journal) fn one(conn: &mut Connection, of: &CallRef) -> Result<Option<CallPage>> {
    // One view of the file, so that the parts fit together.
    let view = conn.transaction()?;
    let key = match of {
        CallRef::Key(key) => Some(*key),
        CallRef::Id { id, client } => newest(&view, id, client.as_deref())?,
    };
    key.map_or(Ok(None), |key| whole(&view, key))
}

/// Returns the number of the newest call of this id.
fn newest(conn: &Connection, id: &str, client: Option<&str>) -> Result<Option<CallKey>> {
    let mut find = conn
        .prepare_cached("SELECT key, client FROM calls WHERE id = ?1 ORDER BY key DESC LIMIT ?2")?;
    let scan = i64::try_from(SCAN).unwrap_or(i64::MAX);
    let mut rows = find.query(params![id, scan])?;
    while let Some(row) = rows.next()? {
        let owner: Option<String> = row.get(1)?;
        if meets(client, owner.as_deref()) {
            return Ok(Some(CallKey::from_stored(row.get(0)?)));
        }
    }
    Ok(None)
}

fn whole(conn: &Connection, key: CallKey) -> Result<Option<CallPage>> {
    let mut select = conn.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        ", input, input_length, input_digest, output, output_length, output_digest, files,
         files_unlisted, command, peak_memory, bytes_read, bytes_written, bytes_dropped,
         other_blocks, parent",
        client_name!(),
        " FROM calls WHERE key = ?1 AND ?2 IS NULL AND ?3 IS NULL AND ?4 IS NULL"
    ))?;
    let whole = i64::MAX;
    let nothing = rusqlite::types::Null;
    let found = select
        .query_row(params![key.stored(), nothing, nothing, nothing, whole], whole_row)
        .optional()?;
    let Some(mut page) = found else { return Ok(None) };
    page.nested = nested(conn, key)?;
    page.confirmations = confirmations::of_call(conn, key)?;
    let filter = EventFilter { call: Some(key), ..EventFilter::default() };
    let all = events::newest(conn)?;
    let found = events::page(conn, EventId::START, all, &filter, EVENTS)?;
    page.more_events = if found.scanned_to < all { More::Yes } else { More::No };
    page.events = found.events;
    Ok(Some(page))
}

/// Returns the calls that a call made, oldest first.
fn nested(conn: &Connection, parent: CallKey) -> Result<Vec<CallRow>> {
    let mut select = conn.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        client_name!(),
        " FROM calls WHERE parent = ?1 AND ?2 IS NULL AND ?3 IS NULL ORDER BY key LIMIT ?4"
    ))?;
    let nothing = rusqlite::types::Null;
    let rows =
        select.query_map(params![parent.stored(), nothing, nothing, NESTED, MESSAGE], call)?;
    rows.collect()
}

fn whole_row(row: &Row<'_>) -> Result<CallPage> {
    let used = |row: &Row<'_>| -> Result<Option<Used>> {
        let Some(peak) = row.get::<_, Option<i64>>(26)? else { return Ok(None) };
        Ok(Some(Used {
            peak_memory_bytes: count(peak),
            bytes_read: count(row.get(27)?),
            bytes_written: count(row.get(28)?),
            truncated_bytes: count(row.get(29)?),
        }))
    };
    Ok(CallPage {
        call: call(row)?,
        parent: row.get::<_, Option<i64>>(31)?.map(CallKey::from_stored),
        nested: Vec::new(),
        input: body(row, 17)?,
        output: body(row, 20)?,
        other_blocks: parsed(row.get(30)?),
        files_modified: parsed(row.get(23)?),
        files_unlisted: count(row.get(24)?),
        command_executed: row.get(25)?,
        used: used(row)?,
        confirmations: Vec::new(),
        events: Vec::new(),
        more_events: More::No,
    })
}

/// Reads a JSON array that the journal wrote.
fn parsed<T: DeserializeOwned>(json: Option<String>) -> Vec<T> {
    json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
}

/// Reads a text, its length and its digest from three columns.
fn body(row: &Row<'_>, first: usize) -> Result<Option<Body>> {
    let Some(length) = row.get::<_, Option<i64>>(first + 1)? else { return Ok(None) };
    Ok(Some(Body { text: row.get(first)?, length: count(length), digest: row.get(first + 2)? }))
}

fn call(row: &Row<'_>) -> Result<CallRow> {
    let at = |column| row.get::<_, Option<i64>>(column).map(|found| found.map(time));
    let state: String = row.get(9)?;
    // Only this program writes states.
    let state = state.parse().unwrap_or(CallState::Unknown);
    // Of an unknown end, the column has the time at which the next process found the call.
    let ended = at(14)?.filter(|_| state != CallState::Unknown);
    Ok(CallRow {
        key: CallKey::from_stored(row.get(0)?),
        id: row.get(1)?,
        session_id: row.get(2)?,
        client: row.get(3)?,
        client_name: row.get("client_name")?,
        turn_id: row.get(4)?,
        tool: row.get(5)?,
        class: row.get(6)?,
        plugin: row.get(7)?,
        digest: row.get(8)?,
        state,
        error_class: row.get(10)?,
        message: row.get(11)?,
        created: time(row.get(12)?),
        started: at(13)?,
        ended,
        duration: row.get::<_, Option<i64>>(15)?.map(|us| Duration::from_micros(count(us))),
        input_start: row.get(16)?,
    })
}
