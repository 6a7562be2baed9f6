//! What is known of plugins from earlier runs, on disk: their compiled code, and what they said of themselves. Private, keyed by content and engine, and
//! authenticated, since loading code is running it.

mod about;
mod entry;
mod identity;
mod private;
#[cfg(all(test, unix))]
mod tests;
mod verdict;
#[cfg(unix)]
mod walk;

pub(super) use about::About;
#[cfg(all(test, unix))]
pub(crate) use identity::identities;
pub(crate) use identity::{Identity, has_settled};

use super::compile::{CompileError, CompileLimits};
use crate::tool::Digest;
use crate::workspace::Workspace;
use entry::{Entry, Key};
use private::{Obstacle, Private};
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use verdict::Verdict;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Where compiled code is kept between runs.
#[derive(Clone, Debug, Default)]
pub struct Cache(Option<Arc<Opened>>);

#[derive(Debug)]
struct Opened {
    /// For messages, and for the rules of workspaces.
    path: PathBuf,
    dir: Private,
    key: Key,
}

/// A cache directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use `{}` as the cache of compiled code: {reason}; set another with `PALISADE_CACHE`{}", path.display(), remedy.text())]
pub struct CacheError {
    path: PathBuf,
    reason: String,
    fault: Fault,
    remedy: Remedy,
}

/// What else helps than another directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// To delete the directory: it is a cache of this program, so that only time is lost.
    Delete,
    /// Nothing: the directory may hold what its user needs.
    None,
}

impl Remedy {
    fn at(path: &Path) -> Self {
        if private::is_cache(path) { Self::Delete } else { Self::None }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Delete => ", or delete it",
            Self::None => "",
        }
    }
}

/// What kind of fault a cache directory has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The system refused an operation on it.
    System(io::ErrorKind),
    /// Other users could reach it or replace it.
    Unsafe,
    /// It lies in the workspace.
    Inside,
}

impl CacheError {
    /// Whether nothing can be written there, and nothing else is wrong with it: that costs time only, and can change any day.
    #[must_use]
    pub fn is_unwritable(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        matches!(self.fault, Fault::System(PermissionDenied | ReadOnlyFilesystem | StorageFull | QuotaExceeded))
    }

    /// Whether it lies in the workspace, where tools could reach it.
    pub(crate) fn is_inside(&self) -> bool {
        self.fault == Fault::Inside
    }

    fn new(path: &Path, obstacle: Obstacle) -> Self {
        let (reason, fault) = match obstacle {
            Obstacle::System(error) => (error.to_string(), Fault::System(error.kind())),
            Obstacle::Unsafe(reason) => (reason, Fault::Unsafe),
            Obstacle::Inside => ("it lies in the workspace".to_owned(), Fault::Inside),
        };
        Self { path: path.to_owned(), reason, fault, remedy: Remedy::at(path) }
    }
}

impl Cache {
    /// Keeps nothing: every start compiles.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// Opens, and if need be makes, a cache directory. It is used by this handle from then on, whatever becomes of its path.
    ///
    /// # Errors
    ///
    /// [`CacheError`] where it cannot be made, holds what is no cache's, belongs to another user, or others can write to it or to a directory on the way to it.
    /// A sticky directory of root's, such as `/tmp`, may stand on the way.
    pub fn open(dir: &Path) -> Result<Self, CacheError> {
        Self::open_and(dir, None, |_| Ok(()))
    }

    /// As [`open`](Self::open), where the directory does not lie in this workspace. Shows where the directory lies, without links,
    /// as soon as it is known to be usable, before there is a key in it.
    pub(crate) fn open_and(
        path: &Path,
        workspace: Option<&Workspace>,
        before_key: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Self, CacheError> {
        let failed = |obstacle| CacheError::new(path, obstacle);
        let dir = Private::open(path, workspace).map_err(failed)?;
        dir.check_content().map_err(failed)?;
        before_key(dir.real()).map_err(Obstacle::System).map_err(failed)?;
        let key = dir.key().map_err(Obstacle::System).map_err(failed)?;
        Ok(Self(Some(Arc::new(Opened { path: path.to_owned(), dir, key }))))
    }

    /// The directory, if there is one.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        self.0.as_ref().map(|opened| opened.path.as_path())
    }

    /// The compiled form of a component, if it is there, whole, and of this very engine. Anything else counts as absent.
    pub(super) fn code(&self, engine: &Engine, digest: Digest) -> Option<Component> {
        let opened = self.0.as_ref()?;
        let file = opened.code(engine, digest).checked_file().ok()?;
        deserialize(engine, &Code::Kept(&file)).ok()
    }

    /// Whether there is code, without looking into it.
    pub(super) fn has_code(&self, engine: &Engine, digest: Digest) -> bool {
        self.0.as_ref().is_some_and(|opened| opened.code(engine, digest).exists())
    }

