//! Writes and syncs that fail, from the opening of a journal to its end. A library that is loaded
//! before the C library fails them (`faulty_disk.c`), in a process of its own.

use super::*;
use crate::journal::JournalError;
use std::collections::BTreeSet;
use std::process::Command;

/// Names the journal to the process whose writes fail.
const JOURNAL_KEY: &str = "PALISADE_TEST_FAULTY_JOURNAL";
/// The numbers of the errors `EIO` and `ENOSPC`: of a device, and for lack of room.
const ERRORS: [i32; 2] = [5, 28];
/// The commits of a process.
const COMMITS: u64 = 24;
/// The most writes that are failed in turn, spread over all.
const TRIES: usize = 48;

/// The statements of a process about its commits.
#[derive(Debug, Default)]
struct Said {
    committed: BTreeSet<u64>,
    refused: BTreeSet<u64>,
}

/// Returns the library, or `None` where there is no C compiler.
fn library(directory: &Path) -> Option<PathBuf> {
    let library = directory.join("faulty_disk.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/journal/tests/faulty_disk.c");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let made = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .args([source, "-ldl"])
        .output()
        .ok()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(library)
}

/// Opens the journal and commits, while some of that fails.
#[allow(clippy::print_stdout, reason = "this is how the process answers")]
async fn commit_to(path: &Path) {
    let Ok(journal) = Journal::open(path, JournalSettings::default()) else { return };
    for number in 0..COMMITS {
        let size = if number % 5 == 4 { 100_000 } else { 10 };
        let committed = journal.commit(event(&format!("{number} {}", "x".repeat(size)))).await;
        println!("\nsaid {} {number}", if committed.is_ok() { "committed" } else { "refused" });
    }
    journal.close();
}

/// Runs a process with this fault, and returns what it said with the numbers of its writes and
/// syncs.
fn faulty(library: &Path, path: &Path, fault: &str) -> (Said, [usize; 2]) {
    let counts = path.with_file_name("counts");
    let test = "journal::tests::system_calls::failed_write_loses_only_what_was_refused";
    let run = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(JOURNAL_KEY, path)
        .env("LD_PRELOAD", library)
        .env("PALISADE_TEST_FAULT", fault)
        .env("PALISADE_TEST_FAULT_COUNT", &counts)
        .output()
        .unwrap();
    assert!(run.status.success(), "{fault}: {run:?}");
    let mut said = Said::default();
    for line in String::from_utf8_lossy(&run.stdout).lines() {
        let Some((what, number)) = line.strip_prefix("said ").and_then(|it| it.split_once(' '))
        else {
            continue;
        };
        let number = number.parse().unwrap();
        match what {
            "committed" => said.committed.insert(number),
            _ => said.refused.insert(number),
        };
    }
    let counts = std::fs::read_to_string(counts).unwrap();
    let (writes, syncs) = counts.trim_end().split_once(' ').unwrap();
    (said, [writes, syncs].map(|count| count.parse().unwrap()))
}

/// Opens the journal as it was left, and compares it with what was said.
async fn check(path: &Path, said: &Said, fault: &str) {
    let journal = Journal::open(path, JournalSettings::default())
        .unwrap_or_else(|why| panic!("{fault}: {why}"));
    let events = read_all(&journal, &EventFilter::default()).await;
    let kept = events.iter().map(|event| event.line.split(' ').next().unwrap().parse().unwrap());
    let kept: BTreeSet<u64> = kept.collect();
    assert_eq!(kept, said.committed, "{fault}");
    let sound = journal.0.readers.read_here(|conn| {
        conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))
    });
    assert_eq!(sound.as_deref(), Ok("ok"), "{fault}");
    let after: Result<(), JournalError> = journal.commit(event("99 after")).await;
    assert_eq!(after, Ok(()), "{fault}");
}

fn prepared() -> Option<(tempfile::TempDir, PathBuf)> {
    let directory = temporary_directory().unwrap();
    let library = library(directory.path());
    if library.is_none() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "skipped: a faulty disk, for lack of a C compiler");
    }
    Some((directory, library?))
}

#[tokio::test]
async fn failed_write_loses_only_what_was_refused() {
    if let Some(path) = std::env::var_os(JOURNAL_KEY) {
        return commit_to(Path::new(&path)).await;
    }
    let Some((directory, library)) = prepared() else { return };
    let (said, [writes, _]) = faulty(&library, &place_in(&directory, "sound"), "none");
    assert!(said.committed.len() as u64 == COMMITS && writes > 50, "{said:?} {writes}");
    let mut refused = 0;
    for (number, write) in (1..=writes).step_by(writes.div_ceil(TRIES)).enumerate() {
        let fault = format!("write:{write}:{}", ERRORS[number % ERRORS.len()]);
        let path = place_in(&directory, &write.to_string());
        let (said, _) = faulty(&library, &path, &fault);
        refused += said.refused.len();
        check(&path, &said, &fault).await;
    }
    assert!(refused > 10, "{refused} commits were refused");
}

/// The first commit in an empty log needs a sync.
#[tokio::test]
async fn failed_sync_loses_only_what_was_refused() {
    let Some((directory, library)) = prepared() else { return };
    let (_, [_, syncs]) = faulty(&library, &place_in(&directory, "sound"), "none");
    assert!(syncs > 1, "{syncs}");
    for sync in 1..=syncs {
        let fault = format!("sync:{sync}:{}", ERRORS[0]);
        let path = place_in(&directory, &sync.to_string());
        let (said, _) = faulty(&library, &path, &fault);
        check(&path, &said, &fault).await;
    }
    let (path, fault) = (place_in(&directory, "all"), format!("sync:0:{}", ERRORS[0]));
    open(&path).close();
    let (said, _) = faulty(&library, &path, &fault);
    assert!(said.committed.is_empty() && said.refused.len() as u64 == COMMITS, "{said:?}");
    check(&path, &said, &fault).await;
}

/// Returns the place of another journal.
fn place_in(directory: &tempfile::TempDir, name: &str) -> PathBuf {
    directory.path().join(name).join("journal.db")
}
