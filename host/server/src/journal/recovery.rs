//! What is left of a process that ended without closing its journal.

use super::apply::{Apply, Clients};
use super::ids::CallKey;
use super::own_events;
use super::time::Timestamp;
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
        let mut clients = Clients::default();
        let mut apply = Apply { conn: &transaction, clients: &mut clients, events: Vec::new() };
        apply.event(&own_events::recovered(calls, now))?;
    }
    transaction.commit()
}

/// Returns the first number that no call has had.
pub(super) fn first_free_call(conn: &Connection) -> Result<CallKey> {
    let mut find = conn.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'calls'")?;
    let last = find.query_row([], |row| row.get::<_, i64>(0)).optional()?;
    Ok(CallKey::from_stored(last.unwrap_or_default().saturating_add(1)))
}