    /// Keeps the compiled form of a component. A cache that cannot be written costs time, not the call: it is only logged.
    pub(super) fn keep_code(&self, engine: &Engine, digest: Digest, code: &[u8]) {
        self.keep("compiled code", |opened| {
            // Here, where seconds have just been spent: a start that finds everything compiled looks at no more than it needs.
            opened.dir.clear_abandoned();
            opened.code(engine, digest).write(code)
        });
    }

    /// What a plugin said of itself, if it is there, whole, and of this very engine and host.
    pub(super) fn about(&self, engine: &Engine, digest: Digest) -> Option<About> {
        let opened = self.0.as_ref()?;
        About::parse(&opened.about(engine, digest).read().ok()?)
    }

    /// Keeps what a plugin said of itself, once it has passed every check.
    pub(super) fn keep_about(&self, engine: &Engine, digest: Digest, about: &About) {
        self.keep("what a plugin said of itself", |opened| opened.about(engine, digest).write(&about.to_bytes()));
    }

    /// Notes that a component is being compiled: the note stays where the process ends before that does.
    pub(super) fn begin_compilation(&self, engine: &Engine, digest: Digest) {
        self.keep("that a plugin is being compiled", |opened| {
            opened.verdict(engine, digest).write(&Verdict::undone().to_bytes())
        });
    }

    /// Keeps how a compilation ended. Code speaks for itself; where nobody knows any more than before, no note is left.
    pub(super) fn end_compilation(&self, engine: &Engine, digest: Digest, end: Result<(), &CompileError>) {
        let Some(opened) = &self.0 else { return };
        let entry = opened.verdict(engine, digest);
        match end.err().and_then(Verdict::of) {
            Some(verdict) => self.keep("why a plugin does not compile", |_| entry.write(&verdict.to_bytes())),
            None => entry.remove(),
        }
    }

    /// What compiling a component within these limits has ended with before.
    pub(super) fn refusal(&self, engine: &Engine, digest: Digest, limits: CompileLimits) -> Option<CompileError> {
        self.verdict(engine, digest)?.holds_within(limits)
    }

    /// Whether compiling a component was begun before, and did not get done.
    pub(super) fn was_tried(&self, engine: &Engine, digest: Digest) -> bool {
        self.verdict(engine, digest).is_some()
    }

    fn verdict(&self, engine: &Engine, digest: Digest) -> Option<Verdict> {
        let opened = self.0.as_ref()?;
        Verdict::parse(&opened.verdict(engine, digest).read().ok()?)
    }

    /// The digest of a file that has been hashed before and is untouched since, as far as its file system tells.
    pub(crate) fn digest_of(&self, identity: &Identity) -> Option<Digest> {
        let opened = self.0.as_ref()?;
        identity.recognise(&opened.identity(identity).read().ok()?)
    }

    /// Remembers the digest of a file that was looked at before and after it was read: where nothing about it changed meanwhile, and a later change would show.
    pub(crate) fn remember(&self, before: &Identity, after: &Identity, digest: Digest) {
        if before.is_settled() && before.is_still(after) {
            self.keep("the digest of a file", |opened| opened.identity(before).write(&before.with(digest)));
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
    fn code(&self, engine: &Engine, digest: Digest) -> Entry<'_> {
        self.entry(format!("{}-{:016x}.code", digest.hex(), number(engine)))
    }

    fn about(&self, engine: &Engine, digest: Digest) -> Entry<'_> {
        self.entry(format!("{}-{:016x}.about", digest.hex(), number(engine)))
    }

    fn verdict(&self, engine: &Engine, digest: Digest) -> Entry<'_> {
        self.entry(format!("{}-{:016x}.verdict", digest.hex(), number(engine)))
    }

    fn identity(&self, identity: &Identity) -> Entry<'_> {
        self.entry(format!("{}.file", identity.place()))
    }

    fn entry(&self, name: String) -> Entry<'_> {
        Entry { dir: &self.dir, name, key: &self.key }
    }
}

/// A number for the engine's version and configuration: engines of one number load each other's code.
fn number(engine: &Engine) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

/// Where compiled code is that may be loaded.
pub(super) enum Code<'a> {
    /// A child of this process made it just now.
    Made(&'a [u8]),
    /// An entry of the cache that has just been checked.
    Kept(&'a File),
}

/// Loads compiled code. What lies in the cache is mapped, so that megabytes which a call does not need are never read.
#[allow(unsafe_code, reason = "deserialising is how compiled code is loaded; see the comment below")]
pub(super) fn deserialize(engine: &Engine, code: &Code<'_>) -> wasmtime::Result<Component> {
    // SAFETY: the bytes are what wasmtime serialised for an engine of this configuration. Either they came through a pipe that only a child of this process held,
    // which runs the program that its user named for this. Or the file carries a code made with a key that only this user can read, under a name that holds the
    // configuration and the component's digest, checked a moment ago through the same handle; it lies in a directory that only this user can write to, and this
    // program replaces entries as a whole and never changes one. wasmtime checks its own version and configuration again.
    unsafe {
        match code {
            Code::Made(bytes) => Component::deserialize(engine, bytes),
            Code::Kept(file) => Component::deserialize_file(engine, entry::path_of(file)?),
        }
    }
}
