//! The review of a plugin by a person: what it is, how it differs from the approved one, and what
//! forbids to approve it.

use crate::difference::{Difference, Present};
use crate::lock::{Change, Entry, Locator, Lock, LockError, State, ToolEntry, falls_below};
use crate::lock::{installed_file, keep_words, kept_words};
use crate::locked::LockedPlugins;
use crate::signature::{Keys, SignatureError, Signer, Verified, signature_file};
use crate::version::version_of;
use crate::words::Words;
use palisade::internal::open_regular;
use palisade::plugins::Plugin;
use palisade::sandbox::{World, limits};
use palisade::tool::Digest;
use palisade::tool::text::elided;
use palisade::workspace::LastLink;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The interface of a plugin of the contract.
const CONTRACT: &str = "palisade:tool@0.1.0";
/// The interface of a component of another world.
const OTHER_WORLD: &str = "another world";

/// A plugin that a person looks at.
#[derive(Debug)]
#[non_exhaustive]
pub struct Review {
    /// The entry that an approval would write.
    pub entry: Entry,
    /// The words of the plugin.
    pub words: Words,
    /// The state of the plugin.
    pub state: State,
    /// The version of these bytes, if they name one. The entry has the highest that was approved.
    pub version: Option<String>,
    /// The result of verifying the signature.
    pub signature: Result<Verified, SignatureError>,
    /// The approval of the plugin so far.
    pub former: Option<Entry>,
    /// The approved words, if they were kept.
    pub former_words: Option<Words>,
    /// The lock of the project, if that refuses the plugin, whatever the user approves.
    pub project: Option<PathBuf>,
}

/// A reason that forbids to approve a plugin like any other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// The signature is missing or refused.
    #[error("{0}")]
    Signature(#[from] SignatureError),
    /// The approved bytes were signed with another key.
    #[error(
        "the approved version was signed with {before}, and this one {}",
        .now.as_ref().map_or("has no verified signature".to_owned(), |key| format!("with {key}"))
    )]
    NewSigner {
        /// The key of the approved bytes.
        before: Signer,
        /// The key of these bytes, if their signature was verified.
        now: Option<Signer>,
    },
    /// The bytes are those of another approved plugin, of this name: two files may have been
    /// swapped.
    #[error("its bytes are those of `{}`, another plugin", elided(.0, 80))]
    BytesOf(String),
    /// The approval was revoked, or the bytes were. The field is the state that says so.
    #[error("{}", .0.in_words())]
    Revoked(State),
    /// The user has approved it, and the lock of the project refuses it.
    #[error(
        "you have approved it, and the lock of the project, `{}`, refuses these bytes; install the \
         file that it names, or change that lock",
        .0.display()
    )]
    Project(PathBuf),
    /// The plugin does not follow one that was approved: it is older, or has no version that could
    /// be compared.
    #[error("this is {now}, and {highest} was approved before")]
    Rollback {
        /// This version, or a description of the file.
        now: String,
        /// The highest version that was approved, or `a later file`.
        highest: String,
    },
}

/// The reason why a plugin cannot be reviewed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// The file cannot be read.
    #[error("cannot read the plugin: {0}")]
    Read(#[from] io::Error),
    /// The file has changed since it described itself.
    #[error("the file has changed while it was looked at; look again")]
    Replaced,
    /// The file of an installed plugin has other bytes than its name says.
    #[error(
        "its file was changed after it was installed; `palisade update` or `palisade add` fetches it again"
    )]
    OtherBytes,
    /// The plugin comes with the host and needs no approval.
    #[error("the plugin comes with the host, and needs no approval")]
    Shipped,
}

impl Review {
    /// Reads the file of a plugin that a host has loaded or found, and verifies its signature.
    ///
    /// # Errors
    ///
    /// [`ReviewError`] if the file cannot be read, or has other bytes than those that the host has
    /// described.
    pub fn new(locked: &LockedPlugins, keys: &Keys, plugin: &Plugin) -> Result<Self, ReviewError> {
        let path = plugin.path().ok_or(ReviewError::Shipped)?;
        let bytes = read(path, limits::COMPONENT)?;
        // The approved bytes are the described bytes, and the signed bytes have to be the same.
        if Digest::of(&bytes) != plugin.digest() {
            return Err(ReviewError::Replaced);
        }
        let known_as = locked.source_of(plugin.name(), path);
        let incoming = locked.incoming_source(path);
        let source = incoming.map_or_else(|| known_as.clone(), str::to_owned);
        // A change of the folder removes every file that the lock does not name by its digest.
        let is_installed = source.contains("://");
        let file = installed_file(plugin.name(), plugin.digest());
        if is_installed && path.file_name().is_none_or(|name| *name != *file) {
            return Err(ReviewError::OtherBytes);
        }
        let signature_path = signature_file(path);
        let signature = match keys.of_source(&source).next() {
            Some(_) => signature_text(&signature_path),
            // Without a key the file decides nothing, and is not read.
            None => Ok(None),
        };
        let signature = signature
            .and_then(|text| keys.verify(&source, &bytes, text.as_deref(), &signature_path));
        let words = Words::new(plugin.definitions(), plugin.offer());
        let version = version_of(&bytes);
        let of = Locator { name: plugin.name(), source: &known_as };
        let former = locked.entry(of);
        // Only what fetches a file knows where it comes from.
        let is_other = former.as_ref().is_some_and(|former| former.digest != plugin.digest());
        if is_installed && is_other && incoming.is_none() {
            return Err(ReviewError::OtherBytes);
        }
        let same = former.as_ref().filter(|former| former.digest == plugin.digest());
        let resolved = same.and_then(|former| former.resolved.clone());
        let entry = Entry {
            name: plugin.name().to_owned(),
            source,
            resolved,
            digest: plugin.digest(),
            size: bytes.len() as u64,
            version_seen: version.clone(),
            wit: match plugin.world() {
                World::Tool => CONTRACT.to_owned(),
                World::Functions(_) => OTHER_WORLD.to_owned(),
            },
            describes: words.hash(),
            imports: plugin.imports().iter().map(|import| import.name.to_string()).collect(),
            signer: match &signature {
                Ok(Verified::By(signer)) => Some(signer.clone()),
                Ok(Verified::NoKey) | Err(_) => None,
            },
            approved: String::new(),
            revoked: None,
            earlier: Vec::new(),
            tools: words.tools.iter().map(ToolEntry::from).collect(),
        };
        let hash = former.as_ref().map(|entry| entry.describes);
        let former_words = hash.and_then(|hash| kept_words(locked.path()?, hash));
        let state = locked.state(plugin);
        let project = locked.refused_by_project(plugin).map(Path::to_owned);
        Ok(Self { entry, words, state, version, signature, former, former_words, project })
    }

