//! Coverage-guided fuzzing of the host's interfaces (`fuzz/`): builds the targets, and runs one of
//! them on its corpus.

use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The default duration of a run, in seconds.
const SECONDS: &str = "600";

/// Compiler flags for edge counters and comparison tracing in the format of libFuzzer: the flags of
/// `cargo fuzz --sanitizer none`, which a stable compiler supports.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Set when this program runs as cargo's compiler wrapper.
const WRAPPER: &str = "PALISADE_COVERAGE";

/// Maximum size of an input, in bytes: the corpora stay small.
const LONGEST: &str = "-max_len=16384";
/// An input that takes longer than this is a finding, in seconds.
const SLOW: &str = "-timeout=30";
/// An input that needs more memory than this is a finding, in MiB.
const MEMORY: &str = "-rss_limit_mb=4096";

/// Builds all targets, or fuzzes the named one.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(2);
    match arguments.next() {
        None => build(place),
        Some(border) => {
            fuzz(place, &border, &arguments.next().unwrap_or_else(|| SECONDS.to_owned()))
        }
    }
}

/// Builds all targets without counters, to check that they compile and link.
fn build(place: &Place) -> anyhow::Result<()> {
    // With the feature set of the whole workspace, so that artefacts of the tests are reused.
    let mut cargo = cargo(place, &place.target);
    cargo.arg("--bins");
    ensure!(cargo.status()?.success(), "a fuzz target does not compile");
    Ok(())
}

fn fuzz(place: &Place, border: &str, seconds: &str) -> anyhow::Result<()> {
    let kept = place.root.join("fuzz/corpus").join(border);
    ensure!(kept.is_dir(), "there is no border `{border}`; fuzz/corpus lists them");
    let (work, program) = (place.target.join("fuzz"), instrumented(place, border)?);
    let [found, findings] = ["found", "findings"].map(|folder| work.join(folder).join(border));
    for folder in [&found, &findings] {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let mut fuzzer = Command::new(program);
    fuzzer.args([&found, &kept]).args([LONGEST, SLOW, MEMORY, "-print_final_stats=1"]);
    fuzzer
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", findings.display()));
    ensure!(fuzzer.status()?.success(), "a finding is in {}", findings.display());
    Ok(())
}

/// Builds one target with counters in this workspace only: the engine has its own fuzzers, and
/// artefacts of the tests are reused.
fn instrumented(place: &Place, border: &str) -> anyhow::Result<PathBuf> {
    let mut cargo = cargo(place, &place.target);
    let wrapper = std::env::current_exe().context("finding the path of this program")?;
    cargo.args(["--bin", border]).env("RUSTC_WORKSPACE_WRAPPER", wrapper).env(WRAPPER, "1");
    ensure!(cargo.status()?.success(), "the fuzz target does not compile");
    Ok(place.target.join("debug").join(border))
}

/// Runs the compiler with counters if cargo has invoked this program as its wrapper.
pub(crate) fn as_compiler() -> Option<anyhow::Result<ExitCode>> {
    std::env::var_os(WRAPPER)?;
    let mut arguments = std::env::args_os().skip(1);
    let mut compiler = Command::new(arguments.next()?);
    let arguments: Vec<_> = arguments.collect();
    // Build scripts and proc macros run at build time and are not linked with libFuzzer.
    let is_for_building = |word: &OsString| word == "build_script_build" || word == "proc-macro";
    if !arguments.iter().any(is_for_building) {
        compiler.args(COVERAGE);
    }
    let status = compiler.args(arguments).status().context("running the compiler");
    Some(status.map(|status| if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

fn cargo(place: &Place, target: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&place.root).args([
        "build",
        "--workspace",
        "--features",
        "palisade-fuzz/libfuzzer",
    ]);
    cargo.arg("--target-dir").arg(target);
    cargo
}
