//! The format of the file: its tables, its version, and what each connection is set to.

use super::error::JournalError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// The version of the format, `PRAGMA user_version`.
pub(super) const VERSION: i64 = 2;

/// The version without the protocol of a session.
const WITHOUT_PROTOCOL: i64 = 1;

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
    output TEXT
) STRICT;
CREATE INDEX calls_by_id ON calls(id);
CREATE INDEX calls_of_session ON calls(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX calls_of_client ON calls(client) WHERE client IS NOT NULL;
CREATE INDEX calls_of_tool ON calls(tool);
CREATE INDEX calls_of_class ON calls(class);
CREATE INDEX calls_in_state ON calls(state);
CREATE INDEX calls_by_error ON calls(error_class) WHERE error_class IS NOT NULL;
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

/// Brings a file of the first version to this one.
const UPGRADE: &str = "ALTER TABLE sessions ADD COLUMN protocol TEXT";

/// Lets a reader read a file of the first version as one of this version: an unqualified name is
/// looked up among its own temporary tables first.
const SHOW_UPGRADED: &str =
    "CREATE TEMP VIEW sessions AS SELECT *, NULL AS protocol FROM main.sessions";

/// What a connection may do.
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
        Version::Known | Version::First => Ok(conn),
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
    /// The first one, which can be read, and upgraded.
    First,
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
        (Version::First, Access::Write) => {
            upgrade(conn)?;
            return ready(conn, access);
        }
        (Version::First, Access::Read) => {
            conn.execute_batch(&format!("{SHOW_UPGRADED}; PRAGMA query_only = ON"))?;
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
        WITHOUT_PROTOCOL => Version::First,
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

fn upgrade(conn: &mut Connection) -> rusqlite::Result<()> {
    let changed = conn.transaction()?;
    changed.execute_batch(UPGRADE)?;
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
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn file() -> tempfile::NamedTempFile {
        tempfile::NamedTempFile::new().unwrap()
    }

    #[test]
    fn file_is_made_once_and_found_again() {
        let file = file();
        drop(connect(file.path(), Access::Write).unwrap());
        let conn = connect(file.path(), Access::Write).unwrap();
        let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        let reader = connect(file.path(), Access::Read).unwrap();
        assert!(reader.execute("DELETE FROM meta", []).is_err(), "a reader changes nothing");
    }

    #[test]
    fn newer_format_is_refused_with_remedy() {
        let file = file();
        let conn = connect(file.path(), Access::Write).unwrap();
        conn.pragma_update(None, "user_version", VERSION + 1).unwrap();
        drop(conn);
        for access in [Access::Write, Access::Read] {
            let why = connect(file.path(), access).unwrap_err();
            assert!(matches!(why, JournalError::NewerVersion { found: 3, known: 2, .. }), "{why}");
            assert!(why.to_string().contains("use the later program"), "{why}");
        }
    }

    /// Returns a file of the first version with a session.
    fn first_version() -> tempfile::NamedTempFile {
        let file = file();
        let conn = connect(file.path(), Access::Write).unwrap();
        let first = format!(
            "ALTER TABLE sessions DROP COLUMN protocol; PRAGMA user_version = {WITHOUT_PROTOCOL};
             INSERT INTO sessions(id, origin, opened) VALUES ('s1', 'http', 7)"
        );
        conn.execute_batch(&first).unwrap();
        file
    }

    fn protocol(conn: &Connection) -> rusqlite::Result<Option<String>> {
        conn.query_row("SELECT protocol FROM sessions WHERE id = 's1'", [], |row| row.get(0))
    }

    #[test]
    fn file_of_the_first_version_is_read_and_stays_as_it_is() {
        let file = first_version();
        let reader = connect(file.path(), Access::Read).unwrap();
        assert_eq!(protocol(&reader), Ok(None));
        assert!(reader.execute("DELETE FROM main.sessions", []).is_err());
        // A program that writes upgrades it meanwhile.
        let writer = connect(file.path(), Access::Write).unwrap();
        writer.execute("UPDATE sessions SET protocol = 'p'", []).unwrap();
        assert!(protocol(&reader).is_ok());
        assert_eq!(protocol(&writer), Ok(Some("p".to_owned())));
    }

    #[test]
    fn file_of_the_first_version_is_upgraded_once() {
        let file = first_version();
        for _ in 0..2 {
            let conn = connect(file.path(), Access::Write).unwrap();
            let version: i64 =
                conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
            assert_eq!((version, protocol(&conn)), (VERSION, Ok(None)));
        }
    }

    #[test]
    fn other_file_is_refused_and_kept() {
        let file = file();
        std::fs::write(file.path(), "not a database, but a text that is long enough").unwrap();
        let why = connect(file.path(), Access::Write).unwrap_err();
        assert!(matches!(why, JournalError::NotAJournal { .. }), "{why}");
        assert!(std::fs::read_to_string(file.path()).unwrap().starts_with("not a database"));
    }

    #[test]
    fn database_of_another_program_is_refused_and_kept() {
        let file = file();
        let other = Connection::open(file.path()).unwrap();
        other.execute_batch("CREATE TABLE theirs(a)").unwrap();
        let why = connect(file.path(), Access::Write).unwrap_err();
        assert!(why.to_string().contains("another program made it"), "{why}");
        let tables: i64 =
            other.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 1);
    }
}
