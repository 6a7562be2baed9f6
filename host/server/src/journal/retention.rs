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

/// The records that a step removes, each named by the last number of its kind.
#[derive(Debug, Default)]
struct Removal {
    events_to: Option<i64>,
    calls_to: Option<(Ended, i64)>,
    /// Sessions that ended before this time.
    sessions_before: Option<i64>,
}

impl Removal {
    /// Finds what is older than the cutoff; if the file is full, the oldest of all.
    fn find(conn: &Connection, is_over: bool, cutoff: Timestamp) -> Result<Self> {
        let (event, call) = (oldest_event(conn)?, oldest_call(conn, Ended::All)?);
        let cutoff = cutoff.micros();
        if is_over {
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
                removal.events_to = last_event_before(conn, i64::MAX)?;
            } else {
                removal.calls_to = last_call_before(conn, which, i64::MAX)?;
            }
            removal.sessions_before = ended_session(conn, event.into_iter().chain(call).min())?;
            return Ok(removal);
        }
        let is_old = |time: &i64| *time < cutoff;
        let old_event = event.filter(is_old).map(|_| last_event_before(conn, cutoff));
        let old_call = call.filter(is_old).map(|_| last_call_before(conn, Ended::All, cutoff));
        Ok(Self {
            events_to: old_event.transpose()?.flatten(),
            calls_to: old_call.transpose()?.flatten(),
            sessions_before: ended_session(conn, Some(cutoff))?,
        })
    }

    fn is_empty(&self) -> bool {
        self.events_to.is_none() && self.calls_to.is_none() && self.sessions_before.is_none()
    }

    fn apply(&self, conn: &Connection) -> Result<()> {
        if let Some(last) = self.events_to {
            conn.prepare_cached("DELETE FROM events WHERE id <= ?1")?.execute([last])?;
            conn.prepare_cached("UPDATE meta SET value = ?1 WHERE name = 'pruned_to'")?
                .execute([last])?;
        }
        if let Some((which, last)) = self.calls_to {
            let which = which.condition();
            let confirmations = format!(
                "DELETE FROM confirmations WHERE call IN
                 (SELECT key FROM calls WHERE key <= ?1 AND {which})"
            );
            conn.prepare_cached(&confirmations)?.execute([last])?;
            let calls = format!("DELETE FROM calls WHERE key <= ?1 AND {which}");
            conn.prepare_cached(&calls)?.execute([last])?;
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

/// Returns the last number of the first events that is before the cutoff. The times of events are
/// not quite in the order of their numbers.
fn last_event_before(conn: &Connection, cutoff: i64) -> Result<Option<i64>> {
    let mut last = conn.prepare_cached(
        "SELECT max(id) FROM (SELECT id, time FROM events ORDER BY id LIMIT ?2) WHERE time < ?1",
    )?;
    last.query_row([cutoff, EVENTS], |row| row.get(0))
}

/// Returns the last of the first of these calls that was seen before the cutoff, with its part.
fn last_call_before(conn: &Connection, which: Ended, cutoff: i64) -> Result<Option<(Ended, i64)>> {
    let condition = which.condition();
    let last = format!(
        "SELECT max(key) FROM (SELECT key, created FROM calls WHERE {condition}
         ORDER BY key LIMIT ?2) WHERE created < ?1"
    );
    let last = conn.prepare_cached(&last)?.query_row([cutoff, CALLS], |row| row.get(0));
    last.map(|last: Option<i64>| last.map(|last| (which, last)))
}

/// Returns the time if a session has ended before it.
fn ended_session(conn: &Connection, before: Option<i64>) -> Result<Option<i64>> {
    let before = before.unwrap_or(i64::MAX);
    let mut any = conn.prepare_cached("SELECT 1 FROM sessions WHERE closed < ?1 LIMIT 1")?;
    Ok(any.exists([before])?.then_some(before))
}
