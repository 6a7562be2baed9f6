//! The faults of the writer besides a full disk and a kill, and the promises that hold then.
//!
//! | fault | tests |
//! |---|---|
//! | no room for a batch, at each of its statements | here |
//! | no room on the disk or in the file; a failed batch gives no number away | `disk.rs` |
//! | a write that fails, at each of the writes from the opening to the end; syncs that fail | `system_calls.rs` |
//! | a kill at any moment | `killed.rs` |
//! | more records than can be written; a writer that panics | `load.rs`, `committed.rs` |
//! | a file of a later version, or of another program | here, `schema.rs` |
//! | a damaged page | here |
//! | a log that was removed, a file or a directory that was moved or replaced | here |
//! | a file that cannot be written, or a disk that is read-only | here, `disk.rs` |
//! | a lock that another process holds | here, `reopened.rs` |
//! | a clock that was set back | `clock.rs` |
//! | numbers at their end | here |

use super::disk::{limit_pages, make_room_in_file};
use super::*;
use crate::journal::ids::LAST;
use crate::journal::schema::{Access, VERSION, connect};
use crate::journal::{
    ConfirmationFilter, ConfirmationRequested, ConfirmationResolved, HealthState, JournalError,
    Page, PluginSeen,
};
use std::fs;

/// Returns one record of each kind, each with a text that takes pages of its own.
fn one_of_each(key: CallKey, id: &str) -> Vec<Record> {
    let long = || "x".repeat(10_000);
    let Record::SessionOpened(mut session) = session(id, None) else {
        unreachable!("`session` makes a session");
    };
    session.title = Some(long().into());
    let Record::CallEnded(mut end) = ended(facts(key, id), Outcome::Succeeded) else {
        unreachable!("`ended` makes an end");
    };
    end.output = text(&long());
    vec![
        Record::SessionOpened(session),
        Record::ConfirmationRequested(Box::new(ConfirmationRequested {
            call: facts(key, id),
            request_id: id.into(),
            input: Some(text(&long())),
            input_summary: long().into(),
            projected_modifications: "[]".into(),
            at: now(),
            expires: now(),
        })),
        Record::ConfirmationResolved(ConfirmationResolved {
            request_id: id.into(),
            resolution: "allow",
            answered_by: Some(long().into()),
            at: now(),
        }),
        started(facts(key, id)),
        event(&format!("{id} {}", long())),
        Record::PluginSeen(PluginSeen {
            name: id.into(),
            digest: long().into(),
            tools: Vec::new(),
            at: now(),
        }),
        Record::CallEnded(end),
        Record::SessionClosed { id: id.into(), at: now() },
    ]
}

/// Returns which of those records are there: session, call, question, event and plugin.
async fn found(journal: &Journal, key: CallKey, id: &str) -> [bool; 5] {
    let asked = ConfirmationFilter { request_id: Some(id.into()), ..ConfirmationFilter::default() };
    let questions = journal.confirmations(&asked, Page::default()).await.unwrap().rows;
    let plugins = journal.plugins(Page::default()).await.unwrap().rows;
    let events = read_all(journal, &EventFilter::default()).await;
    [
        journal.session(id).await.unwrap().is_some(),
        journal.call(CallRef::Key(key)).await.unwrap().is_some(),
        !questions.is_empty(),
        events.iter().any(|event| event.line.starts_with(&format!("{id} "))),
        plugins.iter().any(|plugin| plugin.name == id),
    ]
}

#[tokio::test]
async fn batch_without_room_at_any_statement_is_wholly_absent() {
    let journal = temporary();
    let mut failed = 0;
    for room in 0.. {
        let (key, id) = (journal.next_call(), format!("r{room}"));
        limit_pages(&journal, move |pages| pages + room).await;
        let held = hold(&journal);
        one_of_each(key, &id).into_iter().for_each(|record| journal.record(record));
        held.send(()).unwrap();
        journal.flush().await;
        let there = found(&journal, key, &id).await;
        if there == [true; 5] {
            break;
        }
        assert_eq!(there, [false; 5], "with room for {room} pages");
        assert!(matches!(journal.health().state, HealthState::Failing { .. }), "{room}");
        failed += 1;
        make_room_in_file(&journal).await;
        journal.commit(event("between")).await.unwrap();
    }
    assert!(failed > 10, "each statement has failed: {failed}");
}

