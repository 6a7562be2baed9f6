//! Installs and runs the conformance suite from npm.

use super::requirements::Requirements;
use crate::npm::{self, Packages};
use crate::place::Place;
use crate::served;
use anyhow::{Context as _, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The lists of packages.
const SOURCES: &str = "tests/conformance";
/// The suite, relative to the directory of the packages.
const SUITE: &str = "node_modules/@modelcontextprotocol/conformance";
/// The timeout of a run.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The result of installing the suite.
pub(super) enum Fetched {
    /// The suite is installed.
    Here(Suite),
    /// The suite is not available, for this reason.
    OutOfReach(String),
}

/// The installed suite.
pub(super) struct Suite(Packages);

/// Installs the exact versions.
pub(super) fn fetch(place: &Place) -> anyhow::Result<Fetched> {
    let directory = place.target.join("conformance").join("suite");
    Ok(match npm::fetch(place, SOURCES, directory)? {
        npm::Fetched::Here(packages) => Fetched::Here(Suite(packages)),
        npm::Fetched::OutOfReach(reason) => Fetched::OutOfReach(reason),
    })
}

impl Suite {
    fn place(&self) -> PathBuf {
        self.0.directory().join(SUITE)
    }

    /// Returns the requirements of a revision for a server.
    pub(super) fn requirements(&self, revision: &str) -> anyhow::Result<Requirements> {
        let path = self.place().join("requirements").join(format!("{revision}.yaml"));
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Ok(Requirements::parse(&text))
    }

    /// Runs the suite to its end and appends its output to the log.
    pub(super) fn run(&self, arguments: &[&str], log: &Path) -> anyhow::Result<ExitStatus> {
        let open = || File::options().create(true).append(true).open(log);
        let open = || open().with_context(|| format!("opening {}", log.display()));
        let mut node = Command::new(self.0.node());
        node.arg(self.place().join("dist/index.js")).args(arguments);
        let mut child = node
            .stdin(Stdio::null())
            .stdout(open()?)
            .stderr(open()?)
            .spawn()
            .context("running the suite")?;
        match served::finish(&mut child, PATIENCE)? {
            Some(ended) => Ok(ended),
            None => bail!(
                "the suite does not end within {} s; see {}",
                PATIENCE.as_secs(),
                log.display()
            ),
        }
    }
}
