//! A potential plugin: opened once, recognised from an earlier run if possible, otherwise read,
//! hashed and prepared.

mod error;

pub(super) use error::{CandidateError, Lacks};

use super::file_name::{LONGEST_NAME, check_name, name_of_file};
use crate::execution::account::DescriptionTerms;
use crate::sandbox::{
    ByteSource, Cache, Freshness, Identity, PastCompilation, Prepared, Sandbox, Trust, World,
    limits,
};
use crate::tool::Digest;
use crate::tool::text::elided;
use crate::workspace::{LastLink, open_regular};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A potential plugin.
#[derive(Clone)]
pub(super) enum Candidate {
    Shipped(&'static palisade_plugins::Plugin),
    /// A file, with the world that it is expected to have.
    File(PathBuf, World),
}

/// Says whether bytes of this digest may describe themselves, before anything of them runs, and how
/// their description counts.
pub(super) type BytesCheck<'a> = dyn Fn(Digest) -> Result<DescriptionTerms, CandidateError> + 'a;

/// The result of looking a candidate up in the cache.
pub(super) enum CacheLookup {
    /// The plugin is compiled and described.
    Ready(Arc<Prepared>),
    /// The plugin is described. A call waits until it is compiled.
    Described(Arc<Prepared>, Effort),
    /// The plugin has to be compiled and described.
    ToCompile(Effort),
}

/// The position of a candidate in the compilation order. Those that an earlier run did not finish
/// come last, and the others by size, because large ones may take long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Effort {
    past: PastCompilation,
    size: u64,
}

impl Effort {
    /// Returns true if an earlier run tried to compile it and did not finish.
    pub(super) fn goes_last(self) -> bool {
        self.past == PastCompilation::Unfinished
    }
}

/// The bytes of a file at the time of a scan.
#[derive(Debug, Clone)]
pub(super) struct FileDigest {
    pub(super) identity: Option<Identity>,
    pub(super) digest: Digest,
}

impl FileDigest {
    /// Returns true if the file is unchanged and any write since would have been noticed.
    fn holds(&self, now: Option<&Identity>) -> bool {
        self.identity
            .as_ref()
            .zip(now)
            .is_some_and(|(then, now)| then.is_still(now) && then.is_settled())
    }
}

/// An opened candidate, so that the same bytes are checked, hashed and compiled.
enum Opened<'a> {
    Shipped(&'static palisade_plugins::Plugin),
    File { file: File, path: &'a Path },
}

impl Candidate {
    /// Returns the candidate of a file that is expected to be a plugin of the contract.
    pub(super) fn plugin(path: PathBuf) -> Self {
        Self::File(path, World::Tool)
    }

    /// Returns the plugin's name.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Shipped(plugin) => plugin.name.to_owned(),
            Self::File(path, _) => elided(&name_of_file(path), LONGEST_NAME),
        }
    }

    /// Returns the plugin's location in printable form.
    pub(super) fn file(&self) -> String {
        match self {
            Self::Shipped(plugin) => format!("shipped:{}", plugin.file),
            Self::File(path, _) => elided(&path.to_string_lossy(), 512),
        }
    }

    /// Returns the plugin's file, if it has one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Shipped(_) => None,
            Self::File(path, _) => Some(path),
        }
    }

    /// Returns true if the plugin is shipped with the host.
    pub(super) fn is_shipped(&self) -> bool {
        matches!(self, Self::Shipped(_))
    }

    /// Looks the candidate up in the cache. The error says why it is not a plugin, or why its bytes
    /// may not describe themselves.
    pub(super) fn look_up(
        &self,
        sandbox: &Sandbox,
        check_bytes: &BytesCheck<'_>,
    ) -> Result<CacheLookup, CandidateError> {
        let opened = self.open()?;
        let identity = opened.identity();
        if let Some(digest) = opened.known(identity.as_ref(), sandbox.cache()) {
            // If its code is not cached, the file is read again only when it is compiled.
            let terms = check_bytes(digest)?;
            return self.ready_or_to_compile(digest, opened.size()?, terms, sandbox);
        }
        let bytes = opened.bytes()?;
        // The check runs before the digest is remembered, so that a file which is not a plugin is
        // never recognised by its identity.
        sandbox.check(&bytes).map_err(|refused| refused.to_string())?;
        let digest = Digest::of(&bytes);
        if let Some(before) = &identity
            && let Some(after) = opened.identity()
        {
            sandbox.cache().remember(before, &after, digest);
        }
        let terms = check_bytes(digest)?;
        self.ready_or_to_compile(digest, bytes.len() as u64, terms, sandbox)
    }

    fn ready_or_to_compile(
        &self,
        digest: Digest,
        size: u64,
        terms: DescriptionTerms,
        sandbox: &Sandbox,
    ) -> Result<CacheLookup, CandidateError> {
        let described = self.prepare_embedded(digest, sandbox);
        let known = described.or_else(|| self.prepare_cached(digest, terms, sandbox));
        if let Some(prepared) = &known
            && prepared.freshness() == Freshness::Cached
        {
            return Ok(CacheLookup::Ready(prepared.clone()));
        }
        let past = sandbox
            .past_compilation(digest, self.trust())
            .map_err(|refused| CandidateError::new(&refused, digest))?;
        let effort = Effort { past, size };
        Ok(match known {
            Some(prepared) => CacheLookup::Described(prepared, effort),
            None => CacheLookup::ToCompile(effort),
        })
    }

    /// Returns a shipped plugin with the description that the program has of it.
    fn prepare_embedded(&self, digest: Digest, sandbox: &Sandbox) -> Option<Arc<Prepared>> {
        match self {
            Self::Shipped(plugin) => {
                sandbox.prepare_embedded(digest, plugin.description, self.source())
            }
            Self::File(..) => None,
        }
    }

    /// Compiles the candidate. The error says why it is not a plugin.
    pub(super) fn prepare(
        &self,
        sandbox: &Sandbox,
        cancel: &CancellationToken,
        check_bytes: &BytesCheck<'_>,
    ) -> Result<Arc<Prepared>, CandidateError> {
        let bytes = self.open()?.bytes()?;
        let digest = Digest::of(&bytes);
        let terms = check_bytes(digest)?;
        let prepared = sandbox.prepare_hashed(&bytes, digest, self.source(), terms, cancel);
        prepared.map_err(|refused| CandidateError::new(&refused, digest))
    }

    /// Returns the candidate's current digest. The file is read only if neither the last scan nor
    /// the cache vouches for it.
    pub(super) fn file_digest(
        &self,
        cache: &Cache,
        last: Option<&FileDigest>,
    ) -> Result<FileDigest, String> {
        let opened = self.open()?;
        let identity = opened.identity();
        if let Some(last) = last.filter(|last| last.holds(identity.as_ref())) {
            return Ok(last.clone());
        }
        let digest = match opened.known(identity.as_ref(), cache) {
            Some(digest) => digest,
            None => Digest::of(&opened.bytes()?),
        };
        Ok(FileDigest { identity, digest })
    }

    /// Returns the plugin of this digest if it is in the cache.
    pub(super) fn prepare_cached(
        &self,
        digest: Digest,
        terms: DescriptionTerms,
        sandbox: &Sandbox,
    ) -> Option<Arc<Prepared>> {
        sandbox.prepare_cached(digest, self.source(), terms)
    }

    /// Returns the source of the bytes for later compilations.
    fn source(&self) -> ByteSource {
        let again = self.clone();
        ByteSource {
            bytes: Box::new(move || again.open()?.bytes()),
            trust: self.trust(),
            world: self.world(),
        }
    }

    /// Returns the world that the candidate is expected to have.
    fn world(&self) -> World {
        match self {
            Self::Shipped(_) => World::Tool,
            Self::File(_, world) => world.clone(),
        }
    }

    /// Returns the trust in the candidate's bytes.
    fn trust(&self) -> Trust {
        match self {
            Self::Shipped(_) => Trust::Embedded,
            Self::File(..) => Trust::Untrusted,
        }
    }

    /// Opens the candidate. Only regular files are accepted, so that a pipe cannot block.
    fn open(&self) -> Result<Opened<'_>, String> {
        match self {
            Self::Shipped(plugin) => Ok(Opened::Shipped(plugin)),
            Self::File(path, _) => {
                check_name(&name_of_file(path))?;
                let file =
                    open_regular(path, LastLink::Follow).map_err(|error| unreadable(&error))?;
                Ok(Opened::File { file, path })
            }
        }
    }
}

