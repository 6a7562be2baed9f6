//! Python packages: the exact versions of a list, in a directory of their own, and nothing else on the machine changes.
//!
//! Without Python or its package index there is nothing to work with: that is told, and is nobody's fault.

use crate::place::Place;
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Only what is built already: installing then runs nobody's code.
pub(crate) const INSTALL: [&str; 7] =
    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"];

/// The packages of a list.
pub(crate) enum Packages {
    /// They are in this directory.
    At(PathBuf),
    /// They cannot be had here, for this reason.
    OutOfReach(String),
}

impl Packages {
    /// Installs what a list of the repository names below `directory`, once; a change of the list makes the directory anew.
    pub(crate) fn install(place: &Place, list: &str, directory: &Path) -> anyhow::Result<Self> {
        let (packages, done) = (directory.join("site"), directory.join("requirements.txt"));
        let list = place.root.join(list);
        let wanted = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
        if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
            return Ok(Self::At(packages));
        }
        if let Err(error) = python().arg("--version").output() {
            return Ok(Self::OutOfReach(format!("python3 does not start here: {error}")));
        }
        if directory.exists() {
            fs::remove_dir_all(directory).with_context(|| format!("removing {}", directory.display()))?;
        }
        let installed = pip(&list, &packages)?;
        if !installed.status.success() {
            return out_of_reach(&String::from_utf8_lossy(&installed.stderr)).map(Self::OutOfReach);
        }
        fs::write(&done, wanted).with_context(|| format!("writing {}", done.display()))?;
        Ok(Self::At(packages))
    }
}

fn pip(list: &Path, packages: &Path) -> anyhow::Result<Output> {
    let mut pip = python();
    pip.args(INSTALL).arg("--target").arg(packages);
    pip.arg("--requirement").arg(list).output().context("running pip")
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

/// The Python of this machine.
pub(crate) fn python() -> Command {
    Command::new("python3")
}

/// Python with these packages.
pub(crate) fn python_with(packages: &Path) -> Command {
    let mut python = python();
    python.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    python
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
