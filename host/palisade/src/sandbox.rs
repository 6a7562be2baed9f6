//! The sandbox: it compiles, describes and calls plugins, with a fresh store for each call.
//!
//! Only this module and its submodules use wasmtime.

mod ask;
mod bindings;
mod blocks;
mod border;
mod cache;
mod compile;
mod conform;
mod convert;
mod describe;
mod ended;
mod engine;
mod guest_files;
mod imports;
mod limiter;
pub mod limits;
mod linked;
pub(crate) mod machine;
pub(crate) mod offer;
mod prepare;
mod recall;
mod refusal;
mod run;
mod state;
mod stdio;
mod surroundings;
mod talk;
#[cfg(test)]
mod tests;
mod turns;
mod wasm_tool;

pub use border::{BorderRefused, Cap, Feature, Foreign};
#[cfg(test)]
pub(crate) use cache::identities;
pub use cache::{Cache, CacheError};
pub(crate) use cache::{Identity, has_settled};
pub use compile::{
    ChildCompiler, ChildError, CompileError, CompileLimits, Compiler, answer_compilation,
};
pub use engine::{Allocation, EngineError};
pub use imports::Import;
pub use limits::Limits;
pub(crate) use machine::check as check_machine;
pub(crate) use offer::Offered;
pub(crate) use prepare::Tried;
pub use prepare::{Freshness, PluginRefused, Prepared, Trust};
pub(crate) use recall::Origin;

use engine::Runtime;
use std::fmt;
use std::sync::Arc;

/// The process-wide engine, with the cache and the compiler of one host.
#[derive(Clone)]
pub struct Sandbox {
    runtime: Arc<Runtime>,
    cache: Cache,
    compiler: Compiler,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("allocation", &self.runtime.allocation)
            .field("cache", &self.cache)
            .field("compiler", &self.compiler)
            .finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Creates a sandbox on the process-wide engine.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError`] if this machine cannot run the engine.
    pub fn new(cache: Cache) -> Result<Self, EngineError> {
        Ok(Self { runtime: Runtime::shared()?, cache, compiler: Compiler::default() })
    }

    /// Sets the compiler of plugins that come from files and are not in the cache.
    #[must_use]
    pub fn with_compiler(self, compiler: Compiler) -> Self {
        Self { compiler, ..self }
    }

    /// Returns how guest memory is allocated on this machine.
    #[must_use]
    pub fn allocation(&self) -> Allocation {
        self.runtime.allocation
    }

    /// Returns the cache of compiled code.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}
