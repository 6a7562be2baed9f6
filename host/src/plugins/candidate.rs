//! Something that may be a plugin: opened once, recognised where an earlier run has seen it, and otherwise read, hashed and prepared.

use crate::sandbox::{Cache, Identity, Origin, PluginRefused, Prepared, Sandbox, Tried, Trust, limits};
use crate::tool::Digest;
use crate::tool::text::elided;
use crate::workspace::{LastLink, open_regular};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Something that may be a plugin.
#[derive(Clone)]
pub(super) enum Candidate {
    Shipped(&'static palisade_plugins::Plugin),
    File(PathBuf),
}

/// Why something is no plugin.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) reason: String,
    /// Of the bytes that were refused, where these are known.
    pub(super) digest: Option<Digest>,
}

impl Refused {
    fn of(refused: &PluginRefused, digest: Digest) -> Self {
        Self { reason: refused.to_string(), digest: Some(digest) }
    }
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self { reason, digest: None }
    }
}

/// What earlier runs know of it.
pub(super) enum Recalled {
    /// It is compiled and described.
    Ready(Arc<Prepared>),
    /// It has to be compiled.
    ToCompile(Effort),
}

/// When it is compiled, among others: those that are known to take long go last, and before them the smaller ones first, since of a large one nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Effort {
    tried: Tried,
    size: u64,
}

impl Effort {
    /// Whether an earlier run has tried to compile it, and did not get it done.
    pub(super) fn goes_last(self) -> bool {
        self.tried == Tried::Before
    }
}

/// Which bytes a file holds.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) identity: Option<Identity>,
    pub(super) digest: Digest,
}

impl Look {
    /// Whether another look found the same file, and nobody can have written to it since without that showing.
    fn holds(&self, now: Option<&Identity>) -> bool {
        self.identity.as_ref().zip(now).is_some_and(|(then, now)| then.is_still(now) && then.is_settled())
    }
}

/// The same, opened: what is looked at is what is hashed, and what is hashed is what is compiled.
enum Opened<'a> {
    Shipped(&'static palisade_plugins::Plugin),
    File { file: File, path: &'a Path },
}

impl Candidate {
    /// The plugin's name.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Shipped(plugin) => plugin.name.to_owned(),
            Self::File(path) => elided(&path.file_stem().unwrap_or_default().to_string_lossy(), 128),
        }
    }

    /// Where it lies.
    pub(super) fn file(&self) -> String {
        match self {
            Self::Shipped(plugin) => format!("shipped:{}", plugin.file),
            Self::File(path) => elided(&path.to_string_lossy(), 512),
        }
    }

    /// Its file, where it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Shipped(_) => None,
            Self::File(path) => Some(path),
        }
    }

    /// Whether it comes with the host.
    pub(super) fn is_shipped(&self) -> bool {
        matches!(self, Self::Shipped(_))
    }

    /// The plugin that it is, where an earlier run has compiled it, or why it is none.
    pub(super) fn recalled(&self, sandbox: &Sandbox) -> Result<Recalled, Refused> {
        let opened = self.open()?;
        let identity = opened.identity();
        if let Some(digest) = opened.known(identity.as_ref(), sandbox.cache()) {
            // Without its code it waits for whoever compiles: a start that does not need it does not read it again.
            return self.ready_or_to_compile(digest, opened.size()?, sandbox);
        }
        let bytes = opened.bytes()?;
        // What is no plugin at all is told at once, and never known by its file alone.
        sandbox.check(&bytes).map_err(|refused| refused.to_string())?;
        let digest = Digest::of(&bytes);
        if let (Some(before), Some(after)) = (&identity, opened.identity()) {
            sandbox.cache().remember(before, &after, digest);
        }
        self.ready_or_to_compile(digest, bytes.len() as u64, sandbox)
    }

    fn ready_or_to_compile(&self, digest: Digest, size: u64, sandbox: &Sandbox) -> Result<Recalled, Refused> {
        if let Some(prepared) = self.recall(digest, sandbox) {
            return Ok(Recalled::Ready(prepared));
        }
        let tried = sandbox.tried(digest, self.trust()).map_err(|refused| Refused::of(&refused, digest))?;
        Ok(Recalled::ToCompile(Effort { tried, size }))
    }

    /// The plugin that it is, compiled, or why it is none.
    pub(super) fn prepare(&self, sandbox: &Sandbox, given_up: &CancellationToken) -> Result<Arc<Prepared>, Refused> {
        let bytes = self.open()?.bytes()?;
        let digest = Digest::of(&bytes);
        let prepared = sandbox.prepare_hashed(&bytes, digest, self.trust(), given_up);
        prepared.map_err(|refused| Refused::of(&refused, digest))
    }

    /// Which bytes it holds now. They are read where nothing says that they are those of the last look, or of an earlier run.
    pub(super) fn look(&self, cache: &Cache, last: Option<&Look>) -> Result<Look, String> {
        let opened = self.open()?;
        let identity = opened.identity();
        if let Some(last) = last.filter(|last| last.holds(identity.as_ref())) {
            return Ok(last.clone());
        }
        let digest = match opened.known(identity.as_ref(), cache) {
            Some(digest) => digest,
            None => Digest::of(&opened.bytes()?),
        };
        Ok(Look { identity, digest })
    }

    /// The plugin of this digest, which it holds, if an earlier run has compiled that.
    pub(super) fn recall(&self, digest: Digest, sandbox: &Sandbox) -> Option<Arc<Prepared>> {
        let again = self.clone();
        let bytes = Box::new(move || again.open()?.bytes());
        sandbox.recall(digest, Origin { bytes, trust: self.trust() })
    }

    /// Whose word there is for its bytes.
    fn trust(&self) -> Trust {
        match self {
            Self::Shipped(_) => Trust::Embedded,
            Self::File(_) => Trust::Nobody,
        }
    }

    /// A file may be anything: this never waits on a pipe.
    fn open(&self) -> Result<Opened<'_>, String> {
        match self {
            Self::Shipped(plugin) => Ok(Opened::Shipped(plugin)),
            Self::File(path) => {
                let file = open_regular(path, LastLink::Follow).map_err(|error| unreadable(&error))?;
                Ok(Opened::File { file, path })
            }
        }
    }
}

