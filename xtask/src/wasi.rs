//! Runs wasmtime's own WASI test programs in Palisade's sandbox. They are built from a checkout
//! that the user provides, since no copy is kept here.
//!
//! A unit test of the host runs them, because it has access to the internals, and compares each
//! result with `tests/wasi/expected.toml`.

use crate::place::Place;
use anyhow::{Context as _, bail, ensure};
use palisade_wasip2::command::scrubbed;
use palisade_wasip2::{TARGET, Target, Toolchain};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package of the programs, in a checkout.
const SOURCES: &str = "crates/test-programs";
/// The name of that package.
const PACKAGE: &str = "test-programs";
/// The test that runs the programs, and the variable with their directory.
const TEST: (&str, &str) =
    ("sandbox::tests::wasi::wasmtime_programs_match_their_lists", "PALISADE_WASI");
/// The table of results that the test writes to that directory.
const TABLE: &str = "table";

/// Small and without debug information: the engine compiles this code again.
const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_DEV_OPT_LEVEL", "s"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_INCREMENTAL", "false"),
];

/// Builds the programs of the checkout given as an argument, runs them, and fails if a result
/// differs from the lists.
pub(crate) fn run(place: &Place) -> anyhow::Result<()> {
    let checkout = std::env::args_os().nth(2).map(PathBuf::from);
    let checkout = checkout
        .context("the argument is the directory of a wasmtime checkout; see CONTRIBUTING.md")?;
    let names = names(&checkout)?;
    let home = place.target.join("wasi");
    fs::create_dir_all(&home).with_context(|| format!("creating {}", home.display()))?;
    println!(
        "building {} programs; the output of the compiler is in {}",
        names.len(),
        home.join("log").display()
    );
    let log = build(place, &checkout, &home, &names)?;
    let programs = gather(&home, &names, &log)?;
    test(place, &programs)
}

/// Returns the programs for the first two versions of WASI. The third one is asynchronous, which is
/// disabled in the engine.
fn names(checkout: &Path) -> anyhow::Result<Vec<String>> {
    let sources = checkout.join(SOURCES).join("src/bin");
    let listed = fs::read_dir(&sources);
    let listed = listed.with_context(|| {
        format!("{} is not a wasmtime checkout: it has no {SOURCES}", checkout.display())
    })?;
    let files = listed.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let files: Vec<String> = files.collect::<std::io::Result<_>>()?;
    let ours = files.iter().filter_map(|file| file.strip_suffix(".rs"));
    let mut names: Vec<String> = ours
        .filter(|name| name.starts_with("p1_") || name.starts_with("p2_"))
        .map(str::to_owned)
        .collect();
    names.sort();
    ensure!(!names.is_empty(), "{} has no programs named p1_ or p2_", sources.display());
    Ok(names)
}

/// Builds all programs that compile, and returns the compiler's output. The linker of this target
/// adapts programs of the first version of WASI to components.
fn build(place: &Place, checkout: &Path, home: &Path, names: &[String]) -> anyhow::Result<String> {
    let toolchain = Toolchain::of_this_build()?;
    let target =
        Target::find(&toolchain, &place.target.join("wasm32-wasip2-sysroot"), &mut |_| ())?;
    let log = home.join("log");
    let written = fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    let mut cargo = scrubbed(&toolchain.cargo);
    cargo.current_dir(checkout).args([
        "build",
        "--locked",
        "--keep-going",
        "--package",
        PACKAGE,
        "--target",
        TARGET,
    ]);
    cargo.arg("--target-dir").arg(home).args(names.iter().flat_map(|name| ["--bin", name]));
    cargo
        .envs(PROFILE)
        .env("CARGO_ENCODED_RUSTFLAGS", target.flags().join("\u{1f}"))
        .env("RUSTC", &toolchain.rustc);
    // Ignore the exit status: programs that fail are listed in the log, and the others are built.
    cargo.stderr(Stdio::from(written)).status().context("running cargo")?;
    fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))
}

/// Copies the programs for the test, or the reason why one is missing.
fn gather(home: &Path, names: &[String], log: &str) -> anyhow::Result<PathBuf> {
    let (programs, failed) = (home.join("programs"), failed(names, log));
    if programs.exists() {
        fs::remove_dir_all(&programs)
            .with_context(|| format!("removing {}", programs.display()))?;
    }
    fs::create_dir_all(&programs).with_context(|| format!("creating {}", programs.display()))?;
    let mut built = 0;
    for name in names {
        let file = home.join(TARGET).join("debug").join(format!("{name}.wasm"));
        match failed.get(name.as_str()) {
            None if file.is_file() => {
                fs::copy(&file, programs.join(format!("{name}.wasm")))
                    .context("copying a program")?;
                built += 1;
            }
            reason => {
                let reason = reason.map_or("no executable was built", String::as_str);
                println!("{name} does not build: {reason}");
                fs::write(programs.join(format!("{name}.unbuilt")), reason)
                    .context("writing a reason")?;
            }
        }
    }
    if built == 0 {
        bail!(
            "no program builds:\n{}",
            log.lines()
                .rev()
                .take(20)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect::<Vec<_>>()
                .join("\n")
        );
    }
    println!("{built} programs are built");
    Ok(programs)
}

/// Returns the programs that did not compile, each with its first error.
fn failed<'a>(names: &'a [String], log: &str) -> BTreeMap<&'a str, String> {
    let lines: Vec<&str> = log.lines().collect();
    let given_up = |name: &str| {
        let ending = format!("(bin \"{name}\")");
        lines
            .iter()
            .find(|line| line.starts_with("error: could not compile") && line.contains(&ending))
    };
    let complaint = |name: &str| {
        let place = format!("src/bin/{name}.rs:");
        let at = lines
            .iter()
            .position(|line| line.trim_start().starts_with("-->") && line.contains(&place))?;
        lines.get(at.checked_sub(1)?).filter(|line| line.starts_with("error"))
    };
    let reason =
        |name: &'a str| Some((name, (*complaint(name).or_else(|| given_up(name))?).to_owned()));
    names.iter().filter(|name| given_up(name).is_some()).filter_map(|name| reason(name)).collect()
}

fn test(place: &Place, programs: &Path) -> anyhow::Result<()> {
    let (test, variable) = TEST;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // With the feature set of the whole workspace, so that artefacts of the tests are reused.
    cargo.args(["test", "--workspace", "--lib", "--quiet", "--", "--exact", "--nocapture", test]);
    // The table has all results; the standard output only lists skipped tests.
    cargo.current_dir(&place.root).env(variable, programs).stdout(Stdio::null());
    let status = cargo.status().context("running cargo")?;
    let table = fs::read_to_string(programs.join(TABLE))
        .with_context(|| format!("the test `{test}` did not run"))?;
    print!("{table}");
    ensure!(status.success(), "a result differs from tests/wasi/expected.toml; see above");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_failure_is_reported_with_its_first_error() {
        let names = ["p1_a", "p1_ab", "p2_c"].map(str::to_owned);
        let log = "error[E0425]: cannot find value\n --> crates/test-programs/src/bin/p1_ab.rs:3:5\n\
                   error: could not compile `test-programs` (bin \"p1_ab\") due to 1 previous error\n\
                   error: linking failed\nerror: could not compile `test-programs` (bin \"p2_c\") due to 1 previous error\n";
        let failed = failed(&names, log);
        assert_eq!(failed.keys().copied().collect::<Vec<_>>(), ["p1_ab", "p2_c"]);
        assert_eq!(failed["p1_ab"], "error[E0425]: cannot find value");
        assert!(failed["p2_c"].contains("(bin \"p2_c\")"));
    }
}
