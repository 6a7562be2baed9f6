//! The sandbox: plugins compiled, described and called, each call in a store of its own.
//!
//! Only this module and what is below it name wasmtime.

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
mod guard;
mod imports;
mod interest;
mod limiter;
pub mod limits;
mod linked;
mod machine;
mod offer;
mod prepare;
mod recall;
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
#[cfg(all(test, unix))]
pub(crate) use cache::identities;
pub use cache::{Cache, CacheError};
pub(crate) use cache::{Identity, has_settled};
pub use compile::{ChildCompiler, ChildError, CompileError, CompileLimits, Compiler, answer_compilation};
pub use engine::{Allocation, EngineError};
pub use imports::Import;
pub use limits::Limits;
pub(crate) use machine::check as check_machine;
pub(crate) use offer::{Offered, ROLES};
pub(crate) use prepare::Tried;
pub use prepare::{Freshness, PluginRefused, Prepared, Trust};
pub(crate) use recall::Origin;

use engine::Runtime;
use std::sync::Arc;

/// The process-wide engine, with the limits and the cache of one host.
#[derive(Clone)]
pub struct Sandbox {
    runtime: Arc<Runtime>,
    cache: Cache,
    compiler: Compiler,
}

impl Sandbox {
    /// A sandbox on the process's one engine.
    ///
    /// # Errors
    ///
    /// [`EngineError`] where this machine cannot run one at all.
    pub fn new(cache: Cache) -> Result<Self, EngineError> {
        Ok(Self { runtime: Runtime::shared()?, cache, compiler: Compiler::default() })
    }

    /// With plugins compiled like this, where they come from files and the cache does not have them.
    #[must_use]
    pub fn with_compiler(self, compiler: Compiler) -> Self {
        Self { compiler, ..self }
    }

    /// How memory for guests is allocated on this machine.
    #[must_use]
    pub fn allocation(&self) -> Allocation {
        self.runtime.allocation
    }

    /// Where compiled code is kept.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}