#[tokio::test]
async fn file_of_a_later_version_is_refused_and_kept() {
    let (_directory, path) = place();
    open(&path).close();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", VERSION + 1).unwrap();
    raw.close().unwrap();
    let before = fs::read(&path).unwrap();
    for opened in [Journal::open(&path, JournalSettings::default()), Journal::read_only(&path)] {
        let why = opened.unwrap_err();
        assert!(matches!(why, JournalError::NewerVersion { .. }), "{why}");
    }
    assert!(fs::read(&path).unwrap() == before, "nothing was changed");
}

#[tokio::test]
async fn damaged_page_is_an_error_and_loses_no_acknowledged_record() {
    /// The size of a page.
    const PAGE: usize = 4_096;
    let (_directory, path) = place();
    let journal = open(&path);
    for number in 0..60 {
        let id = number.to_string();
        one_of_each(journal.next_call(), &id).into_iter().for_each(|record| journal.record(record));
    }
    journal.close();
    let sound = fs::read(&path).unwrap();
    let pages = sound.len() / PAGE;
    assert!(pages > 100, "{pages}");
    let (mut refused, mut failed) = (0, 0);
    // Those at the beginning are the schema and the roots of tables and indices.
    for page in (0..40).chain((40..pages).step_by(37)) {
        let mut damaged = sound.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xa5);
        fs::write(&path, damaged).unwrap();
        let journal = match Journal::open(&path, JournalSettings::default()) {
            Ok(journal) => journal,
            Err(why) => {
                assert!(matches!(why, JournalError::NotAJournal { .. }), "page {page}: {why}");
                assert!(why.to_string().contains("move it away"), "{why}");
                refused += 1;
                continue;
            }
        };
        let before = *journal.newest().borrow();
        match journal.commit(event("acknowledged")).await {
            Ok(()) => {
                let read = journal.events_after(before, &EventFilter::default(), 9).await.unwrap();
                assert_eq!(&*read.events[0].line, "acknowledged", "page {page}");
            }
            Err(why) => {
                let reason = why.to_string();
                assert!(reason.contains("move the file away"), "page {page}: {reason}");
                assert!(matches!(journal.health().state, HealthState::Failing { .. }));
                failed += 1;
            }
        }
        // None of these may panic.
        let _ = journal.calls(&CallFilter::default(), Page::default()).await;
        let _ = journal.events_after(EventId::START, &EventFilter::default(), 1_000).await;
        let _ = journal.summary(Timestamp::default()).await;
        // Not dropped: a reading thread may hold the journal a moment longer.
        journal.close();
    }
    assert!(refused > 0 && failed > 0, "{refused} {failed}");
}

/// Checks that nothing is written while a file is not in its place, and that everything is well
/// when it is back.
async fn displaced(path: &Path, journal: &Journal, away: impl FnOnce(), back: impl FnOnce()) {
    journal.commit(event("before")).await.unwrap();
    away();
    let refused = journal.commit(event("refused")).await;
    assert!(matches!(refused, Err(JournalError::Displaced { .. })), "{path:?}: {refused:?}");
    journal.record(event("lost"));
    journal.flush().await;
    assert!(matches!(journal.health().state, HealthState::Failing { .. }), "{path:?}");
    back();
    journal.commit(event("after")).await.unwrap();
    assert_eq!(journal.health().state, HealthState::Storing, "{path:?}");
}

#[tokio::test]
async fn journal_that_was_moved_or_replaced_takes_no_records_until_it_is_back() {
    let (directory, _) = place();
    let folder = directory.path().join("journal");
    let path = folder.join("journal.db");
    let journal = open(&path);
    let (log, aside) = (folder.join("journal.db-wal"), directory.path().join("aside"));
    let moved = |from: &Path, to: &Path| fs::rename(from, to).unwrap();
    displaced(&folder, &journal, || moved(&folder, &aside), || moved(&aside, &folder)).await;
    displaced(&path, &journal, || moved(&path, &aside), || moved(&aside, &path)).await;
    displaced(&log, &journal, || moved(&log, &aside), || moved(&aside, &log)).await;
    let replace = |file: &Path| {
        moved(file, &aside);
        fs::copy(&aside, file).unwrap();
    };
    let restore = |file: &Path| moved(&aside, file);
    displaced(&path, &journal, || replace(&path), || restore(&path)).await;
    displaced(&log, &journal, || replace(&log), || restore(&log)).await;
    journal.close();
    let again = open(&path);
    let lines = read_all(&again, &EventFilter::default()).await;
    let count = |line: &str| lines.iter().filter(|event| &*event.line == line).count();
    assert_eq!([count("before"), count("after"), count("refused"), count("lost")], [5, 5, 0, 0]);
}