    /// Returns what forbids to approve the plugin like any other.
    #[must_use]
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let mut obstacles: Vec<Obstacle> =
            self.signature.clone().err().map(Obstacle::Signature).into_iter().collect();
        let revoked = self.state.is_revoked().then(|| Obstacle::Revoked(self.state.clone()));
        obstacles.extend(revoked);
        let is_approved = self.state == State::Changed(vec![Change::Project]);
        obstacles.extend(self.project.clone().filter(|_| is_approved).map(Obstacle::Project));
        if let State::Changed(changes) = &self.state {
            obstacles.extend(changes.iter().find_map(|change| match change {
                Change::BytesOf(other) => Some(Obstacle::BytesOf(other.clone())),
                _ => None,
            }));
        }
        let Some(former) = &self.former else { return obstacles };
        if let Some(before) = former.signer.clone().filter(|_| former.signer != self.entry.signer) {
            obstacles.push(Obstacle::NewSigner { before, now: self.entry.signer.clone() });
        }
        match (self.version.as_deref(), former.version_seen.as_deref()) {
            (version, Some(highest)) if falls_below(version, highest) => {
                let now = version.unwrap_or("a file without a version").to_owned();
                obstacles.push(Obstacle::Rollback { now, highest: highest.to_owned() });
            }
            _ if former.earlier.contains(&self.entry.digest) => {
                let (now, highest) = ("an earlier file".to_owned(), "a later one".to_owned());
                obstacles.push(Obstacle::Rollback { now, highest });
            }
            _ => {}
        }
        obstacles
    }

    /// Returns the difference from the approved plugin, if there is one.
    #[must_use]
    pub fn difference(&self) -> Option<Difference> {
        let present = Present {
            digest: self.entry.digest,
            size: self.entry.size,
            version: self.version.as_deref(),
            imports: &self.entry.imports,
            signer: self.entry.signer.as_ref(),
            words: &self.words,
        };
        let former = self.former.as_ref()?;
        Some(Difference::new(former, self.former_words.as_ref(), &present))
    }

    /// Writes the approval into the user's lock, with the time of now, whatever the
    /// [`obstacles`](Self::obstacles) are: the person who was asked decides. The approval is for
    /// the bytes and words of this review, also if the file has changed since.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the lock cannot be read or replaced, or if the plugin was revoked since the
    /// review: that was decided later.
    pub fn approve(&self, lock: &Path) -> Result<(), LockError> {
        let approved = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let entry = Entry { approved, ..self.entry.clone() };
        let former = self.former.as_ref().filter(|former| former.source != entry.source);
        let known_as = self.former.as_ref().map_or(&entry.source, |former| &former.source).clone();
        let kept = Lock::update(lock, |lock| {
            let of = Locator { name: &entry.name, source: &known_as };
            let now = lock.judge_bytes(of, entry.digest);
            if now.is_revoked() && !self.state.is_revoked() {
                return Err(LockError::Revoked);
            }
            if let Some(Entry { name, source, .. }) = former {
                lock.move_source(Locator { name, source }, &entry.source);
            }
            lock.approve(entry);
            Ok(lock.clone())
        })??;
        // The approval holds without them: only a later difference could not quote the words.
        if let Err(error) = keep_words(lock, &kept, &self.words) {
            tracing::warn!("the approved words are not kept: {error}");
        }
        Ok(())
    }
}

/// Reads the file of a signature, if it exists. A file that is none is a problem of its plugin.
fn signature_text(path: &Path) -> Result<Option<String>, SignatureError> {
    match read(path, crate::signature::MAX_FILE as u64) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SignatureError::Malformed { reason: error.to_string() }),
    }
}

/// Reads a regular file of at most this size.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, LastLink::Follow)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}
