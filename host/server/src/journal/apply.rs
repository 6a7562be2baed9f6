//! Each record as statements, within the transaction of its batch. No statement of a record can
//! fail for its content, so that no record spoils its batch.

use super::ids::{CallKey, EventId};
use super::queue::ShortEnd;
use super::record::{
    Body, CallEnded, CallFacts, CallStarted, ConfirmationRequested, ConfirmationResolved, NewEvent,
    Outcome, PluginSeen, Record, SessionOpened,
};
use super::rows::StoredEvent;
use super::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Result, params};
use std::collections::HashMap;
use std::sync::Arc;

/// The most sessions whose client is remembered.
const CLIENTS: usize = 1_024;
/// How much earlier a call may be than the one before it, in microseconds: calls at the same moment
/// come in any order.
const SET_BACK: i64 = 1_000_000;
/// The most plugins that the journal knows.
const PLUGINS: i64 = 4_096;

/// The facts about the last records that the writer remembers. They are forgotten after a
/// transaction that failed.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// The client of each session that has lately had a record.
    clients: HashMap<Arc<str>, Option<Arc<str>>>,
    /// When the newest call was seen first.
    created: Option<i64>,
}

impl Recent {
    fn client(&mut self, conn: &Connection, id: Option<&Arc<str>>) -> Result<Option<Arc<str>>> {
        let Some(id) = id else { return Ok(None) };
        if let Some(known) = self.clients.get(id) {
            return Ok(known.clone());
        }
        let mut find = conn.prepare_cached(
            "SELECT client FROM sessions WHERE id = ?1 ORDER BY key DESC LIMIT 1",
        )?;
        let found = find.query_row([id], |row| row.get(0)).optional()?;
        let client: Option<Arc<str>> = found.flatten();
        self.remember(id, client.clone());
        Ok(client)
    }

    fn remember(&mut self, id: &Arc<str>, client: Option<Arc<str>>) {
        if self.clients.len() >= CLIENTS {
            self.clients.clear();
        }
        self.clients.insert(id.clone(), client);
    }

    /// Notes the time of a new call, and marks it if the clock was set back before: from there on
    /// the times of calls are not in the order of their numbers.
    fn call_created(&mut self, conn: &Connection, key: i64, created: i64) -> Result<()> {
        let before = match self.created {
            Some(before) => Some(before),
            None => {
                let mut last = conn.prepare_cached(
                    "SELECT created FROM calls WHERE key < ?1 ORDER BY key DESC LIMIT 1",
                )?;
                last.query_row([key], |row| row.get(0)).optional()?
            }
        };
        if before.is_some_and(|before| created.saturating_add(SET_BACK) < before) {
            let mut mark = conn.prepare_cached(
                "INSERT INTO meta VALUES ('clock_set_back', ?1)
                 ON CONFLICT(name) DO UPDATE SET value = excluded.value",
            )?;
            mark.execute([key])?;
        }
        self.created = Some(created);
        Ok(())
    }
}

/// Writes records on a connection with an open transaction.
pub(super) struct Apply<'a> {
    pub(super) conn: &'a Connection,
    pub(super) recent: &'a mut Recent,
    /// The events so far, with their numbers.
    pub(super) events: Vec<StoredEvent>,
}

