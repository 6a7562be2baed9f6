//! Removal of the oldest records, by age and by size. It happens in steps, each a short transaction
//! of the writer between two batches: one, or while the file is full as many as make room for what
//! the last batch has added.
//!
//! If the file is full, calls that changed nothing go first: nobody can push the record of a change
//! out of the journal by calls that are refused, or that only read.

use super::schema::WITHOUT_EFFECT;
use super::settings::JournalSettings;
use super::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Result, TransactionBehavior, params};

/// The most events of a step.
const EVENTS: i64 = 1_024;
/// The most calls of a step. Each may have some 200 KiB.
const CALLS: i64 = 64;
/// The most sessions of a step.
const SESSIONS: i64 = 64;
/// The most pages that a step returns to the file system.
const PAGES: i64 = 256;

/// Whether there is more to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// There may be.
    More,
    /// There is not, for now.
    Done,
}

/// Removes some of the oldest records if there is a reason. Also returns the used bytes of the
/// file.
pub(super) fn step(
    conn: &mut Connection,
    settings: &JournalSettings,
    now: Timestamp,
) -> Result<(Step, u64)> {
    let space = Space::of(conn)?;
    let cutoff = now.before(settings.max_age);
    let is_over = space.used() > settings.full_at();
    let removal = Removal::find(conn, is_over, cutoff)?;
    if removal.is_empty() {
        return Ok((shrink(conn, &space)?, space.used()));
    }
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    removal.apply(&transaction)?;
    transaction.commit()?;
    Ok((Step::More, Space::of(conn)?.used()))
}

/// The pages of the file.
struct Space {
    page_bytes: u64,
    pages: u64,
    free: u64,
}

impl Space {
    fn of(conn: &Connection) -> Result<Self> {
        let value = |pragma| -> Result<u64> {
            let value: i64 = conn.prepare_cached(pragma)?.query_row([], |row| row.get(0))?;
            Ok(u64::try_from(value).unwrap_or_default())
        };
        Ok(Self {
            page_bytes: value("PRAGMA page_size")?,
            pages: value("PRAGMA page_count")?,
            free: value("PRAGMA freelist_count")?,
        })
    }

    fn used(&self) -> u64 {
        self.pages.saturating_sub(self.free) * self.page_bytes
    }
}

/// Returns some unused pages to the file system if a quarter of the file is unused, and 4 MiB.
fn shrink(conn: &Connection, space: &Space) -> Result<Step> {
    if space.free * 4 < space.pages || space.free * space.page_bytes < 4 << 20 {
        return Ok(Step::Done);
    }
    let mut vacuum = conn.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    // The file is cut when the log is merged.
    conn.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_| Ok(()))?;
    Ok(Step::More)
}

/// A part of the calls that have ended. Calls that have not are never removed, and there are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    All,
    /// Those that changed nothing.
    WithoutEffect,
}

impl Ended {
    /// Returns the condition on the rows.
    fn condition(self) -> &'static str {
        match self {
            Self::All => "ended IS NOT NULL",
            Self::WithoutEffect => WITHOUT_EFFECT,
        }
    }
}

/// The records of a kind up to a number that are older than a time. Each is judged by its own time,
/// so that one record of a wrong clock neither keeps nor removes the records behind it.
#[derive(Debug, Clone, Copy)]
struct Span {
    last: i64,
    before: i64,
}

/// The records that a step removes.
#[derive(Debug, Default)]
struct Removal {
    events: Option<Span>,
    calls: Option<(Ended, Span)>,
    /// Sessions that ended before this time.
    sessions_before: Option<i64>,
}

