//! The recovery of the records of a process that ended without closing its journal.

use super::apply::{Apply, Recent};
use super::ids::{CallKey, EventId, LAST, SessionKey};
use super::time::Timestamp;
use super::{own_events, reads};
use rusqlite::{Connection, OptionalExtension as _, Result, TransactionBehavior};

/// Marks the calls that had not ended as `unknown`, and closes their questions and sessions.
pub(super) fn recover(conn: &mut Connection, now: Timestamp) -> Result<()> {
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let at = [now.micros()];
    let calls = transaction.execute(
        "UPDATE calls SET state = 'unknown', ended = ?1 WHERE state IN ('waiting', 'running')",
        at,
    )?;
    transaction.execute(
        "UPDATE confirmations SET resolved = ?1, resolution = 'unknown' WHERE resolution IS NULL",
        at,
    )?;
    transaction.execute("UPDATE sessions SET closed = ?1 WHERE closed IS NULL", at)?;
    if calls > 0 {
        let mut recent = Recent::default();
        let mut apply = Apply { conn: &transaction, recent: &mut recent, events: Vec::new() };
        apply.event(&own_events::recovered(calls, now))?;
    }
    transaction.commit()
}

/// The newest numbers of what was in the journal before this process opened it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    pub(super) event: EventId,
    pub(super) session: SessionKey,
    pub(super) call: CallKey,
}

impl Before {
    pub(super) fn of(conn: &Connection) -> Result<Self> {
        let event = reads::events::newest(conn)?;
        let session = reads::sessions::newest(conn)?;
        Ok(Self { event, session, call: last_call(conn)? })
    }

    /// Returns true if there are numbers for everything that will happen.
    pub(super) fn leaves_numbers(self) -> bool {
        [self.event.get(), self.session.get(), self.call.get()].iter().all(|last| *last < LAST)
    }
}

fn last_call(conn: &Connection) -> Result<CallKey> {
    let mut find = conn.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'calls'")?;
    let last = find.query_row([], |row| row.get(0)).optional()?;
    Ok(CallKey::from_stored(last.unwrap_or_default()))
}
