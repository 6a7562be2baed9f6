//! The on-disk cache of compiled code and plugin descriptions. The cache is private and
//! authenticated, because loading compiled code means running it. Its entries are named by content,
//! engine and version of the rewriting.

mod description_cache;
mod entry;
mod identity;
mod private;
#[cfg(test)]
mod tests;
mod usage;
mod verdict;

#[cfg(test)]
pub(crate) use identity::identities;
pub(crate) use identity::{Identity, has_settled};
pub use usage::CacheUsage;

use super::bulk_memory;
use super::compile::{CompileError, CompileLimits};
use super::description::Description;
use super::engine::CodeTier;
use crate::tool::Digest;
use crate::workspace::{Obstacle, Workspace};
use description_cache::CachedDescription;
use entry::Entry;
use private::{Key, PrivateDir};
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use verdict::Verdict;
use wasmtime::Engine;

/// The cache of compiled code between runs.
#[derive(Clone, Debug, Default)]
pub struct Cache(Option<Arc<Opened>>);

struct Opened {
    /// The path for messages and for the rules of workspaces.
    path: PathBuf,
    dir: PrivateDir,
    key: Key,
}

/// Leaves out the key: with it, other code could be passed off as that of a plugin.
impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The error of an unusable cache directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot use `{}` as the cache of compiled code: {reason}; set another (`CacheMode::Directory`, or `PALISADE_CACHE` of the program){}", path.display(), remedy.text())]
pub struct CacheError {
    path: PathBuf,
    reason: String,
    fault: Fault,
    remedy: Remedy,
}

/// A remedy in addition to another directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// Deletion of the directory: it is a cache of this program, so that only time is lost.
    Delete,
    /// None: the directory may hold files that its user needs.
    None,
}

impl Remedy {
    fn for_path(path: &Path) -> Self {
        if private::is_cache(path) { Self::Delete } else { Self::None }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Delete => ", or delete it",
            Self::None => "",
        }
    }
}

/// The kind of fault of a cache directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The system refused an operation on the directory.
    System(io::ErrorKind),
    /// Other users could reach or replace the directory, or it holds files of another kind.
    Unsafe,
    /// The directory is inside the workspace.
    Inside,
}

impl CacheError {
    /// Returns true if the only fault is that nothing can be written to the directory. Such a fault
    /// costs only time, and may be temporary.
    #[must_use]
    pub fn is_unwritable(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        matches!(
            self.fault,
            Fault::System(PermissionDenied | ReadOnlyFilesystem | StorageFull | QuotaExceeded)
        )
    }

    /// Returns true if the directory is inside the workspace, where tools could reach it.
    pub(crate) fn is_inside(&self) -> bool {
        self.fault == Fault::Inside
    }

    fn new(path: &Path, obstacle: Obstacle) -> Self {
        let (reason, fault) = match obstacle {
            Obstacle::System(error) => (error.to_string(), Fault::System(error.kind())),
            Obstacle::Unsafe(reason) => (reason, Fault::Unsafe),
            Obstacle::Inside => ("it lies in the workspace".to_owned(), Fault::Inside),
        };
        Self { path: path.to_owned(), reason, fault, remedy: Remedy::for_path(path) }
    }
}

impl Cache {
    /// Returns a cache that stores nothing, so that every start compiles.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// Opens a cache directory, and creates it if it is missing. The cache uses the open handle
    /// from then on, whatever happens to the path.
    ///
    /// # Errors
    ///
    /// Returns [`CacheError`] if the directory cannot be created, holds files of another kind,
    /// belongs to another user, or if others can write to it or to a directory on its path. A
    /// sticky directory owned by root, such as `/tmp`, is accepted on the path.
    pub fn open(dir: &Path) -> Result<Self, CacheError> {
        Self::open_and(dir, None, |_| Ok(()))
    }

