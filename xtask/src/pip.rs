//! Installs Python packages in the exact versions of a list into a separate directory. Nothing else
//! on the machine changes.
//!
//! Without Python or its package index there are no packages; the caller is told the reason and
//! skips its task.

use crate::place::Place;
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Wheels only, so that the installation runs no third-party code.
pub(crate) const INSTALL: [&str; 7] = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
    "--only-binary=:all:",
];

/// The packages of a list.
pub(crate) enum Packages {
    /// The packages are in this directory.
    At(PathBuf),
    /// The packages are not available, for this reason.
    OutOfReach(String),
}

impl Packages {
    /// Installs the packages of a list below `directory`. Installs again only if the list changes.
    pub(crate) fn install(place: &Place, list: &str, directory: &Path) -> anyhow::Result<Self> {
        let (packages, done) = (directory.join("site"), directory.join("requirements.txt"));
        let list = place.root.join(list);
        let wanted =
            fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
        if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
            return Ok(Self::At(packages));
        }
        if let Err(error) = python().arg("--version").output() {
            return Ok(Self::OutOfReach(format!("python3 cannot be started: {error}")));
        }
        if directory.exists() {
            fs::remove_dir_all(directory)
                .with_context(|| format!("removing {}", directory.display()))?;
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
    // Without what the listed packages ask for: a list names everything, so that nothing moves.
    pip.args(INSTALL).arg("--no-deps").arg("--target").arg(packages);
    pip.arg("--requirement").arg(list).output().context("running pip")
}

/// Distinguishes an unreachable index, which looks like one without any versions, or a missing pip
/// from a list that cannot be installed, which is an error of the repository.
pub(crate) fn out_of_reach(said: &str) -> anyhow::Result<String> {
    let is_away = [
        "No module named pip",
        "from versions: none",
        "ConnectionError",
        "timed out",
        "name resolution",
        "SSLError",
    ];
    if !is_away.iter().any(|sign| said.contains(sign)) {
        bail!("pip cannot install the listed packages:\n{said}");
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no output of pip");
    Ok(format!("pip's index is out of reach: {last}"))
}

/// Returns the Python of this machine.
pub(crate) fn python() -> Command {
    Command::new("python3")
}

/// Returns Python with these packages.
pub(crate) fn python_with(packages: &Path) -> Command {
    let mut python = python();
    python.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_index_differs_from_an_invalid_list() {
        let none = "ERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)\nERROR: No a\n";
        assert!(out_of_reach(none).is_ok_and(|reason| reason.ends_with("ERROR: No a")));
        assert!(out_of_reach("/usr/bin/python3: No module named pip").is_ok());
        assert!(out_of_reach("ERROR: No matching distribution (from versions: 1.0, 1.1)").is_err());
    }
}