impl Opened<'_> {
    /// Returns the digest if it is known without reading the file.
    fn known(&self, identity: Option<&Identity>, cache: &Cache) -> Option<Digest> {
        match self {
            Self::Shipped(plugin) => Some(Digest::from_bytes(plugin.digest)),
            Self::File { .. } => cache.digest_of(identity?),
        }
    }

    fn identity(&self) -> Option<Identity> {
        match self {
            Self::Shipped(_) => None,
            Self::File { file, path } => Identity::new(path, file),
        }
    }

    /// Returns the size in bytes.
    fn size(&self) -> Result<u64, String> {
        match self {
            Self::Shipped(_) => Ok(0),
            Self::File { file, .. } => {
                file.metadata().map(|meta| meta.len()).map_err(|error| unreadable(&error))
            }
        }
    }

    /// Returns the bytes, at most as many as a component may have.
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
        return Err(format!(
            "it is {size} bytes large; at most {} are accepted",
            limits::COMPONENT
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    (&mut &*file)
        .take(limits::COMPONENT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    let after = file.metadata().map_err(|error| unreadable(&error))?;
    if (size, before.modified().ok()) != (after.len(), after.modified().ok()) {
        return Err("it was written while it was read; put finished files there, by renaming them"
            .to_owned());
    }
    Ok(bytes)
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_reused_only_for_an_unchanged_settled_file() {
        let Some((fresh, settled, other)) = crate::sandbox::identities() else { return };
        let file_digest = |identity: &Identity| FileDigest {
            identity: Some(identity.clone()),
            digest: Digest::of(b"plugin"),
        };
        assert!(file_digest(&settled).holds(Some(&settled)));
        assert!(!file_digest(&fresh).holds(Some(&fresh)), "a change since may not show");
        assert!(!file_digest(&settled).holds(Some(&other)), "it is another file by now");
        assert!(!file_digest(&settled).holds(None));
        assert!(
            !FileDigest { identity: None, digest: Digest::of(b"plugin") }.holds(Some(&settled))
        );
    }

    #[test]
    fn previously_failed_files_go_last_and_small_ones_first() {
        let effort = |past, size| Effort { past, size };
        let mut all = [
            effort(PastCompilation::Unfinished, 1),
            effort(PastCompilation::None, 300),
            effort(PastCompilation::Unfinished, 200),
            effort(PastCompilation::None, 20),
        ];
        all.sort_unstable();
        let sizes: Vec<u64> = all.iter().map(|effort| effort.size).collect();
        assert_eq!(sizes, [20, 300, 1, 200]);
    }
}
