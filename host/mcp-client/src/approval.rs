//! Approvals: which servers, with which words, a person has looked at and allowed.

use crate::name::ServerName;
use crate::offer::{MAX_WORDS, Offer, OfferedTool};
use crate::reach::Reach;
use palisade::internal::{PRIVATE_PREFIX, open_deciding_file};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The largest file of an approval, in bytes: the words, with JSON escapes.
const MAX_FILE: u64 = 8 * MAX_WORDS as u64;

/// The error of an approval that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// The file cannot be read.
    #[error("cannot read the approval `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the approval `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The approval of a server by a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Approval {
    /// There is none yet.
    Missing,
    /// The approved server was reached in another way.
    Elsewhere {
        /// The words that were approved there.
        offer: Offer,
    },
    /// These words are approved.
    Given(Offer),
}

impl Approval {
    /// Returns the words that were approved last, whether or not they still count.
    #[must_use]
    pub fn former(&self) -> Option<&Offer> {
        match self {
            Self::Missing => None,
            Self::Elsewhere { offer } | Self::Given(offer) => Some(offer),
        }
    }

    /// Returns the approved tools.
    pub(crate) fn tools(&self) -> &[OfferedTool] {
        match self {
            Self::Given(offer) => &offer.tools,
            Self::Missing | Self::Elsewhere { .. } => &[],
        }
    }
}

/// How an offer differs from the words that were approved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The tools that were not there.
    pub added: Vec<String>,
    /// The tools that are no longer there.
    pub removed: Vec<String>,
    /// The tools with other words.
    pub changed: Vec<String>,
}

impl Difference {
    /// Compares an offer with approved words.
    #[must_use]
    pub fn between(approved: &Offer, offer: &Offer) -> Self {
        let name = |tool: &OfferedTool| tool.name.clone();
        let mut difference = Self::default();
        for tool in &offer.tools {
            match approved.tool(&tool.name) {
                None => difference.added.push(name(tool)),
                Some(known) if known != tool => difference.changed.push(name(tool)),
                Some(_) => {}
            }
        }
        let gone = approved.tools.iter().filter(|tool| offer.tool(&tool.name).is_none());
        difference.removed = gone.map(name).collect();
        difference
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// The approvals of a user: a folder with one file for each server. No tool may write there.
#[derive(Debug, Clone)]
pub struct Approvals {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    reach: String,
    offer: Offer,
}

impl Approvals {
    /// Returns the approvals in a folder, which need not exist.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, server: &ServerName) -> PathBuf {
        self.folder.join(server.as_str()).with_extension("json")
    }

    /// Returns the approval of a server.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::Read`] if there is a file that is no approval. It counts as no approval,
    /// but the person should know.
    pub fn of(&self, server: &ServerName, reach: &Reach) -> Result<Approval, ApprovalError> {
        let path = self.file(server);
        let stored = match read(&path) {
            Ok(stored) => stored,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Approval::Missing),
            Err(source) => return Err(ApprovalError::Read { path, source }),
        };
        Ok(match stored.reach == reach.identity() {
            true => Approval::Given(stored.offer),
            false => Approval::Elsewhere { offer: stored.offer },
        })
    }

    /// Records that a person has approved the words of a server.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::Write`] if the file cannot be written.
    pub fn approve(
        &self,
        server: &ServerName,
        reach: &Reach,
        offer: Offer,
    ) -> Result<(), ApprovalError> {
        let path = self.file(server);
        let write = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let mut fresh =
                tempfile::Builder::new().prefix(PRIVATE_PREFIX).tempfile_in(&self.folder)?;
            let text = serde_json::to_vec(&Stored { reach: reach.identity(), offer })?;
            fresh.write_all(&text)?;
            fresh.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|source| ApprovalError::Write { path: path.clone(), source })
    }

    /// Removes the approval of a server. Returns false if there was none.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::Write`] if the file cannot be removed.
    pub fn revoke(&self, server: &ServerName) -> Result<bool, ApprovalError> {
        let path = self.file(server);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(ApprovalError::Write { path, source }),
        }
    }
}

fn read(path: &Path) -> io::Result<Stored> {
    let mut text = String::new();
    // A link may lead to a place in the reach of tools.
    let folder = path.parent().unwrap_or(path);
    for (place, what) in [(folder, "its folder"), (path, "it")] {
        if place.symlink_metadata()?.is_symlink() {
            let fault = format!("{what} is a symbolic link; put the original there");
            return Err(io::Error::other(fault));
        }
    }
    let file = open_deciding_file(path)?;
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::reach::ServerCommand;
    use serde_json::json;

    fn tool(name: &str, description: &str) -> OfferedTool {
        serde_json::from_value(
            json!({"name": name, "description": description, "input": {"type": "object"}}),
        )
        .unwrap()
    }

    fn offer(tools: &[(&str, &str)]) -> Offer {
        let tools = tools.iter().map(|(name, description)| tool(name, description)).collect();
        Offer { tools, ..Offer::default() }
    }

    #[test]
    fn approval_holds_for_one_way_to_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::in_folder(folder.path().join("new"));
        let name = ServerName::parse("git").unwrap();
        let reach = Reach::Command(ServerCommand::new("server"));
        let other = Reach::Command(ServerCommand::new("server").arguments(["--all"]));
        let words = offer(&[("status", "Says it.")]);
        assert_eq!(approvals.of(&name, &reach).unwrap(), Approval::Missing);
        approvals.approve(&name, &reach, words.clone()).unwrap();
        assert_eq!(approvals.of(&name, &reach).unwrap(), Approval::Given(words.clone()));
        let elsewhere = approvals.of(&name, &other).unwrap();
        assert_eq!(elsewhere, Approval::Elsewhere { offer: words });
        assert!(elsewhere.tools().is_empty());
        assert!(approvals.revoke(&name).unwrap());
        assert_eq!(approvals.of(&name, &reach).unwrap(), Approval::Missing);
        assert!(!approvals.revoke(&name).unwrap());
    }

    #[test]
    fn damaged_approval_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::in_folder(folder.path());
        let name = ServerName::parse("git").unwrap();
        let reach = Reach::Command(ServerCommand::new("server"));
        fs::write(folder.path().join("git.json"), "{\"reach\": 1}").unwrap();
        assert!(matches!(approvals.of(&name, &reach), Err(ApprovalError::Read { .. })));
    }

    #[test]
    fn difference_names_each_tool_that_differs() {
        let former = offer(&[("a", "A."), ("b", "B."), ("c", "C.")]);
        let now = offer(&[("a", "A."), ("b", "B!"), ("d", "D.")]);
        let difference = Difference::between(&former, &now);
        assert_eq!(difference.added, ["d"]);
        assert_eq!(difference.removed, ["c"]);
        assert_eq!(difference.changed, ["b"]);
        assert!(Difference::between(&former, &former).is_empty());
    }
}
