//! A disk without room.

use super::*;
use crate::journal::{HealthState, JournalError, LOST};
use std::process::Command;

/// Sets the number of pages that the file may have.
pub(super) async fn limit_pages(journal: &Journal, most: impl FnOnce(i64) -> i64 + Send + 'static) {
    on_writer(journal, move |conn| {
        let pages = conn.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        conn.pragma_update_and_check(None, "max_page_count", most(pages), |_| Ok(())).unwrap();
    })
    .await;
}

/// Allows the file no further page, and fills those that it has.
async fn fill_file(journal: &Journal) {
    limit_pages(journal, |pages| pages).await;
    while journal.commit(event("x")).await.is_ok() {}
}

pub(super) async fn make_room_in_file(journal: &Journal) {
    limit_pages(journal, |_| 1 << 30).await;
}

/// Checks the promises that must hold before, on and after a full disk.
async fn fails_and_recovers(
    journal: &Journal,
    fill: impl AsyncFnOnce(),
    make_room: impl AsyncFnOnce(),
) {
    let (kept, running) = (journal.next_call(), journal.next_call());
    journal.commit(started(facts(kept, "kept"))).await.unwrap();
    journal.commit(started(facts(running, "ends on the full disk"))).await.unwrap();
    journal.commit(event("before")).await.unwrap();
    fill().await;
    let large = || event(&"x".repeat(1 << 20));
    let refused = journal.commit(large()).await;
    assert_eq!(refused, Err(JournalError::DiskFull));
    for _ in 0..3 {
        journal.record(large());
        journal.flush().await;
    }
    let Record::CallEnded(mut end) = ended(facts(running, "ends"), failed("timeout")) else {
        unreachable!("`ended` makes an end");
    };
    end.output = text(&"x".repeat(1 << 20));
    journal.record(Record::CallEnded(end));
    journal.flush().await;
    let health = journal.health();
    assert!(matches!(health.state, HealthState::Failing { .. }), "{health:?}");
    assert_eq!((health.lost_events, health.lost_records), (3, 1));
    assert_eq!(state(journal, kept).await, Some(CallState::Running), "it can be read");
    make_room().await;
    journal.commit(event("after")).await.unwrap();
    assert_eq!(journal.health().state, HealthState::Storing);
    let all = read_all(journal, &EventFilter::default()).await;
    let names: Vec<&str> = all.iter().map(|event| &*event.name).collect();
    assert_eq!(names.iter().filter(|name| **name == LOST).count(), 1);
    let [.., said, after] = all.as_slice() else { panic!("{names:?}") };
    assert!(said.line.ends_with("\"lost\":3}") && &*after.line == "after", "{}", said.line);
    assert_eq!(state(journal, running).await, Some(CallState::Failed), "its outcome was kept");
}

#[tokio::test]
async fn full_file_refuses_commits_counts_losses_and_recovers() {
    let journal = temporary();
    let (fill, make_room) = (
        async || fill_file(&journal).await,
        async || {
            make_room_in_file(&journal).await;
        },
    );
    fails_and_recovers(&journal, fill, make_room).await;
}

#[tokio::test]
async fn recovery_is_noticed_without_further_records() {
    let journal = temporary();
    fill_file(&journal).await;
    journal.record(event("lost"));
    journal.flush().await;
    assert!(matches!(journal.health().state, HealthState::Failing { .. }));
    make_room_in_file(&journal).await;
    eventually("it stores again", || journal.health().state == HealthState::Storing);
    let all = read_all(&journal, &EventFilter::default()).await;
    assert_eq!(all.last().map(|event| &*event.name), Some(LOST));
}

#[tokio::test]
async fn failed_batch_gives_no_number_away() {
    let journal = temporary();
    journal.commit(event("1")).await.unwrap();
    limit_pages(&journal, |pages| pages + 20).await;
    assert!(journal.commit(event(&"x".repeat(1 << 20))).await.is_err());
    assert_eq!(journal.newest().borrow().get(), 1, "nothing was sent");
    make_room_in_file(&journal).await;
    journal.commit(event("2")).await.unwrap();
    let all = read_all(&journal, &EventFilter::default()).await;
    assert_eq!(all.iter().map(|event| &*event.line).collect::<Vec<_>>(), ["1", "2"]);
}

