//! The sandbox of one host.

use super::cache::Cache;
use super::compile::Compiler;
use super::engine::{Allocation, CodeTier, CompileStrategy, EngineError};
use super::limits::Limits;
use super::powers::{PluginPowers, Powers};
use super::run::Runtime;
use crate::execution::account::DescriptionRoom;
use crate::tool::Digest;
use std::fmt;
use std::sync::Arc;

/// The process-wide engines, with the cache and the compiler of one host.
#[derive(Clone)]
pub struct Sandbox {
    /// The runtime for optimised code. That for quickly compiled code is created when there is such
    /// code.
    pub(super) runtime: Arc<Runtime>,
    pub(super) cache: Cache,
    pub(super) compiler: Compiler,
    pub(super) strategy: CompileStrategy,
    /// The memory for the descriptions of all plugins.
    pub(super) descriptions: DescriptionRoom,
    powers: Option<Arc<dyn Powers>>,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("allocation", &self.runtime.kind.allocation)
            .field("cache", &self.cache)
            .field("compiler", &self.compiler)
            .field("strategy", &self.strategy)
            .finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Creates a sandbox on the process-wide engines.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError`] if this machine cannot run the engine.
    pub fn new(cache: Cache) -> Result<Self, EngineError> {
        Ok(Self {
            runtime: Runtime::of(CodeTier::Optimized)?,
            cache,
            compiler: Compiler::default(),
            strategy: CompileStrategy::default(),
            descriptions: DescriptionRoom::within(Limits::default().total_memory),
            powers: None,
        })
    }

    /// Sets the compiler of plugins that come from files and are not in the cache.
    #[must_use]
    pub fn with_compiler(self, compiler: Compiler) -> Self {
        Self { compiler, ..self }
    }

    /// Sets the order in which the tiers of a plugin's code are compiled. Default:
    /// [`CompileStrategy::BaselineFirst`].
    #[must_use]
    pub fn with_strategy(self, strategy: CompileStrategy) -> Self {
        Self { strategy, ..self }
    }

    /// Sets the memory limit of all calls, in bytes. Descriptions of plugins may take half of it.
    /// Default: the limit of [`Limits::default`].
    #[must_use]
    pub(crate) fn with_total_memory(self, total: u64) -> Self {
        Self { descriptions: DescriptionRoom::within(total), ..self }
    }

    /// Sets the source of powers. Default: none.
    #[must_use]
    pub(crate) fn with_powers(self, powers: Option<Arc<dyn Powers>>) -> Self {
        Self { powers, ..self }
    }

    /// Returns the powers of a plugin, if it has any.
    pub(super) fn powers_of(&self, plugin: Digest) -> Option<Arc<dyn PluginPowers>> {
        self.powers.as_ref().and_then(|powers| powers.of(plugin))
    }

    /// Returns true if the powers of a plugin provide this interface.
    pub(crate) fn grants(&self, plugin: Digest, interface: &str) -> bool {
        self.powers_of(plugin).is_some_and(|powers| powers.meaning(interface).is_some())
    }

    /// Returns true if plugins are never called with code that is not optimised.
    pub(crate) fn compiles_optimized_only(&self) -> bool {
        self.strategy == CompileStrategy::OptimizedOnly
    }

    /// Returns how guest memory is allocated on this machine.
    #[must_use]
    pub fn allocation(&self) -> Allocation {
        self.runtime.kind.allocation
    }

    /// Returns the cache of compiled code.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}
