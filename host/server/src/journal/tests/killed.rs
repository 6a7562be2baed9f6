//! A process that is killed while it writes.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

/// The number of kills, unless the environment names another.
const KILLS: u64 = 20;
/// Names the number of kills.
const KILLS_KEY: &str = "PALISADE_TEST_JOURNAL_KILLS";
/// Names the journal to the process that writes it.
const JOURNAL_KEY: &str = "PALISADE_TEST_KILLED_JOURNAL";

/// The statements of a killed process. Each statement was made after it had become true.
#[derive(Debug, Default)]
struct Said {
    /// The calls whose start was committed.
    started: BTreeSet<u64>,
    /// The events of calls that were committed, each with its call's number.
    stepped: Vec<(u64, String)>,
    /// The calls that have finished, though their end may not have been recorded.
    finished: BTreeSet<u64>,
    /// The calls whose end was committed.
    ended: BTreeSet<u64>,
    /// The events that a reader got.
    sent: BTreeMap<u64, String>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        let (Some("said"), Some(what)) = (words.next(), words.next()) else { return };
        // The last line may have been cut by the kill.
        let Some(number) = words.next().and_then(|word| word.parse().ok()) else { return };
        let Some(text) = words.next() else { return };
        if words.next() != Some(".") {
            return;
        }
        match what {
            "started" => self.started.extend([number]),
            "stepped" => self.stepped.push((number, text.to_owned())),
            "finished" => self.finished.extend([number]),
            "ended" => self.ended.extend([number]),
            "sent" => self.sent.extend([(number, text.to_owned())]),
            other => panic!("{other}"),
        }
    }
}

fn say(what: &str, number: u64, text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nsaid {what} {number} {text} .").and_then(|()| out.flush()).unwrap();
}

/// Makes calls and reads events until the process is killed.
async fn write_until_killed(journal: Journal) {
    let reader = journal.clone();
    tokio::spawn(async move {
        let mut newest = reader.newest();
        let mut after = *newest.borrow();
        loop {
            let page = reader.events_after(after, &EventFilter::default(), 100).await.unwrap();
            for event in page.events {
                say("sent", event.id.get(), &event.line);
            }
            after = page.scanned_to;
            newest.changed().await.unwrap();
        }
    });
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let journal = journal.clone();
            tokio::spawn(async move {
                // The process is killed long before.
                for _ in 0..u32::MAX {
                    one_call(&journal).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

async fn one_call(journal: &Journal) {
    let key = journal.next_call();
    let number = key.get();
    journal.commit(started(facts(key, "c"))).await.unwrap();
    say("started", number, "-");
    for step in 0..number % 5 {
        let line = format!("{number}/{step}");
        journal.commit(event(&line)).await.unwrap();
        say("stepped", number, &line);
    }
    say("finished", number, "-");
    if number.is_multiple_of(2) {
        journal.commit(ended(facts(key, "c"), Outcome::Succeeded)).await.unwrap();
        say("ended", number, "-");
    } else {
        journal.record(ended(facts(key, "c"), Outcome::Succeeded));
    }
}

fn spawn(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["journal::tests::killed::kill_loses_nothing_that_was_acknowledged", "--exact"])
        .arg("--nocapture")
        .env(JOURNAL_KEY, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets a process write until it has said so many lines, and kills it a moment later.
fn killed_after(path: &Path, lines: u64, moment: u64) -> Said {
    let mut child = spawn(path);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = Said::default();
    let mut heard = 0;
    while heard < lines {
        let mut line = String::new();
        assert!(out.read_line(&mut line).unwrap() > 0, "the process ended by itself");
        heard += u64::from(line.starts_with("said "));
        said.hear(line.trim_end());
    }
    for _ in 0..moment {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for line in out.lines().map_while(Result::ok) {
        said.hear(&line);
    }
    said
}

/// Opens the journal and compares it with what was said.
async fn check(path: &Path, said: &Said) {
    let journal = open(path);
    let newest = journal.newest().borrow().get();
    for number in &said.started {
        let found = state(&journal, CallKey::new(*number)).await;
        let found = found.unwrap_or_else(|| panic!("call {number} is lost"));
        let (has_ended, was_ended) = (found == CallState::Succeeded, said.ended.contains(number));
        assert!(has_ended || found == CallState::Unknown, "call {number} is {found}");
        assert!(has_ended || !was_ended, "the end of call {number} is lost");
        assert!(!has_ended || said.finished.contains(number), "call {number} had not finished");
    }
    let events = read_all(&journal, &EventFilter::default()).await;
    let stored: BTreeMap<u64, &str> =
        events.iter().map(|event| (event.id.get(), &*event.line)).collect();
    for (id, line) in &said.sent {
        // The reader says words only.
        let stored = stored.get(id).unwrap_or_else(|| panic!("event {id} is lost"));
        assert!(stored.starts_with(line.as_str()), "event {id}");
        assert!(*id <= newest);
    }
    let lines: BTreeSet<&str> = stored.values().copied().collect();
    for (number, line) in &said.stepped {
        assert!(lines.contains(line.as_str()), "the committed event {line} of {number} is lost");
    }
    let unended = journal.0.readers.read_here(|conn| {
        conn.query_row("SELECT count(*) FROM calls WHERE ended IS NULL", [], |row| row.get(0))
    });
    assert_eq!(unended, Ok(0_i64));
    let sound = journal.0.readers.read_here(|conn| {
        conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))
    });
    assert_eq!(sound.as_deref(), Ok("ok"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_loses_nothing_that_was_acknowledged() {
    if let Some(path) = std::env::var_os(JOURNAL_KEY) {
        return write_until_killed(open(Path::new(&path))).await;
    }
    let kills = std::env::var(KILLS_KEY).map_or(KILLS, |text| text.parse().unwrap());
    let (_directory, path) = place();
    let mut seeded = Seeded(21);
    let (mut calls, mut steps, mut events) = (0, 0, 0);
    for _ in 0..kills {
        let said = killed_after(&path, 1 + seeded.below(600), seeded.below(200_000));
        calls += said.started.len();
        (steps, events) = (steps + said.stepped.len(), events + said.sent.len());
        check(&path, &said).await;
    }
    let many = [calls, steps, events].iter().all(|count| *count > 100);
    assert!(many, "{calls} calls, {steps} and {events} events were acknowledged");
}
