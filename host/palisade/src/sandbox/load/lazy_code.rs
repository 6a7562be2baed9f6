//! The code of a plugin. That of a plugin whose description is known is loaded or compiled at the
//! first call. Optimised code replaces code that was compiled quickly.

use super::compilation::CompiledPlugin;
use super::error::PluginRefused;
use super::provenance::Trust;
use crate::execution::blocking::BlockingError;
use crate::sandbox::adapt::World;
use crate::sandbox::engine::CodeTier;
use crate::sandbox::handle::Sandbox;
use crate::sandbox::powers::PluginPowers;
use crate::sandbox::precheck;
use crate::sandbox::run::Linked;
use crate::tool::Digest;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

/// A function that returns the bytes of a plugin again, or the reason why it cannot.
type Bytes = dyn Fn() -> Result<Vec<u8>, String> + Send + Sync;

/// The source of a plugin's bytes, for compilations after the first one.
pub(crate) struct ByteSource {
    /// The function that returns the bytes.
    pub(crate) bytes: Box<Bytes>,
    /// The trust in the bytes.
    pub(crate) trust: Trust,
    /// The world that the plugin is expected to have.
    pub(crate) world: World,
}

/// The code of a plugin. A call keeps the code that it began with.
pub(crate) struct LazyCode {
    /// Quickly compiled code. It stays beside optimised code, because calls borrow it: a counter of
    /// its users would cost every call.
    baseline: OnceLock<Linked>,
    optimized: OnceLock<Linked>,
    sandbox: Sandbox,
    source: ByteSource,
    powers: Option<Arc<dyn PluginPowers>>,
    /// The loading lock. One call holds it and loads the code; the others wait without holding a
    /// thread.
    lock: Arc<Mutex<()>>,
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
    /// A dependency panicked, or the system starts no thread to load the code on.
    #[error("loading it failed inside the host; the log has the details")]
    NotRun(#[from] BlockingError),
}

impl CodeError {
    /// Returns true if the reason may pass, as a lack of descriptors does.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreadable(_) | Self::Slow | Self::NotRun(_) => true,
            Self::Refused(PluginRefused::Compile(error)) => error.may_pass(),
            Self::Replaced | Self::Refused(_) | Self::Gone => false,
        }
    }
}

impl LazyCode {
    pub(crate) fn from_linked(
        linked: Linked,
        tier: CodeTier,
        sandbox: Sandbox,
        source: ByteSource,
        powers: Option<Arc<dyn PluginPowers>>,
    ) -> Self {
        let code = Self::unloaded(sandbox, source, powers);
        code.keep(linked, tier);
        code
    }

    /// Creates code that is loaded from the cache, or else compiled, at its first use.
    pub(crate) fn unloaded(
        sandbox: Sandbox,
        source: ByteSource,
        powers: Option<Arc<dyn PluginPowers>>,
    ) -> Self {
        Self {
            baseline: OnceLock::new(),
            optimized: OnceLock::new(),
            sandbox,
            source,
            powers,
            lock: Arc::default(),
        }
    }

    /// Returns the fastest code that is loaded.
    pub(crate) fn get(&self) -> Option<&Linked> {
        self.optimized.get().or_else(|| self.baseline.get())
    }

    /// Returns the powers of the plugin.
    pub(crate) fn powers(&self) -> Option<&Arc<dyn PluginPowers>> {
        self.powers.as_ref()
    }

    /// Returns the world that the plugin is expected to have.
    pub(crate) fn world(&self) -> &World {
        &self.source.world
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
        if self.get().is_none() {
            // Not cancelled with the call: the compiler has limits of its own, and later calls use
            // the result.
            let uncancelled = CancellationToken::new();
            self.link(&self.compiled(digest, self.sandbox.strategy.first(), &uncancelled)?)?;
        }
        Ok(())
    }

    /// Returns true if the code that calls use, or would load, is not optimised.
    pub(crate) fn is_baseline(&self, digest: Digest) -> bool {
        let cache = &self.sandbox.cache;
        self.optimized.get().is_none()
            && (self.baseline.get().is_some()
                || !cache.has_code(&self.sandbox.runtime.engine, digest, CodeTier::Optimized))
    }

    /// Compiles the optimised code, and keeps it in the cache. Calls that begin later use it.
    /// Blocks for a whole compilation.
    pub(crate) fn optimize(
        &self,
        digest: Digest,
        cancel: &CancellationToken,
    ) -> Result<(), CodeError> {
        let compiled = self.compiled(digest, CodeTier::Optimized, cancel)?;
        // Code that is not loaded comes from the cache at the first call.
        if self.get().is_some() { self.link(&compiled) } else { Ok(()) }
    }

    fn link(&self, compiled: &CompiledPlugin) -> Result<(), CodeError> {
        let linked = self.sandbox.link(compiled, &self.source.world, self.powers.as_deref())?;
        self.keep(linked, compiled.tier);
        Ok(())
    }

    /// Keeps linked code, unless there is code of its tier.
    fn keep(&self, linked: Linked, tier: CodeTier) {
        let place = match tier {
            CodeTier::Baseline => &self.baseline,
            CodeTier::Optimized => &self.optimized,
        };
        let _ = place.set(linked);
    }

    /// Returns code of this tier at least: from the cache, or compiled from the bytes again.
    fn compiled(
        &self,
        digest: Digest,
        tier: CodeTier,
        cancel: &CancellationToken,
    ) -> Result<CompiledPlugin, CodeError> {
        if let Some(cached) = self.sandbox.cached_code(digest, tier) {
            return Ok(cached);
        }
        let bytes = (self.source.bytes)().map_err(CodeError::Unreadable)?;
        if Digest::of(&bytes) != digest {
            return Err(CodeError::Replaced);
        }
        precheck::check(&bytes).map_err(PluginRefused::from)?;
        Ok(self.sandbox.compile(&bytes, digest, self.source.trust, tier, cancel)?)
    }
}