    /// Opens a cache directory as [`open`](Self::open) does, unless it is inside `workspace`. Calls
    /// `before_key` with the resolved path once the directory is known to be usable, before a key
    /// is created in it.
    pub(crate) fn open_and(
        path: &Path,
        workspace: Option<&Workspace>,
        before_key: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Self, CacheError> {
        let failed = |obstacle| CacheError::new(path, obstacle);
        let dir = PrivateDir::open(path, workspace).map_err(failed)?;
        dir.check_content().map_err(failed)?;
        before_key(dir.real()).map_err(Obstacle::System).map_err(failed)?;
        let key = dir.key().map_err(Obstacle::System).map_err(failed)?;
        Ok(Self(Some(Arc::new(Opened { path: path.to_owned(), dir, key }))))
    }

    /// Returns the cache directory, if there is one.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        self.0.as_ref().map(|opened| opened.path.as_path())
    }

    /// Returns the size of the cache, which is zero if there is none.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn usage(&self) -> io::Result<CacheUsage> {
        self.0.as_ref().map_or(Ok(CacheUsage::default()), |opened| usage::usage(&opened.dir))
    }

    /// Removes all entries, and returns what was removed. The key stays, so that running programs
    /// can go on with the cache.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn clear(&self) -> io::Result<CacheUsage> {
        self.0.as_ref().map_or(Ok(CacheUsage::default()), |opened| usage::clear(&opened.dir))
    }

    /// Returns the file with the compiled code of a component, if the entry exists, is intact and
    /// belongs to this engine. Any other entry counts as absent.
    pub(crate) fn code(&self, engine: &Engine, digest: Digest, tier: CodeTier) -> Option<File> {
        self.0.as_ref()?.code(engine, digest, tier).checked_file().ok()
    }

    /// Returns true if an entry for code of this tier at least exists, without reading it.
    pub(crate) fn has_code(&self, engine: &Engine, digest: Digest, least: CodeTier) -> bool {
        self.0.as_ref().is_some_and(|opened| {
            least.and_above().any(|tier| opened.code(engine, digest, tier).exists())
        })
    }

    /// Stores the compiled code of a component, in place of code of a lower tier. A failed write
    /// costs time, not the call, so it is only logged.
    pub(crate) fn keep_code(&self, engine: &Engine, digest: Digest, tier: CodeTier, code: &[u8]) {
        self.keep("compiled code", |opened| {
            // Done here, after seconds of compilation, so that a start with a warm cache does not
            // pay for it.
            opened.dir.clear_abandoned();
            opened.code(engine, digest, tier).write(code)?;
            for lower in CodeTier::FASTEST_FIRST.into_iter().filter(|lower| *lower < tier) {
                opened.code(engine, digest, lower).remove();
            }
            usage::trim(&opened.dir, usage::BOUND)
        });
    }

    /// Returns the description of a plugin if the entry exists, is intact and belongs to this
    /// engine and this version of the host.
    pub(crate) fn description(&self, engine: &Engine, digest: Digest) -> Option<Description> {
        let opened = self.0.as_ref()?;
        CachedDescription::parse(&opened.description(engine, digest).read().ok()?)
    }

    /// Stores the description of a plugin, once it has passed every check.
    pub(crate) fn keep_description(
        &self,
        engine: &Engine,
        digest: Digest,
        description: &Description,
    ) {
        self.keep("what a plugin said of itself", |opened| {
            let cached = CachedDescription::new(description);
            opened.description(engine, digest).write(&cached.to_bytes())
        });
    }

    /// Records that a compilation begins. The record remains if the process ends first.
    pub(crate) fn begin_compilation(&self, engine: &Engine, digest: Digest, tier: CodeTier) {
        self.keep("that a plugin is being compiled", |opened| {
            opened.verdict(engine, digest, tier).write(&Verdict::unfinished().to_bytes())
        });
    }

    /// Records how a compilation ended. The record is removed after a success, where the code is
    /// stored instead, and after an error that says nothing about the component.
    pub(crate) fn end_compilation(
        &self,
        engine: &Engine,
        digest: Digest,
        tier: CodeTier,
        end: Result<(), &CompileError>,
    ) {
        let Some(opened) = &self.0 else { return };
        let entry = opened.verdict(engine, digest, tier);
        match end.err().and_then(Verdict::from_error) {
            Some(verdict) => {
                self.keep("why a plugin does not compile", |_| entry.write(&verdict.to_bytes()));
            }
            None => entry.remove(),
        }
    }

    /// Returns the error that an earlier compilation within these limits ended with.
    pub(crate) fn refusal(
        &self,
        engine: &Engine,
        digest: Digest,
        tier: CodeTier,
        limits: CompileLimits,
    ) -> Option<CompileError> {
        self.verdict(engine, digest, tier)?.error_within(limits)
    }

    /// Returns true if an earlier compilation failed or did not finish.
    pub(crate) fn has_verdict(&self, engine: &Engine, digest: Digest, tier: CodeTier) -> bool {
        self.verdict(engine, digest, tier).is_some()
    }

    fn verdict(&self, engine: &Engine, digest: Digest, tier: CodeTier) -> Option<Verdict> {
        let opened = self.0.as_ref()?;
        Verdict::parse(&opened.verdict(engine, digest, tier).read().ok()?)
    }

    /// Returns the digest of a file that was hashed before and has not changed since, according to
    /// its file system.
    pub(crate) fn digest_of(&self, identity: &Identity) -> Option<Digest> {
        let opened = self.0.as_ref()?;
        identity.recognise(&opened.identity(identity).read().ok()?)
    }

    /// Stores the digest of a file, given its identity before and after it was read. Stores nothing
    /// if the file changed meanwhile, or if a later change might not show in its times.
    pub(crate) fn remember(&self, before: &Identity, after: &Identity, digest: Digest) {
        if before.is_settled() && before.is_still(after) {
            self.keep("the digest of a file", |opened| {
                opened.identity(before).write(&before.to_entry(digest))
            });
        }
    }

    fn keep(&self, what: &str, write: impl FnOnce(&Opened) -> io::Result<()>) {
        let Some(opened) = &self.0 else { return };
        if let Err(error) = write(opened) {
            tracing::warn!("{what} was not cached in {}: {error}", opened.path.display());
        }
    }
}

