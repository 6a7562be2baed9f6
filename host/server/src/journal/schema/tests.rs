//! Tests of the format and of its earlier versions.
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
        assert!(matches!(why, JournalError::NewerVersion { found: 4, known: 3, .. }), "{why}");
        assert!(why.to_string().contains("use the later program"), "{why}");
    }
}

/// Returns a file of an earlier version with a session and a call.
fn earlier(version: i64) -> tempfile::NamedTempFile {
    let file = file();
    let conn = connect(file.path(), Access::Write).unwrap();
    conn.execute_batch(
        "INSERT INTO sessions(id, origin, opened) VALUES ('s1', 'http', 7);
         INSERT INTO calls(id, tool, state, created) VALUES ('c1', 't', 'succeeded', 7);
         DROP INDEX calls_of_parent; ALTER TABLE calls DROP COLUMN parent",
    )
    .unwrap();
    if version == WITHOUT_PROTOCOL {
        conn.execute_batch("ALTER TABLE sessions DROP COLUMN protocol").unwrap();
    }
    conn.pragma_update(None, "user_version", version).unwrap();
    file
}

fn parent(conn: &Connection) -> rusqlite::Result<Option<i64>> {
    conn.query_row("SELECT parent FROM calls WHERE id = 'c1'", [], |row| row.get(0))
}

fn protocol(conn: &Connection) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT protocol FROM sessions WHERE id = 's1'", [], |row| row.get(0))
}

#[test]
fn file_of_an_earlier_version_is_read_and_stays_as_it_is() {
    for version in [WITHOUT_PROTOCOL, WITHOUT_PARENT] {
        let file = earlier(version);
        let reader = connect(file.path(), Access::Read).unwrap();
        assert_eq!((protocol(&reader), parent(&reader)), (Ok(None), Ok(None)));
        assert!(reader.execute("DELETE FROM main.sessions", []).is_err());
        // A program that writes upgrades it meanwhile.
        let writer = connect(file.path(), Access::Write).unwrap();
        writer.execute("UPDATE sessions SET protocol = 'p'", []).unwrap();
        writer.execute("UPDATE calls SET parent = 1", []).unwrap();
        assert!(protocol(&reader).is_ok() && parent(&reader).is_ok());
        assert_eq!(protocol(&writer), Ok(Some("p".to_owned())));
        assert_eq!(parent(&writer), Ok(Some(1)));
    }
}

#[test]
fn file_of_an_earlier_version_is_upgraded_once() {
    for version in [WITHOUT_PROTOCOL, WITHOUT_PARENT] {
        let file = earlier(version);
        for _ in 0..2 {
            let conn = connect(file.path(), Access::Write).unwrap();
            let now: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
            assert_eq!((now, protocol(&conn), parent(&conn)), (VERSION, Ok(None), Ok(None)));
        }
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