impl Removal {
    /// Finds what is older than the cutoff; if the file is full, the oldest of all.
    fn find(conn: &Connection, is_over: bool, cutoff: Timestamp) -> Result<Self> {
        let cutoff = cutoff.micros();
        if is_over {
            let (event, call) = (oldest_event(conn)?, oldest_call(conn, Ended::All)?);
            let (which, first) = match oldest_call(conn, Ended::WithoutEffect)? {
                Some(first) => (Ended::WithoutEffect, Some(first)),
                None => (Ended::All, call),
            };
            // The older record goes first. Sessions have gone when all records before them have.
            let events_first = match (event, first) {
                (Some(event), Some(call)) => event <= call,
                (event, _) => event.is_some(),
            };
            let mut removal = Self::default();
            if events_first {
                removal.events = events_before(conn, i64::MAX)?;
            } else {
                removal.calls = calls_before(conn, which, i64::MAX)?;
            }
            removal.sessions_before = ended_session(conn, event.into_iter().chain(call).min())?;
            return Ok(removal);
        }
        Ok(Self {
            events: events_before(conn, cutoff)?,
            calls: calls_before(conn, Ended::All, cutoff)?,
            sessions_before: ended_session(conn, Some(cutoff))?,
        })
    }

    fn is_empty(&self) -> bool {
        self.events.is_none() && self.calls.is_none() && self.sessions_before.is_none()
    }

    fn apply(&self, conn: &Connection) -> Result<()> {
        if let Some(Span { last, before }) = self.events {
            conn.prepare_cached("DELETE FROM events WHERE id <= ?1 AND time < ?2")?
                .execute([last, before])?;
            conn.prepare_cached(
                "UPDATE meta SET value =
                 max(value, coalesce((SELECT min(id) - 1 FROM events), ?1))
                 WHERE name = 'pruned_to'",
            )?
            .execute([last])?;
        }
        if let Some((which, Span { last, before })) = self.calls {
            let which = which.condition();
            let confirmations = format!(
                "DELETE FROM confirmations WHERE call IN
                 (SELECT key FROM calls WHERE key <= ?1 AND created < ?2 AND {which})"
            );
            conn.prepare_cached(&confirmations)?.execute([last, before])?;
            let calls = format!("DELETE FROM calls WHERE key <= ?1 AND created < ?2 AND {which}");
            conn.prepare_cached(&calls)?.execute([last, before])?;
        }
        if let Some(before) = self.sessions_before {
            conn.prepare_cached(
                "DELETE FROM sessions WHERE key IN
                 (SELECT key FROM sessions WHERE closed < ?1 ORDER BY closed LIMIT ?2)",
            )?
            .execute(params![before, SESSIONS])?;
        }
        Ok(())
    }
}

fn oldest_event(conn: &Connection) -> Result<Option<i64>> {
    let mut oldest = conn.prepare_cached("SELECT time FROM events ORDER BY id LIMIT 1")?;
    oldest.query_row([], |row| row.get(0)).optional()
}

/// Returns when the oldest of these calls was seen first.
fn oldest_call(conn: &Connection, which: Ended) -> Result<Option<i64>> {
    let which = which.condition();
    let oldest = format!("SELECT created FROM calls WHERE {which} ORDER BY key LIMIT 1");
    conn.prepare_cached(&oldest)?.query_row([], |row| row.get(0)).optional()
}

/// Returns those of the first events that are before the cutoff, if there are any.
fn events_before(conn: &Connection, before: i64) -> Result<Option<Span>> {
    let mut last = conn.prepare_cached(
        "SELECT max(id) FROM (SELECT id, time FROM events ORDER BY id LIMIT ?2) WHERE time < ?1",
    )?;
    let last: Option<i64> = last.query_row([before, EVENTS], |row| row.get(0))?;
    Ok(last.map(|last| Span { last, before }))
}

/// Returns those of the first of these calls that were seen before the cutoff, if there are any.
fn calls_before(conn: &Connection, which: Ended, before: i64) -> Result<Option<(Ended, Span)>> {
    let condition = which.condition();
    let last = format!(
        "SELECT max(key) FROM (SELECT key, created FROM calls WHERE {condition}
         ORDER BY key LIMIT ?2) WHERE created < ?1"
    );
    let last: Option<i64> =
        conn.prepare_cached(&last)?.query_row([before, CALLS], |row| row.get(0))?;
    Ok(last.map(|last| (which, Span { last, before })))
}

/// Returns the time if a session has ended before it.
fn ended_session(conn: &Connection, before: Option<i64>) -> Result<Option<i64>> {
    let before = before.unwrap_or(i64::MAX);
    let mut any = conn.prepare_cached("SELECT 1 FROM sessions WHERE closed < ?1 LIMIT 1")?;
    Ok(any.exists([before])?.then_some(before))
}
