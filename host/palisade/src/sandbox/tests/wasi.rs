//! wasmtime's own WASI test programs, each run as a call is run, and compared with the lists in
//! `tests/wasi/expected.toml`. `cargo xtask wasi` builds the programs and runs this test; none of
//! them is kept here.

mod lists;
mod program;

use lists::{List, Lists, Run};
use program::{Outcome, Paths, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The variable with the directory of the programs: `NAME.wasm`, or `NAME.unbuilt` with the reason
/// why the program was not built.
const DIRECTORY: &str = "PALISADE_WASI";

#[test]
fn wasmtime_programs_match_their_lists() {
    let Some(directory) = env::var_os(DIRECTORY) else {
        let _ = writeln!(
            io::stderr(),
            "skipped: {DIRECTORY} names no directory of programs; `cargo xtask wasi` builds them"
        );
        return;
    };
    let directory = Path::new(&directory);
    let lists = Lists::read();
    let programs = programs(directory);
    let missing = lists.programs().into_iter().filter(|name| !programs.contains_key(*name));
    let mut wrong: Vec<String> =
        missing.map(|name| format!("{name}: it is listed, and not there")).collect();
    let mut counts = BTreeMap::new();
    let mut table = String::new();
    for (name, path) in &programs {
        for Judged { list, row, outcome } in judged(name, path, &lists) {
            table.extend([&row, "\n"]);
            *counts.entry(list).or_insert(0) += usize::from(outcome.is_ok());
            wrong.extend(outcome.err());
        }
    }
    let counts: Vec<String> =
        counts.iter().map(|(list, count)| format!("{count} {list}")).collect();
    table.push_str(&format!(
        "{} programs; runs as listed: {}\n",
        programs.len(),
        counts.join(", ")
    ));
    // The table also shows the caller that the test ran.
    fs::write(directory.join("table"), table).unwrap();
    assert!(
        wrong.is_empty(),
        "\n{}\n{} behave otherwise than the lists say",
        wrong.join("\n"),
        wrong.len()
    );
}

/// Returns the programs of a directory, by name.
fn programs(directory: &Path) -> BTreeMap<String, PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let ours = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "wasm" || kind == "unbuilt"));
    ours.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

/// A run, compared with its list.
struct Judged {
    list: List,
    /// The row of the table.
    row: String,
    /// The deviation from the list, if there is one.
    outcome: Result<(), String>,
}

/// Runs a program as listed, once for each way to resolve paths, and compares the outcomes.
fn judged(name: &str, path: &Path, lists: &Lists) -> Vec<Judged> {
    let unlisted = |why: String| {
        vec![Judged {
            list: List::None,
            row: row(List::None, name, &why),
            outcome: Err(format!("{name}: {why}")),
        }]
    };
    if path.extension().is_some_and(|kind| kind == "unbuilt") {
        return unlisted(format!("it does not build: {}", fs::read_to_string(path).unwrap()));
    }
    let program = Program::new(name, &fs::read(path).unwrap());
    let runs = lists.runs_of(name);
    if runs.is_empty() {
        return unlisted(format!(
            "it is in no list, and {}",
            said(&program.run(&Run::default(), Paths::Best))
        ));
    }
    let one = |(list, title, run): (List, &str, &Run)| {
        let outcomes = [Paths::Best, Paths::Walked].map(|paths| (paths, program.run(run, paths)));
        let wrong = outcomes.iter().find_map(|(paths, outcome)| {
            judge(list, run, outcome)
                .err()
                .map(|why| format!("{why} (paths: {paths:?}); {}", said(outcome)))
        });
        let told = wrong
            .as_ref()
            .map_or_else(|| describe(list, run, &outcomes[0].1), |why| format!("OTHERWISE: {why}"));
        let outcome = wrong.map_or(Ok(()), |why| Err(format!("{title} ({list}): {why}")));
        Judged { list, row: row(list, title, &told), outcome }
    };
    runs.into_iter().map(one).collect()
}

fn row(list: List, title: &str, told: &str) -> String {
    format!("{list:<8} {title:<50} {told}").trim_end().to_owned()
}

/// Returns the text of a run for the table.
fn describe(list: List, run: &Run, outcome: &Outcome) -> String {
    match &run.reason {
        Some(reason) if list != List::Pass => reason.clone(),
        _ if run.fails.is_some() => said(outcome),
        _ => String::new(),
    }
}

fn said(outcome: &Outcome) -> String {
    match &outcome.result {
        Ok(()) => "it succeeds".to_owned(),
        Err(error) => format!("it fails: {error}"),
    }
}

fn judge(list: List, run: &Run, outcome: &Outcome) -> Result<(), String> {
    match (&run.fails, &outcome.result) {
        (Some(_), Ok(())) => return Err("it should fail".to_owned()),
        (Some(words), Err(error)) if !error.contains(words) => {
            return Err(format!("it should fail with `{words}`"));
        }
        (None, Err(_)) => return Err("it should succeed".to_owned()),
        _ => {}
    }
    if list != List::Pass && (run.fails.is_none() || run.reason.is_none()) {
        return Err(
            "a program that does not pass needs a reason, and words of its failure".to_owned()
        );
    }
    if run.prints.as_ref().is_some_and(|expected| expected.as_bytes() != outcome.stdout) {
        return Err(format!("it prints {:?}", String::from_utf8_lossy(&outcome.stdout)));
    }
    if run.prints_bytes.is_some_and(|expected| expected != outcome.stdout.len()) {
        return Err(format!("it prints {} bytes", outcome.stdout.len()));
    }
    let other = run.leaves.iter().find(|(name, text)| outcome.file(name).as_ref() != Some(*text));
    other.map_or(Ok(()), |(name, _)| Err(format!("it leaves `{name}` as {:?}", outcome.file(name))))
}

#[test]
fn listed_programs_have_one_list_and_a_reason() {
    let lists = Lists::read();
    let mut seen = BTreeSet::new();
    for (list, title, run) in lists.all() {
        assert!(seen.insert(title), "{title} is listed twice");
        let explained = run.reason.is_some() && run.fails.is_some();
        assert!(
            list == List::Pass || explained,
            "{title} ({list}) needs a reason, and words of its failure"
        );
    }
}

#[test]
fn behaviour_outside_the_lists_is_found() {
    let fails = |words: &str| Run {
        reason: Some("So it is.".to_owned()),
        fails: Some(words.to_owned()),
        ..Run::default()
    };
    let good = Outcome::bare(Ok(()));
    let bad = Outcome::bare(Err("no links".to_owned()));
    for list in [List::Denied, List::Limited] {
        assert!(judge(list, &fails("links"), &bad).is_ok());
        assert!(judge(list, &fails("links"), &good).is_err(), "it passes");
        assert!(judge(list, &fails("sockets"), &bad).is_err(), "it fails otherwise");
    }
    assert!(judge(List::Pass, &Run::default(), &good).is_ok());
    assert!(judge(List::Pass, &Run::default(), &bad).is_err());
    let prints = Run { prints: Some("word".to_owned()), ..Run::default() };
    assert!(judge(List::Pass, &prints, &good).is_err(), "it prints nothing");
}
