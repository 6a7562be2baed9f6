//! Coverage-guided fuzzing of the host's borders (`fuzz/`): building the targets, and running one of them on what has been found so far.

use crate::guests::toolchain::Toolchain;
use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How long a border is fuzzed unless told otherwise, in seconds.
const SECONDS: &str = "600";

/// What makes the compiler count edges and keep comparisons, as libFuzzer reads them: the flags of `cargo fuzz --sanitizer none`, which a stable compiler knows.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// One input is at most so long, in bytes: the corpora are kept small.
const LONGEST: &str = "-max_len=16384";
/// A single input that takes longer than this is a finding, in seconds.
const SLOW: &str = "-timeout=30";
/// So is one that needs more memory than this, in MiB.
const MEMORY: &str = "-rss_limit_mb=4096";

/// Builds all targets, or fuzzes the border that is named.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(2);
    match arguments.next() {
        None => build(place),
        Some(border) => fuzz(place, &border, &arguments.next().unwrap_or_else(|| SECONDS.to_owned())),
    }
}

/// All of them without counting anything: that they still compile and link.
fn build(place: &Place) -> anyhow::Result<()> {
    // Of the whole workspace, as the tests are: what was compiled for them is used again.
    let mut cargo = cargo(place, &place.target);
    cargo.arg("--bins");
    ensure!(cargo.status()?.success(), "a fuzz target does not compile");
    Ok(())
}

fn fuzz(place: &Place, border: &str, seconds: &str) -> anyhow::Result<()> {
    let kept = place.root.join("fuzz/corpus").join(border);
    ensure!(kept.is_dir(), "there is no border `{border}`; fuzz/corpus lists them");
    let work = place.target.join("fuzz");
    let program = instrumented(place, border, &work)?;
    let [found, findings] = ["found", "findings"].map(|folder| work.join(folder).join(border));
    for folder in [&found, &findings] {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let mut fuzzer = Command::new(program);
    fuzzer.args([&found, &kept]).args([LONGEST, SLOW, MEMORY, "-print_final_stats=1"]);
    fuzzer.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={}/", findings.display()));
    ensure!(fuzzer.status()?.success(), "a finding lies in {}", findings.display());
    Ok(())
}

/// Builds one target with counters in all of it, the engine included.
fn instrumented(place: &Place, border: &str, work: &Path) -> anyhow::Result<PathBuf> {
    let toolchain = Toolchain::of_this_build().map_err(|error| anyhow::anyhow!("{error}"))?;
    let host = toolchain.version.host;
    // With `--target`, the flags do not reach macros and build scripts, whose time they would only cost.
    let mut cargo = cargo(place, work);
    cargo.args(["--profile", "fuzz", "--target", &host, "--bin", border]).env("RUSTFLAGS", COVERAGE.join(" "));
    ensure!(cargo.status()?.success(), "the fuzz target does not compile");
    Ok(work.join(host).join("fuzz").join(border))
}

fn cargo(place: &Place, target: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&place.root).args(["build", "--workspace", "--features", "palisade-fuzz/libfuzzer"]);
    cargo.arg("--target-dir").arg(target);
    cargo
}
