//! The format of the file: its tables, its version, and what each connection is set to.

use super::error::JournalError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// The version of the format, `PRAGMA user_version`.
pub(super) const VERSION: i64 = 3;

/// The version without the protocol of a session.
const WITHOUT_PROTOCOL: i64 = 1;

/// The version without the parent of a call.
const WITHOUT_PARENT: i64 = 2;

/// Marks the file as a journal of this program, `PRAGMA application_id`: `PALJ`.
const APPLICATION: i64 = 0x5041_4c4a;

/// How long a statement waits for the lock of another process that reads the journal.
const BUSY: Duration = Duration::from_secs(5);

/// How much of the log SQLite keeps between checkpoints, in bytes.
const LOG_BYTES: u32 = 8 << 20;

/// The cached prepared statements of a connection: more than there are.
const STATEMENTS: usize = 64;

/// The tables. A number is never given twice, since `AUTOINCREMENT` remembers the largest one. Long
/// texts are the last columns, so that a listing does not read them.
const TABLES: &str = "
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('pruned_to', 0);

CREATE TABLE events(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    name TEXT NOT NULL,
    session_id TEXT,
    client TEXT,
    call_id TEXT,
    call INTEGER,
    line TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_session ON events(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX events_of_client ON events(client) WHERE client IS NOT NULL;
CREATE INDEX events_of_call ON events(call) WHERE call IS NOT NULL;

CREATE TABLE sessions(
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    client TEXT,
    title TEXT,
    origin TEXT NOT NULL,
    workspace TEXT,
    opened INTEGER NOT NULL,
    closed INTEGER,
    calls INTEGER NOT NULL DEFAULT 0,
    last_call INTEGER,
    protocol TEXT
) STRICT;
CREATE INDEX sessions_by_id ON sessions(id);
CREATE INDEX sessions_of_client ON sessions(client) WHERE client IS NOT NULL;
CREATE INDEX sessions_open ON sessions(key) WHERE closed IS NULL;
CREATE INDEX sessions_by_end ON sessions(closed) WHERE closed IS NOT NULL;

CREATE TABLE calls(
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    session_id TEXT,
    client TEXT,
    turn_id TEXT,
    tool TEXT NOT NULL,
    class TEXT,
    plugin TEXT,
    digest TEXT,
    state TEXT NOT NULL,
    error_class TEXT,
    created INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    duration INTEGER,
    peak_memory INTEGER,
    bytes_read INTEGER,
    bytes_written INTEGER,
    bytes_dropped INTEGER,
    input_length INTEGER,
    input_digest TEXT,
    output_length INTEGER,
    output_digest TEXT,
    files_unlisted INTEGER NOT NULL DEFAULT 0,
    message TEXT,
    other_blocks TEXT,
    command TEXT,
    input TEXT,
    files TEXT,
    output TEXT,
    parent INTEGER
) STRICT;
CREATE INDEX calls_by_id ON calls(id);
CREATE INDEX calls_of_session ON calls(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX calls_of_client ON calls(client) WHERE client IS NOT NULL;
CREATE INDEX calls_of_tool ON calls(tool);
CREATE INDEX calls_of_class ON calls(class);
CREATE INDEX calls_in_state ON calls(state);
CREATE INDEX calls_by_error ON calls(error_class) WHERE error_class IS NOT NULL;
CREATE INDEX calls_of_parent ON calls(parent) WHERE parent IS NOT NULL;
CREATE INDEX calls_by_time ON calls(created, tool, state, error_class, started, duration);

CREATE TABLE confirmations(
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL,
    call INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    session_id TEXT,
    turn_id TEXT,
    tool TEXT NOT NULL,
    class TEXT,
    asked INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    resolved INTEGER,
    resolution TEXT,
    answered_by TEXT,
    input_summary TEXT NOT NULL,
    modifications TEXT NOT NULL
) STRICT;
CREATE INDEX confirmations_by_id ON confirmations(request_id);
CREATE INDEX confirmations_of_call ON confirmations(call);
CREATE INDEX confirmations_of_session ON confirmations(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX confirmations_by_resolution ON confirmations(resolution);

CREATE TABLE plugins(
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    tools TEXT NOT NULL,
    UNIQUE (name, digest)
) STRICT;
";

/// The condition on ended calls that changed nothing: they never ran, or their class is not one
/// that changes anything.
pub(super) const WITHOUT_EFFECT: &str =
    "ended IS NOT NULL AND (started IS NULL OR class IN ('none', 'read'))";

/// A change of the format.
struct Change {
    /// The version before it.
    from: i64,
    /// Makes the change in a file.
    upgrade: &'static str,
    /// Lets a reader read a file from before as if the change were made: an unqualified name is
    /// looked up among its own temporary tables first.
    show: &'static str,
}

/// The changes of the format, in order.
const CHANGES: [Change; 2] = [
    Change {
        from: WITHOUT_PROTOCOL,
        upgrade: "ALTER TABLE sessions ADD COLUMN protocol TEXT;",
        show: "CREATE TEMP VIEW sessions AS SELECT *, NULL AS protocol FROM main.sessions;",
    },
    Change {
        from: WITHOUT_PARENT,
        upgrade: "ALTER TABLE calls ADD COLUMN parent INTEGER;
                  CREATE INDEX calls_of_parent ON calls(parent) WHERE parent IS NOT NULL;",
        show: "CREATE TEMP VIEW calls AS SELECT *, NULL AS parent FROM main.calls;",
    },
];

/// Returns the changes that a file of an earlier version lacks.
fn changes_since(version: i64) -> impl Iterator<Item = &'static Change> {
    CHANGES.iter().filter(move |change| change.from >= version)
}

/// The access of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It writes, and creates the tables of an empty file.
    Write,
    /// It only reads. It opens the file for writing all the same, because the log of a killed
    /// process has to be merged before anything can be read.
    Read,
}

/// Opens a connection to an existing file, whose path has no symbolic link.
pub(super) fn connect(path: &Path, access: Access) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let opened = Connection::open_with_flags(path, flags)
        .and_then(|mut conn| ready(&mut conn, access).map(|version| (conn, version)));
    let (conn, version) = opened.map_err(|error| unusable(path, &error))?;
    match version {
        Version::Known | Version::Earlier(_) => Ok(conn),
        Version::Newer(found) => {
            Err(JournalError::NewerVersion { path: path.to_owned(), found, known: VERSION })
        }
        Version::Foreign => {
            let reason = "another program made it".to_owned();
            Err(JournalError::NotAJournal { path: path.to_owned(), reason })
        }
    }
}

/// The format of a file.
enum Version {
    Known,
    /// An earlier one, which can be read, and upgraded.
    Earlier(i64),
    Newer(i64),
    Foreign,
}

fn ready(conn: &mut Connection, access: Access) -> rusqlite::Result<Version> {
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // The file is our own, but nothing in it needs to be trusted.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    let version = version(conn)?;
    match (&version, access) {
        (Version::Known, Access::Write) => {
            // An index is no change of the format: a program without it ignores it.
            conn.execute_batch(&format!(
                "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = {LOG_BYTES};
                 CREATE INDEX IF NOT EXISTS calls_without_effect ON calls(key)
                 WHERE {WITHOUT_EFFECT};"
            ))?;
            return Ok(version);
        }
        (Version::Known, Access::Read) => {
            conn.execute_batch("PRAGMA query_only = ON")?;
            return Ok(version);
        }
        (Version::Earlier(found), Access::Write) => {
            upgrade(conn, *found)?;
            return ready(conn, access);
        }
        (Version::Earlier(found), Access::Read) => {
            let views: String = changes_since(*found).map(|change| change.show).collect();
            conn.execute_batch(&format!("{views} PRAGMA query_only = ON"))?;
            return Ok(version);
        }
        (Version::Newer(_) | Version::Foreign, _) => {}
    }
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if access == Access::Read || tables > 0 || !matches!(version, Version::Foreign) {
        return Ok(version);
    }
    create(conn)?;
    ready(conn, access)
}

fn version(conn: &Connection) -> rusqlite::Result<Version> {
    let pragma = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    Ok(match version {
        _ if application != APPLICATION => Version::Foreign,
        VERSION => Version::Known,
        earlier @ (WITHOUT_PROTOCOL | WITHOUT_PARENT) => Version::Earlier(earlier),
        newer if newer > VERSION => Version::Newer(newer),
        _ => Version::Foreign,
    })
}

fn create(conn: &mut Connection) -> rusqlite::Result<()> {
    // Both have to be set before the first table exists.
    conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    let made = conn.transaction()?;
    made.execute_batch(TABLES)?;
    made.pragma_update(None, "application_id", APPLICATION)?;
    made.pragma_update(None, "user_version", VERSION)?;
    made.commit()
}

fn upgrade(conn: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let changed = conn.transaction()?;
    changes_since(from).try_for_each(|change| changed.execute_batch(change.upgrade))?;
    changed.pragma_update(None, "user_version", VERSION)?;
    changed.commit()
}

/// Returns why a file cannot be opened.
pub(super) fn unusable(path: &Path, error: &rusqlite::Error) -> JournalError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let (path, reason) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(NotADatabase | DatabaseCorrupt) => JournalError::NotAJournal { path, reason },
        _ => JournalError::Unavailable { path, reason },
    }
}

#[cfg(test)]
mod tests;
