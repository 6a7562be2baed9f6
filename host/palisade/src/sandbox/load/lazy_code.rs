//! The code of a plugin. That of a plugin which an earlier run has compiled and described is loaded
//! at the first call. Optimised code replaces code that was compiled quickly.

use super::compilation::CompiledPlugin;
use super::error::PluginRefused;
use super::provenance::{Freshness, Trust};
use crate::sandbox::engine::CodeTier;
use crate::sandbox::handle::Sandbox;
use crate::sandbox::precheck;
use crate::sandbox::run::Linked;
use crate::tool::Digest;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use wasmtime::Engine;

/// A function that returns the bytes of a plugin again, or the reason why it cannot.
type Bytes = dyn Fn() -> Result<Vec<u8>, String> + Send + Sync;

/// The source of a plugin's bytes, for compilations after the first one.
pub(crate) struct ByteSource {
    /// The function that returns the bytes.
    pub(crate) bytes: Box<Bytes>,
    /// The trust in the bytes.
    pub(crate) trust: Trust,
}

/// The code of a plugin. A call holds the code that it began with.
pub(crate) struct LazyCode {
    loaded: RwLock<Option<LoadedCode>>,
    sandbox: Sandbox,
    source: ByteSource,
    /// The loading lock. One call holds it and loads the code; the others wait without holding a
    /// thread.
    lock: Arc<Mutex<()>>,
}

/// Code that calls can use.
struct LoadedCode {
    linked: Arc<Linked>,
    tier: CodeTier,
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
    pub(crate) fn from_linked(
        linked: Linked,
        tier: CodeTier,
        sandbox: Sandbox,
        source: ByteSource,
    ) -> Self {
        let loaded = LoadedCode { linked: Arc::new(linked), tier };
        Self { loaded: RwLock::new(Some(loaded)), sandbox, source, lock: Arc::default() }
    }

    /// Creates code that is in the cache, and is loaded at its first use.
    pub(crate) fn from_cache(sandbox: Sandbox, source: ByteSource) -> Self {
        Self { loaded: RwLock::default(), sandbox, source, lock: Arc::default() }
    }

    /// Returns the code, if it is loaded.
    pub(crate) fn get(&self) -> Option<Arc<Linked>> {
        self.read().as_ref().map(|loaded| loaded.linked.clone())
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
        if self.read().is_none() {
            // Not cancelled with the call: the compiler has limits of its own, and later calls use
            // the result.
            let uncancelled = CancellationToken::new();
            self.replace(&self.compiled(digest, self.sandbox.strategy.first(), &uncancelled)?)?;
        }
        Ok(())
    }

    /// Returns true if the code that calls use, or would load, is not optimised.
    pub(crate) fn is_baseline(&self, digest: Digest) -> bool {
        let tier = self.read().as_ref().map(|loaded| loaded.tier);
        let cache = &self.sandbox.cache;
        let is_optimized = || cache.has_code(self.engine(), digest, CodeTier::Optimized);
        tier.map_or_else(|| !is_optimized(), |tier| tier == CodeTier::Baseline)
    }

    /// Compiles the optimised code, and keeps it in the cache. Calls that begin later use it. Blocks
    /// for a whole compilation.
    pub(crate) fn optimize(
        &self,
        digest: Digest,
        cancel: &CancellationToken,
    ) -> Result<(), CodeError> {
        let compiled = self.compiled(digest, CodeTier::Optimized, cancel)?;
        // Code that is not loaded comes from the cache at the first call.
        if self.read().is_some() { self.replace(&compiled) } else { Ok(()) }
    }

    fn replace(&self, compiled: &CompiledPlugin) -> Result<(), CodeError> {
        let linked = Arc::new(self.sandbox.link(&compiled.component)?);
        let loaded = LoadedCode { linked, tier: compiled.tier };
        // The code that it replaces is unmapped when its last call ends.
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
        Ok(())
    }

    /// Returns code of this tier at least: from the cache, or compiled from the bytes again.
    fn compiled(
        &self,
        digest: Digest,
        tier: CodeTier,
        cancel: &CancellationToken,
    ) -> Result<CompiledPlugin, CodeError> {
        if let Some((component, tier)) = self.sandbox.cache.code(self.engine(), digest, tier) {
            return Ok(CompiledPlugin { component, tier, freshness: Freshness::Cached });
        }
        let bytes = (self.source.bytes)().map_err(CodeError::Unreadable)?;
        if Digest::of(&bytes) != digest {
            return Err(CodeError::Replaced);
        }
        precheck::check(&bytes).map_err(PluginRefused::from)?;
        Ok(self.sandbox.compile(&bytes, digest, self.source.trust, tier, cancel)?)
    }

    fn engine(&self) -> &Engine {
        &self.sandbox.runtime.engine
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<LoadedCode>> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner)
    }
}
