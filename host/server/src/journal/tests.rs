//! Tests of the journal.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod clock;
mod committed;
mod disk;
mod faults;
mod killed;
mod load;
mod pruned;
mod read_back;
mod readers;
mod reopened;
#[cfg(target_os = "linux")]
mod system_calls;

use super::file::temporary_directory;
use super::queue::{BATCH, Entry};
use super::{
    Body, CallEnded, CallFacts, CallFilter, CallKey, CallRef, CallStarted, CallState, EventFilter,
    EventId, Importance, Journal, JournalSettings, NewEvent, Outcome, Record, SessionOpened,
    StoredEvent, Timestamp, Used,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A recent time; what has it is not old.
fn now() -> Timestamp {
    Timestamp::now()
}

fn temporary() -> Journal {
    Journal::temporary(JournalSettings::default()).unwrap()
}

fn small() -> JournalSettings {
    JournalSettings { max_bytes: 4 << 20, ..JournalSettings::default() }
}

/// A directory for a journal that is opened more than once.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = temporary_directory().unwrap();
    let path = directory.path().join("journal.db");
    (directory, path)
}

fn open(path: &Path) -> Journal {
    Journal::open(path, JournalSettings::default()).unwrap()
}

fn new_event(line: &str) -> NewEvent {
    NewEvent {
        time: now(),
        name: "tool.log".into(),
        session_id: None,
        call_id: None,
        call: None,
        importance: Importance::Ordinary,
        line: line.into(),
    }
}

fn event(line: &str) -> Record {
    Record::Event(new_event(line))
}

fn session(id: &str, client: Option<&str>) -> Record {
    Record::SessionOpened(Box::new(SessionOpened {
        id: id.into(),
        client: client.map(Into::into),
        title: None,
        origin: "http".into(),
        protocol: None,
        workspace: Some("/project".into()),
        at: now(),
    }))
}

fn facts(key: CallKey, id: &str) -> CallFacts {
    CallFacts {
        key,
        id: id.into(),
        session_id: None,
        turn_id: None,
        parent: None,
        tool: "write_file".into(),
        class: Some("write"),
        plugin: Some("files".into()),
        digest: Some("sha256:00".into()),
    }
}

fn text(text: &str) -> Body {
    Body { text: Some(text.into()), length: text.len() as u64, digest: None }
}

fn started(call: CallFacts) -> Record {
    let input = text(r#"{"path":"Note.txt"}"#);
    Record::CallStarted(Box::new(CallStarted { call, input, at: now() }))
}

fn ended(call: CallFacts, outcome: Outcome) -> Record {
    Record::CallEnded(Box::new(CallEnded {
        call,
        outcome,
        input: None,
        output: text("done"),
        other_blocks: None,
        files_modified: Some(r#"["Note.txt"]"#.into()),
        files_unlisted: 0,
        command_executed: None,
        duration: Duration::from_micros(1_500),
        used: Used { bytes_written: 7, ..Used::default() },
        at: now(),
    }))
}

fn failed(class: &'static str) -> Outcome {
    Outcome::Failed { class, message: "why".into() }
}

/// Reads all events after a position.
async fn read_all(journal: &Journal, filter: &EventFilter) -> Vec<Arc<StoredEvent>> {
    let newest = *journal.newest().borrow();
    let (mut all, mut after) = (Vec::new(), EventId::START);
    while after < newest {
        let mut page = journal.events_after(after, filter, 1_000).await.unwrap();
        all.append(&mut page.events);
        after = page.scanned_to;
    }
    all
}

async fn state(journal: &Journal, key: CallKey) -> Option<CallState> {
    journal.call(CallRef::Key(key)).await.unwrap().map(|page| page.call.state)
}

/// Does something on the writer's thread, and waits for it.
async fn on_writer(journal: &Journal, run: impl FnOnce(&rusqlite::Connection) + Send + 'static) {
    assert!(journal.0.shared.queue.add_entry(Entry::Run(Box::new(run))));
    journal.flush().await;
}

/// Stops the writer until the returned sender is used or dropped.
fn hold(journal: &Journal) -> Sender<()> {
    let (release, held) = channel();
    let (stopped, is_stopped) = channel();
    let stop = move |_: &rusqlite::Connection| {
        let _ = stopped.send(());
        let _ = held.recv();
    };
    assert!(journal.0.shared.queue.add_entry(Entry::Run(Box::new(stop))));
    is_stopped.recv().unwrap();
    release
}

/// Polls for a condition.
#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

/// A generator of numbers that are the same in each run.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

#[test]
fn temporary_journal_is_deleted() {
    let journal = temporary();
    let path = journal.0.file.path().to_owned();
    assert!(path.exists());
    drop(journal);
    assert!(!path.exists());
}