impl Opened {
    fn code(&self, engine: &Engine, digest: Digest, tier: CodeTier) -> Entry<'_> {
        self.entry(format!("{}-{:016x}{}.code", digest.hex(), number(engine), mark(tier)))
    }

    fn description(&self, engine: &Engine, digest: Digest) -> Entry<'_> {
        self.entry(format!("{}-{:016x}.about", digest.hex(), number(engine)))
    }

    fn verdict(&self, engine: &Engine, digest: Digest, tier: CodeTier) -> Entry<'_> {
        self.entry(format!("{}-{:016x}{}.verdict", digest.hex(), number(engine), mark(tier)))
    }

    fn identity(&self, identity: &Identity) -> Entry<'_> {
        self.entry(format!("{}.file", identity.entry_name()))
    }

    fn entry(&self, name: String) -> Entry<'_> {
        Entry { dir: &self.dir, name, key: &self.key }
    }
}

/// Returns the mark of a tier in the names of entries.
fn mark(tier: CodeTier) -> &'static str {
    match tier {
        CodeTier::Baseline => ".baseline",
        CodeTier::Optimized => "",
    }
}

/// Returns a number for the engine's version and configuration, and for the version of what is done
/// to a component before its compilation. Hosts with the same number load each other's code.
fn number(engine: &Engine) -> u64 {
    number_with(engine, bulk_memory::VERSION)
}

fn number_with(engine: &Engine, rewriting: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    rewriting.hash(&mut hasher);
    hasher.finish()
}
