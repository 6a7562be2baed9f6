//! The code of a plugin. That of a plugin which an earlier run has compiled and described is loaded
//! at the first call.

use super::error::PluginRefused;
use super::provenance::Trust;
use crate::sandbox::handle::Sandbox;
use crate::sandbox::precheck;
use crate::sandbox::run::Linked;
use crate::tool::Digest;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

/// A function that returns the bytes of a plugin again, or the reason why it cannot.
type Bytes = dyn Fn() -> Result<Vec<u8>, String> + Send + Sync;

/// The source of a plugin's bytes, for the case that its compiled code is gone at the first call.
pub(crate) struct ByteSource {
    /// The function that returns the bytes.
    pub(crate) bytes: Box<Bytes>,
    /// The trust in the bytes.
    pub(crate) trust: Trust,
}

/// The code of a plugin.
pub(crate) struct LazyCode {
    linked: OnceLock<Linked>,
    stored: Option<StoredCode>,
    /// The loading lock. One call holds it and loads the code; the others wait without holding a
    /// thread.
    lock: Arc<Mutex<()>>,
}

/// Code that is in the cache.
struct StoredCode {
    sandbox: Sandbox,
    source: ByteSource,
}

/// The loading lock, held. It moves with the work, because the call that began the work may end
/// first.
pub(crate) struct LoadLock(
    #[allow(dead_code, reason = "held, and nothing else")] OwnedMutexGuard<()>,
);

/// The reason why the code of a known plugin cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    /// The file is missing or cannot be read.
    #[error("its compiled code is gone from the cache, and {0}")]
    Unreadable(String),
    /// The file holds another plugin now.
    #[error(
        "its compiled code is gone from the cache, and the file now contains another plugin; restart palisade to load it"
    )]
    Replaced,
    /// The plugin no longer compiles or links.
    #[error(transparent)]
    Refused(#[from] PluginRefused),
    /// The compilation takes longer than a call waits. A later call may find the code loaded.
    #[error(
        "its compiled code is gone from the cache, and compiling it again takes longer than a call waits; try again later"
    )]
    Slow,
    /// Internal error: the code is missing after it was loaded.
    #[error("internal error: its compiled code is missing after loading")]
    Gone,
    /// A dependency panicked.
    #[error("loading it failed inside the host; the log has the details")]
    Panicked(#[source] tokio::task::JoinError),
    /// The system has no thread to load the code on.
    #[error("the system gives no thread to load it on: {0}; try again later")]
    NoThread(std::io::Error),
}

impl LazyCode {
    pub(crate) fn from_linked(linked: Linked) -> Self {
        Self { linked: OnceLock::from(linked), stored: None, lock: Arc::default() }
    }

    /// Creates code that is in the cache, and is loaded at its first use.
    pub(crate) fn from_cache(sandbox: Sandbox, source: ByteSource) -> Self {
        let stored = Some(StoredCode { sandbox, source });
        Self { linked: OnceLock::new(), stored, lock: Arc::default() }
    }

    /// Returns the code, if it is loaded.
    pub(crate) fn get(&self) -> Option<&Linked> {
        self.linked.get()
    }

    /// Waits for the loading lock.
    pub(crate) async fn lock(&self) -> LoadLock {
        LoadLock(self.lock.clone().lock_owned().await)
    }

    /// Waits for the loading lock, and blocks the thread.
    pub(crate) fn lock_blocking(&self) -> LoadLock {
        LoadLock(self.lock.clone().blocking_lock_owned())
    }

    /// Loads the code of the plugin with this digest, unless it is loaded. Blocks for milliseconds,
    /// or for a whole compilation if the code is gone from the cache.
    pub(crate) fn load(&self, digest: Digest, _lock: LoadLock) -> Result<(), CodeError> {
        if self.linked.get().is_none()
            && let Some(stored) = &self.stored
        {
            // Cannot fail: the caller holds the loading lock.
            let _ = self.linked.set(stored.load(digest)?);
        }
        Ok(())
    }
}

impl StoredCode {
    fn load(&self, digest: Digest) -> Result<Linked, CodeError> {
        let component = match self.sandbox.cache.code(&self.sandbox.runtime.engine, digest) {
            Some(component) => component,
            None => {
                let bytes = (self.source.bytes)().map_err(CodeError::Unreadable)?;
                if Digest::of(&bytes) != digest {
                    return Err(CodeError::Replaced);
                }
                precheck::check(&bytes).map_err(PluginRefused::from)?;
                // Not cancelled with the call: the compiler has limits of its own, and later calls
                // use the result.
                let uncancelled = CancellationToken::new();
                self.sandbox.compile(&bytes, digest, self.source.trust, &uncancelled)?.component
            }
        };
        self.sandbox.link(&component).map_err(CodeError::from)
    }
}
