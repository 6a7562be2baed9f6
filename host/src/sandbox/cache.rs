//! What is known of plugins from earlier runs, on disk: their compiled code, and what they said of themselves. Private, keyed by content and engine, and
//! authenticated, since loading code is running it.

mod about;
mod entry;
mod identity;
mod private;

pub(super) use about::About;
pub(crate) use identity::Identity;

use crate::tool::Digest;
use entry::{Entry, Key};
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Where compiled code is kept between runs.
#[derive(Clone, Debug, Default)]
pub struct Cache(Option<Arc<Opened>>);

#[derive(Debug)]
struct Opened {
    dir: PathBuf,
    key: Key,
}

/// A cache directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use `{}` as the cache of compiled code: {reason}; set another with `PALISADE_CACHE`, or delete it", path.display())]
pub struct CacheError {
    path: PathBuf,
    reason: String,
    kind: Option<io::ErrorKind>,
}

impl CacheError {
    /// Whether nothing can be written there, and nothing else is wrong with it: that costs time only, and can change any day.
    #[must_use]
    pub fn is_unwritable(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        matches!(self.kind, Some(PermissionDenied | ReadOnlyFilesystem | StorageFull | QuotaExceeded))
    }
}

impl Cache {
    /// Keeps nothing: every start compiles.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// Opens, and if need be makes, a cache directory.
    ///
    /// # Errors
    ///
    /// [`CacheError`] where it cannot be made, belongs to somebody else, or others can write to it.
    pub fn open(dir: &Path) -> Result<Self, CacheError> {
        let unsafe_there = |reason: String| CacheError { path: dir.to_owned(), reason, kind: None };
        let failed =
            |error: io::Error| CacheError { path: dir.to_owned(), reason: error.to_string(), kind: Some(error.kind()) };
        private::make(dir).map_err(failed)?;
        private::check(dir).map_err(unsafe_there)?;
        let key = private::key(dir).map_err(failed)?;
        Ok(Self(Some(Arc::new(Opened { dir: dir.to_owned(), key }))))
    }

    /// The directory, if there is one.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        self.0.as_ref().map(|opened| opened.dir.as_path())
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
            private::clear_abandoned(&opened.dir);
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

    /// The digest of a file that has been hashed before and is untouched since, as far as its file system tells.
    pub(crate) fn digest_of(&self, identity: &Identity) -> Option<Digest> {
        let opened = self.0.as_ref()?;
        identity.recognise(&opened.identity(identity).read().ok()?)
    }

    /// Remembers the digest of a file.
    pub(crate) fn remember(&self, identity: &Identity, digest: Digest) {
        if identity.is_settled() {
            self.keep("the digest of a file", |opened| opened.identity(identity).write(&identity.with(digest)));
        }
    }

    fn keep(&self, what: &str, write: impl FnOnce(&Opened) -> io::Result<()>) {
        let Some(opened) = &self.0 else { return };
        if let Err(error) = write(opened) {
            tracing::warn!("{what} was not cached in {}: {error}", opened.dir.display());
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