impl Opened<'_> {
    /// Its digest, where it is known without reading it.
    fn known(&self, identity: Option<&Identity>, cache: &Cache) -> Option<Digest> {
        match self {
            Self::Shipped(plugin) => Some(Digest::from_bytes(plugin.digest)),
            Self::File { .. } => cache.digest_of(identity?),
        }
    }

    fn identity(&self) -> Option<Identity> {
        match self {
            Self::Shipped(_) => None,
            Self::File { file, path } => Identity::of(path, file),
        }
    }

    /// How large it is, in bytes.
    fn size(&self) -> Result<u64, String> {
        match self {
            Self::Shipped(_) => Ok(0),
            Self::File { file, .. } => file.metadata().map(|meta| meta.len()).map_err(|error| unreadable(&error)),
        }
    }

    /// Its bytes, never more than a component may have.
    fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Shipped(plugin) => Ok(plugin.bytes()),
            Self::File { file, .. } => read(file),
        }
    }
}

fn read(file: &File) -> Result<Vec<u8>, String> {
    let before = file.metadata().map_err(|error| unreadable(&error))?;
    let size = before.len();
    if size > limits::COMPONENT {
        return Err(format!("it is {size} bytes large; at most {} are accepted", limits::COMPONENT));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    (&mut &*file).take(limits::COMPONENT + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    let after = file.metadata().map_err(|error| unreadable(&error))?;
    if (size, before.modified().ok()) != (after.len(), after.modified().ok()) {
        return Err("it was written while it was read; put finished files there, by renaming them".to_owned());
    }
    Ok(bytes)
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_trusted_later_only_where_the_file_had_settled_and_nothing_about_it_changed() {
        let Some((fresh, settled, other)) = crate::sandbox::identities() else { return };
        let look = |identity: &Identity| Look { identity: Some(identity.clone()), digest: Digest::of(b"plugin") };
        assert!(look(&settled).holds(Some(&settled)));
        assert!(!look(&fresh).holds(Some(&fresh)), "a change since may not show");
        assert!(!look(&settled).holds(Some(&other)), "it is another file by now");
        assert!(!look(&settled).holds(None));
        assert!(!Look { identity: None, digest: Digest::of(b"plugin") }.holds(Some(&settled)));
    }

    #[test]
    fn what_was_tried_before_goes_last_and_small_files_come_before_large_ones() {
        let effort = |tried, size| Effort { tried, size };
        let mut all =
            [effort(Tried::Before, 1), effort(Tried::Never, 300), effort(Tried::Before, 200), effort(Tried::Never, 20)];
        all.sort_unstable();
        let sizes: Vec<u64> = all.iter().map(|effort| effort.size).collect();
        assert_eq!(sizes, [20, 300, 1, 200]);
    }
}
