//! The formats, held against the types in the providers' own published libraries.
//!
//! The libraries are Python packages. They go into a directory below the target directory, and nothing else on the machine changes. Without Python or its package
//! index there is nothing to check with: that is said aloud, and is no failure.

use crate::documents::Tried;
use crate::place::Place;
use anyhow::{Context as _, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const REQUIREMENTS: &str = "tests/providers/requirements.txt";
const SCRIPT: &str = "tests/providers/check.py";

/// Only what is built already: installing then runs nobody's code.
pub(crate) const INSTALL: [&str; 7] =
    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"];

/// Checks replies, definitions and messages against the types of each provider.
pub(crate) fn check(place: &Place, tried: Tried) -> anyhow::Result<()> {
    let packages = match Packages::install(place)? {
        Packages::At(directory) => directory,
        Packages::OutOfReach(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let program = build(place, tried)?;
    let mut script = python();
    script.arg(place.root.join(SCRIPT)).arg(program).env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    let status = script.current_dir(&place.root).status().context("running the check")?;
    ensure!(status.success(), "the providers' types do not accept what Palisade reads or writes");
    Ok(())
}

/// The providers' libraries.
enum Packages {
    /// They are in this directory.
    At(PathBuf),
    /// They cannot be had here, for this reason.
    OutOfReach(String),
}

impl Packages {
    /// Installs the exact versions once; a change of the list makes the directory anew.
    fn install(place: &Place) -> anyhow::Result<Self> {
        let directory = place.target.join("providers");
        let (packages, done) = (directory.join("site"), directory.join("requirements.txt"));
        let wanted =
            fs::read_to_string(place.root.join(REQUIREMENTS)).with_context(|| format!("reading {REQUIREMENTS}"))?;
        if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
            return Ok(Self::At(packages));
        }
        if let Err(error) = python().arg("--version").output() {
            return Ok(Self::OutOfReach(format!("python3 does not start here: {error}")));
        }
        if directory.exists() {
            fs::remove_dir_all(&directory).with_context(|| format!("removing {}", directory.display()))?;
        }
        match pip(place, &packages)? {
            output if output.status.success() => {
                fs::write(&done, wanted).with_context(|| format!("writing {}", done.display()))?;
                Ok(Self::At(packages))
            }
            output => out_of_reach(&String::from_utf8_lossy(&output.stderr)).map(Self::OutOfReach),
        }
    }
}

fn pip(place: &Place, packages: &Path) -> anyhow::Result<Output> {
    let mut pip = python();
    pip.args(INSTALL).arg("--target").arg(packages);
    pip.arg("--requirement").arg(place.root.join(REQUIREMENTS)).output().context("running pip")
}

/// Tells an index that cannot be reached, which looks like one that knows no version of anything, or no pip at all, from a list that cannot be installed: only
/// the last is the repository's fault.
pub(crate) fn out_of_reach(said: &str) -> anyhow::Result<String> {
    let is_away =
        ["No module named pip", "from versions: none", "ConnectionError", "timed out", "name resolution", "SSLError"];
    if !is_away.iter().any(|sign| said.contains(sign)) {
        bail!("pip cannot install what is listed:\n{said}");
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("pip says nothing");
    Ok(format!("packages cannot be had from pip's index: {last}"))
}

pub(crate) fn python() -> Command {
    Command::new("python3")
}

/// The program, as it is now.
pub(crate) fn build(place: &Place, tried: Tried) -> anyhow::Result<PathBuf> {
    if tried == Tried::Debug {
        let program = place.target.join("debug").join(format!("palisade{}", std::env::consts::EXE_SUFFIX));
        ensure!(program.is_file(), "there is no {}; `cargo build --workspace --bins` builds it", program.display());
        return Ok(program);
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--locked", "--release", "--package", "palisade", "--bin", "palisade", "--target-dir"])
        .arg(&place.target);
    let status = cargo.current_dir(&place.root).status().context("building palisade")?;
    ensure!(status.success(), "palisade does not build");
    Ok(place.target.join("release").join(format!("palisade{}", std::env::consts::EXE_SUFFIX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_out_of_reach_is_told_from_a_list_that_cannot_be_installed() {
        let none =
            "ERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)\nERROR: No a\n";
        assert!(out_of_reach(none).is_ok_and(|reason| reason.ends_with("ERROR: No a")));
        assert!(out_of_reach("/usr/bin/python3: No module named pip").is_ok());
        assert!(out_of_reach("ERROR: No matching distribution (from versions: 1.0, 1.1)").is_err());
    }
}
