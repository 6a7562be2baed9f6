//! Compiled code on disk: private, keyed by content and engine, and authenticated, since loading it is running it.

use crate::tool::Digest;
use crate::workspace::{LastLink, open_regular};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wasmtime::Engine;
use wasmtime::component::Component;

/// The length of an authentication code, in bytes.
const TAG: usize = 32;
/// The length of the key, in bytes: one block of SHA-256.
const KEY: usize = 64;
/// The largest entry that is read back, in bytes: a Python plugin compiles to 34 MB.
const MAX_ENTRY: u64 = 512 << 20;

/// How the names of files begin that are being written.
const BEGUN: &str = ".tmp";
/// The age from which nobody is at work on them any more: the longest compilation takes minutes.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// Where compiled code is kept between runs.
#[derive(Clone, Debug, Default)]
pub struct Cache(Option<Arc<Opened>>);

#[derive(Debug)]
struct Opened {
    dir: PathBuf,
    key: [u8; KEY],
}

/// A cache directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use `{}` as the cache of compiled code: {reason}; set another with `PALISADE_CACHE`, or delete it", path.display())]
pub struct CacheError {
    path: PathBuf,
    reason: String,
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
        let fail = |reason: String| CacheError { path: dir.to_owned(), reason };
        make_private(dir).map_err(|error| fail(error.to_string()))?;
        check_private(dir).map_err(fail)?;
        let key = key(dir).map_err(|error| fail(error.to_string()))?;
        clear_abandoned(dir);
        Ok(Self(Some(Arc::new(Opened { dir: dir.to_owned(), key }))))
    }

    /// The directory, if there is one.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        self.0.as_ref().map(|opened| opened.dir.as_path())
    }

    /// The compiled form of a component, if it is there, whole, and of this very engine. Anything else counts as absent.
    pub(super) fn load(&self, engine: &Engine, digest: Digest) -> Option<Component> {
        let opened = self.0.as_ref()?;
        let name = entry_name(engine, digest);
        let entry = read_bounded(&opened.dir.join(&name)).ok()?;
        let (tag, code) = entry.split_at_checked(TAG)?;
        opened.mac(&name, code).verify_slice(tag).ok()?;
        deserialize(engine, code).ok()
    }

    /// Keeps the compiled form of a component. A cache that cannot be written costs time, not the call: it is only logged.
    pub(super) fn store(&self, engine: &Engine, digest: Digest, code: &[u8]) {
        let Some(opened) = &self.0 else { return };
        if let Err(error) = opened.store(&entry_name(engine, digest), code) {
            tracing::warn!("compiled code was not cached in {}: {error}", opened.dir.display());
        }
    }
}

impl Opened {
    fn store(&self, name: &str, code: &[u8]) -> io::Result<()> {
        let mut file = begin(&self.dir)?;
        file.write_all(&self.mac(name, code).finalize().into_bytes())?;
        file.write_all(code)?;
        file.persist(self.dir.join(name))?;
        Ok(())
    }

    /// The name is part of what is authenticated, so that entries cannot be swapped.
    fn mac(&self, name: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as Mac>::new(&self.key.into());
        mac.update(name.as_bytes());
        mac.update(&[0]);
        mac.update(code);
        mac
    }
}

/// Loads compiled code: out of the cache, once its authentication code is checked, or as a child of this process made it just now.
#[allow(unsafe_code, reason = "deserialising is how compiled code is loaded; see the comment below")]
pub(super) fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes are what wasmtime serialised for an engine of this configuration. Either they carry a code made with a key that only this user can
    // read, under a name that holds this engine's configuration and the component's digest; or they came through a pipe that only a child of this process
    // held, which runs the program that its user named for this. wasmtime checks its own version and configuration again.
    unsafe { Component::deserialize(engine, code) }
}

fn entry_name(engine: &Engine, digest: Digest) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{}-{:016x}.code", digest.hex(), hasher.finish())
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path, LastLink::Keep)?;
    let size = file.metadata()?.len();
    if size > MAX_ENTRY {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Known in advance, so that megabytes are read in one go.
    let mut entry = vec![0; usize::try_from(size).unwrap_or(0)];
    file.read_exact(&mut entry)?;
    Ok(entry)
}

/// Removes what programs that were killed have begun to write and never finished. What is young may belong to one that is at work.
fn clear_abandoned(dir: &Path) {
    let is_old = |meta: &fs::Metadata| {
        meta.is_file() && meta.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED))
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_temporary = entry.file_name().to_string_lossy().starts_with(BEGUN);
        if is_temporary && entry.metadata().is_ok_and(|meta| is_old(&meta)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file that gets its name when it is whole.
fn begin(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(BEGUN).tempfile_in(dir)
}

/// The key that entries are authenticated with, made at first use. One that is too short is replaced: all that is lost is time.
fn key(dir: &Path) -> io::Result<[u8; KEY]> {
    let path = dir.join("key");
    match read_key(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (fresh, file) = fresh_key(dir)?;
            // Whoever was first wins: two processes that start at once must end with the same key.
            file.persist_noclobber(&path).map_or_else(|_| read_key(&path), |_| Ok(fresh))
        }
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let (fresh, file) = fresh_key(dir)?;
            file.persist(&path)?;
            Ok(fresh)
        }
        found => found,
    }
}

fn fresh_key(dir: &Path) -> io::Result<([u8; KEY], tempfile::NamedTempFile)> {
    let mut fresh = [0; KEY];
    getrandom::fill(&mut fresh).map_err(io::Error::other)?;
    let mut file = begin(dir)?;
    file.write_all(&fresh)?;
    Ok((fresh, file))
}

fn read_key(path: &Path) -> io::Result<[u8; KEY]> {
    let mut key = [0; KEY];
    open_regular(path, LastLink::Keep)?.read_exact(&mut key)?;
    Ok(key)
}

fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

#[cfg(unix)]
fn check_private(dir: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = fs::symlink_metadata(dir).map_err(|error| error.to_string())?;
    let me = rustix::process::geteuid().as_raw();
    if !meta.is_dir() {
        Err("it is not a directory".to_owned())
    } else if meta.uid() != me {
        Err("it belongs to another user".to_owned())
    } else if meta.mode() & 0o077 != 0 {
        Err(format!("others can reach it (mode {:03o}); `chmod 700` makes it private", meta.mode() & 0o777))
    } else {
        Ok(())
    }
}

/// On Windows the user's own profile directory, where the cache lives, is private by default.
#[cfg(not(unix))]
fn check_private(dir: &Path) -> Result<(), String> {
    let meta = fs::symlink_metadata(dir).map_err(|error| error.to_string())?;
    if meta.is_dir() { Ok(()) } else { Err("it is not a directory".to_owned()) }
}
