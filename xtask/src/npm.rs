//! Installs npm packages in the exact versions of a lock file into a separate directory, with a
//! Node that can run them. Nothing else on the machine changes.
//!
//! Without npm there are no packages; the caller is told the reason and skips its task.

use crate::place::Place;
use crate::reach::Reach;
use anyhow::{Context as _, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PARTS: [&str; 2] = ["package.json", "package-lock.json"];
/// The oldest Node that runs these packages.
const OLDEST: u32 = 22;

/// The result of installing packages.
pub(crate) enum Fetched {
    /// The packages are installed.
    Here(Packages),
    /// The packages are not available, for this reason.
    OutOfReach(String),
}

/// The installed packages.
pub(crate) struct Packages {
    node: PathBuf,
    directory: PathBuf,
}

impl Packages {
    /// Returns a Node that can run the packages.
    pub(crate) fn node(&self) -> &Path {
        &self.node
    }

    /// Returns the directory with `node_modules`: scripts in it can import the packages.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// The Node that runs the packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    /// The Node of the machine.
    Machines,
    /// A Node from npm, because that of the machine is too old.
    Npms,
    /// None: the packages are programs.
    Unneeded,
}

/// Installs the packages of `sources`, a folder of the repository, into `directory`. Installs again
/// only if the lists change.
pub(crate) fn fetch(place: &Place, sources: &str, directory: PathBuf) -> anyhow::Result<Fetched> {
    let node = match version_here() {
        Some(version) if version >= OLDEST => Node::Machines,
        Some(_) => Node::Npms,
        None => {
            return Ok(Fetched::OutOfReach("node cannot be started, and npm needs it".to_owned()));
        }
    };
    if let Some(reason) = install_changed(place, sources, &directory, node)? {
        return Ok(Fetched::OutOfReach(reason));
    }
    let node = match node {
        Node::Npms => npms(&directory)?,
        Node::Machines | Node::Unneeded => PathBuf::from("node"),
    };
    Ok(Fetched::Here(Packages { node, directory }))
}

/// Installs packages that are programs and need no Node to run. Returns the reason if they are not
/// available.
pub(crate) fn fetch_programs(
    place: &Place,
    sources: &str,
    directory: &Path,
) -> anyhow::Result<Option<String>> {
    install_changed(place, sources, directory, Node::Unneeded)
}

/// Installs packages unless the same ones are installed. Returns the reason if they are not
/// available.
fn install_changed(
    place: &Place,
    sources: &str,
    directory: &Path,
    node: Node,
) -> anyhow::Result<Option<String>> {
    let sources = place.root.join(sources);
    let (stamp, wanted) = (directory.join("stamp"), ingredients(&sources, node)?);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(None);
    }
    let reason = install(&sources, directory, node)?;
    if reason.is_none() {
        fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    }
    Ok(reason)
}

fn npms(directory: &Path) -> anyhow::Result<PathBuf> {
    let node = directory.join("node_modules/.bin/node");
    ensure!(
        node.is_file(),
        "Node {OLDEST} or later is needed, and npm has none for this system: install one"
    );
    Ok(node)
}

/// Returns the major version of the machine's Node.
fn version_here() -> Option<u32> {
    let output = Command::new("node").arg("--version").stdin(Stdio::null()).output().ok()?;
    major(&String::from_utf8_lossy(&output.stdout))
}

fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Returns everything that the installation depends on, as one text.
fn ingredients(sources: &Path, node: Node) -> anyhow::Result<String> {
    let mut text = format!("{node:?}\n");
    for part in PARTS {
        let path = sources.join(part);
        text +=
            &fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    }
    Ok(text)
}

/// Installs the packages. Returns the reason if they are not reachable.
fn install(sources: &Path, directory: &Path, node: Node) -> anyhow::Result<Option<String>> {
    if directory.exists() {
        fs::remove_dir_all(directory)
            .with_context(|| format!("removing {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    for part in PARTS {
        let from = sources.join(part);
        fs::copy(&from, directory.join(part))
            .with_context(|| format!("copying {}", from.display()))?;
    }
    let mut npm = Command::new("npm");
    // Without install scripts, so that the installation runs no third-party code.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    if node == Node::Machines {
        npm.arg("--omit=optional");
    }
    match npm.current_dir(directory).stdin(Stdio::null()).output() {
        Err(error) => Ok(Some(format!("npm cannot be started: {error}"))),
        Ok(output) if output.status.success() => Ok(None),
        Ok(output) => REACH.reason(&String::from_utf8_lossy(&output.stderr)).map(Some),
    }
}

/// The messages of npm about an unreachable registry.
const REACH: Reach = Reach {
    signs: &[
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "EIDLETIMEOUT",
        "ENETUNREACH",
        "ENOTFOUND",
        "ERR_SOCKET_TIMEOUT",
        "ETIMEDOUT",
    ],
    out_of_reach: "npm's registry is out of reach",
    no_good: "npm cannot install the listed packages",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_packages_differ_from_an_invalid_list() {
        let said = "npm error code ECONNREFUSED\nnpm error syscall connect";
        assert!(REACH.reason(said).is_ok_and(|why| why.ends_with("ECONNREFUSED")));
        assert!(REACH.reason("npm error code EINTEGRITY\nnpm error wanted sha512").is_err());
        assert!(
            REACH.reason("npm error code ETARGET\nnpm error notarget No matching version").is_err()
        );
    }

    #[test]
    fn node_major_version_is_read() {
        assert_eq!(major("v22.23.3\n"), Some(22));
        assert_eq!(major("v8.0.0"), Some(8));
        assert_eq!(major(""), None);
    }
}