impl Apply<'_> {
    /// Writes a record.
    pub(super) fn record(&mut self, record: &Record) -> Result<()> {
        match record {
            Record::Event(event) => self.event(event),
            Record::SessionOpened(session) => self.session_opened(session),
            Record::SessionClosed { id, at } => self.session_closed(id, *at),
            Record::CallStarted(start) => self.call_started(start),
            Record::CallEnded(end) => self.call_ended(end),
            Record::ConfirmationRequested(question) => self.confirmation_requested(question),
            Record::ConfirmationResolved(settled) => self.confirmation_resolved(settled),
            Record::PluginSeen(plugin) => self.plugin_seen(plugin),
        }
    }

    pub(super) fn event(&mut self, event: &NewEvent) -> Result<()> {
        let client = self.recent.client(self.conn, event.session_id.as_ref())?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO events(time, name, session_id, client, call_id, call, line)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let NewEvent { time, name, session_id, call_id, call, line, .. } = event.clone();
        let key = call.map(CallKey::stored);
        insert.execute(params![time.micros(), name, session_id, client, call_id, key, line])?;
        let id = EventId::from_stored(self.conn.last_insert_rowid());
        self.events.push(StoredEvent { id, time, name, session_id, client, call_id, call, line });
        Ok(())
    }

    fn session_opened(&mut self, session: &SessionOpened) -> Result<()> {
        // A session of the same id that was not closed has been replaced.
        self.session_closed(&session.id, session.at)?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO sessions(id, client, title, origin, workspace, opened, protocol)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let SessionOpened { id, client, title, origin, protocol, workspace, at } = session;
        insert.execute(params![id, client, title, origin, workspace, at.micros(), protocol])?;
        self.recent.remember(id, client.clone());
        Ok(())
    }

    fn session_closed(&mut self, id: &str, at: Timestamp) -> Result<()> {
        let mut close = self.conn.prepare_cached(
            "UPDATE sessions SET closed = ?2 WHERE closed IS NULL
             AND key = (SELECT max(key) FROM sessions WHERE id = ?1)",
        )?;
        close.execute(params![id, at.micros()])?;
        Ok(())
    }

    fn call_started(&mut self, start: &CallStarted) -> Result<()> {
        self.known_call(&start.call, start.at)?;
        let mut update = self.conn.prepare_cached(
            "UPDATE calls SET state = 'running', started = ?2, class = ?3, plugin = ?4,
             digest = ?5, input_length = ?6, input_digest = ?7, input = ?8
             WHERE key = ?1 AND ended IS NULL",
        )?;
        let (call, input) = (&start.call, &start.input);
        update.execute(params![
            call.key.stored(),
            start.at.micros(),
            call.class,
            call.plugin,
            call.digest,
            count(input.length),
            input.digest,
            input.text,
        ])?;
        Ok(())
    }

    fn call_ended(&mut self, end: &CallEnded) -> Result<()> {
        self.known_call(&end.call, end.at)?;
        if let Some(input) = &end.input {
            self.input(&end.call, input)?;
        }
        let (state, class, message) = match &end.outcome {
            Outcome::Succeeded => ("succeeded", None, None),
            Outcome::Failed { class, message } => ("failed", Some(*class), Some(message)),
        };
        let mut update = self.conn.prepare_cached(
            "UPDATE calls SET state = ?2, error_class = ?3, message = ?4, ended = ?5,
             duration = ?6, peak_memory = ?7, bytes_read = ?8, bytes_written = ?9,
             bytes_dropped = ?10, output_length = ?11, output_digest = ?12, output = ?13,
             files = ?14, files_unlisted = ?15, command = ?16,
             class = coalesce(?17, class), plugin = coalesce(?18, plugin),
             digest = coalesce(?19, digest), other_blocks = ?20
             WHERE key = ?1",
        )?;
        let (call, output, used) = (&end.call, &end.output, &end.used);
        update.execute(params![
            call.key.stored(),
            state,
            class,
            message,
            end.at.micros(),
            i64::try_from(end.duration.as_micros()).unwrap_or(i64::MAX),
            count(used.peak_memory_bytes),
            count(used.bytes_read),
            count(used.bytes_written),
            count(used.truncated_bytes),
            count(output.length),
            output.digest,
            output.text,
            end.files_modified,
            count(end.files_unlisted),
            end.command_executed,
            call.class,
            call.plugin,
            call.digest,
            end.other_blocks,
        ])?;
        Ok(())
    }

    /// Writes the end of a call of which nothing else is known any more.
    pub(super) fn short_end(&mut self, end: &ShortEnd) -> Result<()> {
        let state = if end.error_class.is_some() { "failed" } else { "succeeded" };
        let mut update = self.conn.prepare_cached(
            "UPDATE calls SET state = ?2, error_class = ?3, ended = ?4
             WHERE key = ?1 AND ended IS NULL",
        )?;
        update.execute(params![end.call.stored(), state, end.error_class, end.at.micros()])?;
        Ok(())
    }

    /// Creates the row of a call as one that waits, unless there is one.
    fn known_call(&mut self, call: &CallFacts, at: Timestamp) -> Result<()> {
        let client = self.recent.client(self.conn, call.session_id.as_ref())?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO calls(key, id, session_id, client, turn_id, tool, class, plugin, digest,
             state, created, parent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'waiting', ?10, ?11)
             ON CONFLICT DO NOTHING",
        )?;
        let CallFacts { key, id, session_id, turn_id, parent, tool, class, plugin, digest } = call;
        let (key, parent) = (key.stored(), parent.map(CallKey::stored));
        let created = at.micros();
        let added = insert.execute(params![
            key, id, session_id, client, turn_id, tool, class, plugin, digest, created, parent
        ])?;
        if added == 1 {
            self.recent.call_created(self.conn, key, created)?;
        }
        if let (1, Some(session_id)) = (added, session_id) {
            let mut update = self.conn.prepare_cached(
                "UPDATE sessions SET calls = calls + 1, last_call = ?2
                 WHERE key = (SELECT max(key) FROM sessions WHERE id = ?1)",
            )?;
            update.execute(params![session_id, created])?;
        }
        Ok(())
    }

    /// Writes the input of a call that has not ended.
    fn input(&mut self, call: &CallFacts, input: &Body) -> Result<()> {
        let mut update = self.conn.prepare_cached(
            "UPDATE calls SET input_length = ?2, input_digest = ?3, input = ?4
             WHERE key = ?1 AND ended IS NULL",
        )?;
        let (key, length) = (call.key.stored(), count(input.length));
        update.execute(params![key, length, input.digest, input.text])?;
        Ok(())
    }

    fn confirmation_requested(&mut self, question: &ConfirmationRequested) -> Result<()> {
        let call = &question.call;
        self.known_call(call, question.at)?;
        if let Some(input) = &question.input {
            self.input(call, input)?;
        }
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO confirmations(request_id, call, call_id, session_id, turn_id, tool, class,
             asked, expires, input_summary, modifications)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        insert.execute(params![
            question.request_id,
            call.key.stored(),
            call.id,
            call.session_id,
            call.turn_id,
            call.tool,
            call.class,
            question.at.micros(),
            question.expires.micros(),
            question.input_summary,
            question.projected_modifications,
        ])?;
        Ok(())
    }

    fn confirmation_resolved(&mut self, settled: &ConfirmationResolved) -> Result<()> {
        let mut update = self.conn.prepare_cached(
            "UPDATE confirmations SET resolved = ?2, resolution = ?3, answered_by = ?4
             WHERE resolved IS NULL
             AND key = (SELECT max(key) FROM confirmations WHERE request_id = ?1)",
        )?;
        let ConfirmationResolved { request_id, resolution, answered_by, at } = settled;
        update.execute(params![request_id, at.micros(), resolution, answered_by])?;
        Ok(())
    }

    fn plugin_seen(&mut self, plugin: &PluginSeen) -> Result<()> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO plugins(name, digest, first_seen, last_seen, tools)
             VALUES (?1, ?2, ?3, ?3, ?4)
             ON CONFLICT(name, digest) DO UPDATE SET last_seen = ?3, tools = ?4",
        )?;
        let tools: Vec<&str> = plugin.tools.iter().map(|tool| &**tool).collect();
        let tools = serde_json::Value::from(tools).to_string();
        upsert.execute(params![plugin.name, plugin.digest, plugin.at.micros(), tools])?;
        let mut forget = self.conn.prepare_cached(
            "DELETE FROM plugins WHERE key <= (SELECT max(key) FROM plugins) - ?1",
        )?;
        forget.execute([PLUGINS])?;
        Ok(())
    }
}

/// Returns a count as SQLite stores it.
fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