#[tokio::test]
async fn removed_log_loses_nothing_that_was_acknowledged_before() {
    let (_directory, path) = place();
    let journal = open(&path);
    journal.commit(event("before")).await.unwrap();
    fs::remove_file(path.with_file_name("journal.db-wal")).unwrap();
    let refused = journal.commit(event("refused")).await;
    assert!(matches!(refused, Err(JournalError::Displaced { .. })), "{refused:?}");
    // The process still has the log, and merges it at its end.
    journal.close();
    let again = open(&path);
    let lines = read_all(&again, &EventFilter::default()).await;
    assert_eq!(lines.iter().map(|event| &*event.line).collect::<Vec<_>>(), ["before"]);
}

#[tokio::test]
async fn file_that_cannot_be_written_fails_the_commits_until_it_can() {
    let journal = temporary();
    let read_only =
        |on| move |conn: &rusqlite::Connection| conn.pragma_update(None, "query_only", on).unwrap();
    on_writer(&journal, read_only(true)).await;
    let refused = journal.commit(event("refused")).await;
    let Err(JournalError::NotWritten { reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("readonly"), "{reason}");
    assert!(matches!(journal.health().state, HealthState::Failing { .. }));
    on_writer(&journal, read_only(false)).await;
    journal.commit(event("after")).await.unwrap();
    assert_eq!(journal.health().state, HealthState::Storing);
}

#[tokio::test]
async fn lock_of_another_process_fails_the_commits_until_it_is_gone() {
    let (_directory, path) = place();
    let journal = open(&path);
    on_writer(&journal, |conn| conn.busy_timeout(Duration::from_millis(20)).unwrap()).await;
    let other = connect(&path, Access::Write).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = journal.commit(event("refused")).await;
    let Err(JournalError::NotWritten { reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("locked"), "{reason}");
    other.execute_batch("ROLLBACK").unwrap();
    journal.commit(event("after")).await.unwrap();
    let lines = read_all(&journal, &EventFilter::default()).await;
    assert_eq!(lines.iter().map(|event| &*event.line).collect::<Vec<_>>(), ["after"]);
}

#[tokio::test]
async fn journal_whose_numbers_are_used_up_is_refused() {
    let numbered = |table: &str, last: i64| {
        let (directory, path) = place();
        let journal = open(&path);
        journal.record(session("s", None));
        let key = journal.next_call();
        journal.record(started(facts(key, "c")));
        journal.record(ended(facts(key, "c"), Outcome::Succeeded));
        journal.record(event("x"));
        journal.close();
        let raw = rusqlite::Connection::open(&path).unwrap();
        let set = "UPDATE sqlite_sequence SET seq = ?1 WHERE name = ?2";
        assert_eq!(raw.execute(set, rusqlite::params![last, table]).unwrap(), 1, "{table}");
        raw.close().unwrap();
        (directory, path)
    };
    let last = i64::try_from(LAST).unwrap();
    for table in ["events", "sessions", "calls"] {
        for number in [last, i64::MAX] {
            let (_directory, path) = numbered(table, number);
            let why = Journal::open(&path, JournalSettings::default()).unwrap_err();
            assert!(matches!(why, JournalError::NotAJournal { .. }), "{table}: {why}");
            assert!(why.to_string().contains("its numbers are used up"), "{why}");
        }
        let (_directory, path) = numbered(table, last - 1);
        let journal = open(&path);
        journal.commit(event("y")).await.unwrap();
        journal.commit(event("z")).await.unwrap();
        let key = journal.next_call();
        journal.commit(started(facts(key, "d"))).await.unwrap();
        assert_eq!(state(&journal, key).await, Some(CallState::Running), "{table}");
    }
}