/// Names the small file system to the test that runs in it.
const MOUNTED: &str = "PALISADE_TEST_SMALL_DISK";

/// Returns the small file system of a test that runs in one.
fn mounted() -> Option<PathBuf> {
    std::env::var_os(MOUNTED).map(PathBuf::from)
}

/// Runs a test of this file again with a small file system of its own, which ends with it.
fn with_small_disk(test: &str) {
    let disk = temporary_directory().unwrap();
    let script = "mount -t tmpfs -o size=8m,mode=700 tmpfs \"$1\" || exit 77; shift; exec \"$@\"";
    let here = std::env::current_exe().unwrap();
    let run = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(disk.path())
        .arg(here)
        .args([&format!("journal::tests::disk::{test}"), "--exact", "--nocapture"])
        .env(MOUNTED, disk.path())
        .output();
    match run {
        Ok(run) if run.status.success() => {
            assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"), "{run:?}");
        }
        Ok(run) if run.stderr.starts_with(b"unshare:") || run.status.code() == Some(77) => {
            skipped();
        }
        Ok(run) => panic!("{}", String::from_utf8_lossy(&run.stdout)),
        Err(_) => skipped(),
    }
}

fn skipped() {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: a small disk, since only root can mount one");
}

/// The test above with a limited file runs without a disk of its own.
#[tokio::test]
async fn full_disk_refuses_commits_counts_losses_and_recovers() {
    let Some(disk) = mounted() else {
        return with_small_disk("full_disk_refuses_commits_counts_losses_and_recovers");
    };
    let journal = open(&disk.join("journal.db"));
    let ballast = disk.join("ballast");
    let fill = async || {
        // Fails when the disk is full.
        let _ = std::fs::write(&ballast, vec![0; 16 << 20]);
    };
    fails_and_recovers(&journal, fill, async || std::fs::remove_file(&ballast).unwrap()).await;
}

/// Mounts the disk of this process again with this option, as `ro` or `rw`.
fn remount(disk: &Path, option: &str) {
    let option = format!("remount,{option}");
    let run = Command::new("mount").args(["-o", &option]).arg(disk).output().unwrap();
    assert!(run.status.success(), "{run:?}");
}

#[tokio::test]
async fn read_only_disk_refuses_the_journal_with_an_error() {
    let Some(disk) = mounted() else {
        return with_small_disk("read_only_disk_refuses_the_journal_with_an_error");
    };
    let path = disk.join("journal.db");
    let journal = open(&path);
    journal.commit(event("before")).await.unwrap();
    journal.close();
    remount(&disk, "ro");
    let opened = Journal::open(&path, JournalSettings::default()).map(|_| ());
    assert!(matches!(opened, Err(JournalError::Unavailable { .. })), "{opened:?}");
    if let Ok(reader) = Journal::read_only(&path) {
        let kept = read_all(&reader, &EventFilter::default()).await;
        assert_eq!(kept.len(), 1);
    }
    remount(&disk, "rw");
    let journal = open(&path);
    assert_eq!(read_all(&journal, &EventFilter::default()).await.len(), 1);
}

#[tokio::test]
async fn session_of_a_failed_batch_has_no_client() {
    let journal = temporary();
    fill_file(&journal).await;
    // Both get into one batch, and only the second does not fit.
    let held = hold(&journal);
    journal.record(session("s", Some("me")));
    journal.record(event(&"x".repeat(1 << 20)));
    held.send(()).unwrap();
    journal.flush().await;
    make_room_in_file(&journal).await;
    let about = NewEvent { session_id: Some("s".into()), ..new_event("{}") };
    journal.commit(Record::Event(about)).await.unwrap();
    let all = read_all(&journal, &EventFilter::default()).await;
    assert_eq!(all.last().map(|event| event.client.clone()), Some(None), "its session was lost");
}
