//! The suite, and a Node that can run it, from npm.

use super::requirements::Requirements;
use crate::place::Place;
use anyhow::{Context as _, bail, ensure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Where the lists of packages are kept.
const SOURCES: &str = "tests/conformance";
const PARTS: [&str; 2] = ["package.json", "package-lock.json"];
/// The suite, below the directory of the packages.
const SUITE: &str = "node_modules/@modelcontextprotocol/conformance";
/// The oldest Node on which the suite starts.
const OLDEST: u32 = 22;
/// What no run of the suite takes.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// What came of fetching the suite.
pub(super) enum Fetched {
    /// It is here.
    Here(Suite),
    /// It cannot be had here, for this reason.
    OutOfReach(String),
}

/// The suite, installed.
pub(super) struct Suite {
    node: PathBuf,
    directory: PathBuf,
}

/// Whose Node runs the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    /// The machine's.
    Machines,
    /// One from npm, since the machine's is too old.
    Npms,
}

/// Installs the exact versions once; a change of the lists makes the directory anew.
pub(super) fn fetch(place: &Place) -> anyhow::Result<Fetched> {
    let node = match version_here() {
        Some(version) if version >= OLDEST => Node::Machines,
        Some(_) => Node::Npms,
        None => return Ok(Fetched::OutOfReach("node does not start here, and npm needs it".to_owned())),
    };
    let directory = place.target.join("conformance").join("suite");
    let (stamp, wanted) = (directory.join("stamp"), ingredients(place, node)?);
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        if let Some(reason) = install(place, &directory, node)? {
            return Ok(Fetched::OutOfReach(reason));
        }
        fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    }
    let node = match node {
        Node::Machines => PathBuf::from("node"),
        Node::Npms => npms(&directory)?,
    };
    Ok(Fetched::Here(Suite { node, directory }))
}

fn npms(directory: &Path) -> anyhow::Result<PathBuf> {
    let node = directory.join("node_modules/.bin/node");
    ensure!(node.is_file(), "the suite needs Node {OLDEST} or later, and npm has none for this system: install one");
    Ok(node)
}

/// The major version of the machine's Node.
fn version_here() -> Option<u32> {
    let output = Command::new("node").arg("--version").stdin(Stdio::null()).output().ok()?;
    major(&String::from_utf8_lossy(&output.stdout))
}

fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Everything that the installed packages depend on, as one text.
fn ingredients(place: &Place, node: Node) -> anyhow::Result<String> {
    let mut text = format!("{node:?}\n");
    for part in PARTS {
        let path = place.root.join(SOURCES).join(part);
        text += &fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    }
    Ok(text)
}

/// Returns the reason where the packages cannot be reached.
fn install(place: &Place, directory: &Path, node: Node) -> anyhow::Result<Option<String>> {
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("removing {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    for part in PARTS {
        let from = place.root.join(SOURCES).join(part);
        fs::copy(&from, directory.join(part)).with_context(|| format!("copying {}", from.display()))?;
    }
    let mut npm = Command::new("npm");
    // Without the scripts of the packages: installing then runs nobody's code.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    if node == Node::Machines {
        npm.arg("--omit=optional");
    }
    match npm.current_dir(directory).stdin(Stdio::null()).output() {
        Err(error) => Ok(Some(format!("npm does not start here: {error}"))),
        Ok(output) if output.status.success() => Ok(None),
        Ok(output) => out_of_reach(&String::from_utf8_lossy(&output.stderr)).map(Some),
    }
}

/// Tells packages that cannot be reached from a list that cannot be installed: only the last is the repository's fault.
fn out_of_reach(said: &str) -> anyhow::Result<String> {
    let is_away = [
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "EIDLETIMEOUT",
        "ENETUNREACH",
        "ENOTFOUND",
        "ERR_SOCKET_TIMEOUT",
        "ETIMEDOUT",
    ];
    match said.lines().find(|line| is_away.iter().any(|sign| line.contains(sign))) {
        Some(line) => Ok(format!("npm's packages cannot be had: {}", line.trim())),
        None => bail!("npm cannot install what {SOURCES} names:\n{said}"),
    }
}

impl Suite {
    /// What the suite requires of a server in a revision.
    pub(super) fn requirements(&self, revision: &str) -> anyhow::Result<Requirements> {
        let path = self.directory.join(SUITE).join("requirements").join(format!("{revision}.yaml"));
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Ok(Requirements::parse(&text))
    }

    /// Runs its program to the end. What it says goes to the end of the log.
    pub(super) fn run(&self, arguments: &[&str], log: &Path) -> anyhow::Result<ExitStatus> {
        let open = || File::options().create(true).append(true).open(log);
        let open = || open().with_context(|| format!("opening {}", log.display()));
        let mut node = Command::new(&self.node);
        node.arg(self.directory.join(SUITE).join("dist/index.js")).args(arguments);
        let mut child =
            node.stdin(Stdio::null()).stdout(open()?).stderr(open()?).spawn().context("running the suite")?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(ended) = child.try_wait().context("waiting for the suite")? {
                return Ok(ended);
            }
            thread::sleep(Duration::from_millis(50));
        }
        child.kill().and_then(|()| child.wait()).context("ending the suite")?;
        bail!("the suite does not end within {} s; see {}", PATIENCE.as_secs(), log.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_out_of_reach_are_told_from_a_list_that_cannot_be_installed() {
        let said = "npm error code ECONNREFUSED\nnpm error syscall connect";
        assert!(out_of_reach(said).is_ok_and(|why| why.ends_with("ECONNREFUSED")));
        assert!(out_of_reach("npm error code EINTEGRITY\nnpm error wanted sha512").is_err());
        assert!(out_of_reach("npm error code ETARGET\nnpm error notarget No matching version").is_err());
    }

    #[test]
    fn the_major_version_of_node_is_read() {
        assert_eq!(major("v22.23.3\n"), Some(22));
        assert_eq!(major("v8.0.0"), Some(8));
        assert_eq!(major(""), None);
    }
}
