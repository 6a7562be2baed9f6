//! Counts the instructions of a call with callgrind: unlike times, they do not depend on the
//! machine's load.
//!
//! The benchmark's program runs with few and with many calls. The difference, on the calling
//! thread, excludes startup, loading and the epoch thread. Counts the release build; its instance
//! allocator is the one that fits under valgrind.

use crate::place::Place;
use anyhow::{Context as _, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file with the stored counts.
const KEPT: &str = "host/cli/benches/instructions.toml";
/// The head of that file.
const HEAD: &str = "\
# Instructions of one call, by host and tool, in the release build, counted by
# `cargo xtask instructions`. Each count is compared with its own earlier value only: under valgrind
# Palisade has no room for its pool, and maps memory for each call.
";
/// The tolerated growth beyond the stored count, in percent.
const GROWTH: u64 = 3;
/// The tolerated fall below the stored count, in percent. A call that takes much less may do less
/// than it should.
const FALL: u64 = 10;
/// The numbers of calls of the two runs.
const CALLS: [u64; 2] = [100, 300];
/// The counted cases: the host, and the tool that it calls.
const CASES: [(&str, &str); 6] = [
    ("floor", "echo"),
    ("palisade", "echo"),
    ("floor", "read"),
    ("palisade", "read"),
    ("floor", "read_file"),
    ("palisade", "read_file"),
];

/// Counts each case, and compares with the stored counts or stores the new ones.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: valgrind is not installed");
        return Ok(());
    }
    let program = built(place)?;
    let counts = CASES
        .map(|(host, tool)| Ok((format!("{host} {tool}"), each(place, &program, host, tool)?)));
    let counts: BTreeMap<String, u64> = counts.into_iter().collect::<anyhow::Result<_>>()?;
    if std::env::args().nth(2).as_deref() == Some("--keep") {
        return keep(place, &counts);
    }
    compare(&kept(place)?, &counts)
}

/// Builds the benchmark and returns its program.
fn built(place: &Place) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "bench",
        "--package",
        "palisade-cli",
        "--bench",
        "suite",
        "--no-run",
        "--message-format",
        "json",
    ]);
    let output = cargo
        .current_dir(&place.root)
        .stderr(Stdio::inherit())
        .output()
        .context("running cargo bench")?;
    ensure!(output.status.success(), "the benchmark does not build");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut paths = lines.lines().rev().filter_map(|line| {
        serde_json::from_str::<serde_json::Value>(line).ok()?["executable"]
            .as_str()
            .map(PathBuf::from)
    });
    paths.next().context("cargo names no program")
}

/// Returns the number of instructions of one call.
fn each(place: &Place, program: &Path, host: &str, tool: &str) -> anyhow::Result<u64> {
    // The first run may have to compile the plugins: valgrind emulates another processor, which is
    // part of the cache key.
    counted(place, program, host, tool, 1)?;
    let [few, many] = CALLS.map(|calls| counted(place, program, host, tool, calls));
    Ok(many?.saturating_sub(few?) / (CALLS[1] - CALLS[0]))
}

/// Returns the number of instructions of a process with this many calls, on its first thread.
fn counted(
    place: &Place,
    program: &Path,
    host: &str,
    tool: &str,
    calls: u64,
) -> anyhow::Result<u64> {
    let out = place.target.join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind", "--separate-threads=yes"]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display())).arg(program).args([
        "counted",
        host,
        tool,
        &calls.to_string(),
    ]);
    let output = valgrind.output().context("running valgrind")?;
    ensure!(output.status.success(), "{host} {tool}: {}", String::from_utf8_lossy(&output.stderr));
    let first = place.target.join("callgrind.out-01");
    let text =
        fs::read_to_string(&first).with_context(|| format!("reading {}", first.display()))?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .context("callgrind printed no total")?;
    total.trim().parse().context("the total of callgrind is not a number")
}

fn kept(place: &Place) -> anyhow::Result<BTreeMap<String, u64>> {
    let path = place.root.join(KEPT);
    let text = fs::read_to_string(&path).with_context(|| {
        format!("reading {}, which `cargo xtask instructions --keep` writes", path.display())
    })?;
    let line = |line: &str| -> Option<(String, u64)> {
        let (name, count) = line.split_once(" = ")?;
        Some((name.trim_matches('"').to_owned(), count.replace('_', "").parse().ok()?))
    };
    Ok(text.lines().filter_map(line).collect())
}

fn keep(place: &Place, counts: &BTreeMap<String, u64>) -> anyhow::Result<()> {
    let lines: String =
        counts.iter().map(|(name, count)| format!("\"{name}\" = {count}\n")).collect();
    fs::write(place.root.join(KEPT), format!("{HEAD}\n{lines}"))
        .with_context(|| format!("writing {KEPT}"))
}

fn compare(kept: &BTreeMap<String, u64>, counts: &BTreeMap<String, u64>) -> anyhow::Result<()> {
    let mut beyond = 0;
    for (name, count) in counts {
        let Some(before) = kept.get(name) else {
            bail!("{KEPT} has no count for {name}; `cargo xtask instructions --keep` writes it")
        };
        let change = (*count as f64 / *before as f64 - 1.0) * 100.0;
        println!("{name:<20} {before:>9} stored, {count:>9} counted, {change:+.1} %");
        let tolerance = if count > before { GROWTH } else { FALL };
        beyond += usize::from(count.abs_diff(*before) * 100 > before * tolerance);
    }
    ensure!(
        beyond == 0,
        "{beyond} counts are more than {GROWTH} % above or {FALL} % below; if that is intended, `cargo xtask instructions --keep` stores them"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_may_grow_by_3_percent_and_fall_by_10() {
        let counts = |count: u64| BTreeMap::from([("palisade echo".to_owned(), count)]);
        assert!(
            compare(&counts(1000), &counts(1030)).is_ok()
                && compare(&counts(1000), &counts(900)).is_ok()
        );
        assert!(
            compare(&counts(1000), &counts(1031)).is_err()
                && compare(&counts(1000), &counts(899)).is_err()
        );
        assert!(compare(&BTreeMap::new(), &counts(1)).is_err(), "a case without a stored count");
    }
}
