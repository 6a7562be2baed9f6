//! The steps from the bytes of a plugin to its linked code.

use super::error::{PluginRefused, world_mismatch};
use super::provenance::{Freshness, Trust};
use crate::sandbox::adapt::World;
use crate::sandbox::compile::{Compiled, Compiler, Target};
use crate::sandbox::deserialize::{CompiledCode, deserialize};
use crate::sandbox::engine::{Allocation, CodeTier, EngineError};
use crate::sandbox::handle::Sandbox;
use crate::sandbox::powers::PluginPowers;
use crate::sandbox::precheck;
use crate::sandbox::run::{Linked, Runtime};
use crate::tool::Digest;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use wasmtime::component::Component;

/// A compiled plugin.
pub(crate) struct CompiledPlugin {
    pub(crate) component: Component,
    pub(crate) tier: CodeTier,
    pub(crate) freshness: Freshness,
}

impl Sandbox {
    /// Runs the pre-compilation check.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), PluginRefused> {
        Ok(precheck::check(bytes)?)
    }

    /// Links the imports of a plugin, and finds the functions of its world.
    pub(crate) fn link(
        &self,
        compiled: &CompiledPlugin,
        world: &World,
        powers: Option<&dyn PluginPowers>,
    ) -> Result<Linked, PluginRefused> {
        let CompiledPlugin { component, tier, .. } = compiled;
        let runtime = self.runtime_of(*tier)?;
        let pre = match powers {
            None => runtime.linker.instantiate_pre(component),
            Some(powers) => {
                let mut own = runtime.linker.clone();
                powers.link(&mut own).and_then(|()| own.instantiate_pre(component))
            }
        };
        let pre = pre.map_err(|error| world_mismatch(&error))?;
        Linked::new(runtime, pre, world).map_err(|error| world_mismatch(&error))
    }

    /// Returns the runtime for code of this tier.
    pub(super) fn runtime_of(&self, tier: CodeTier) -> Result<Arc<Runtime>, EngineError> {
        match tier {
            CodeTier::Optimized => Ok(self.runtime.clone()),
            CodeTier::Baseline => Runtime::of(tier),
        }
    }

    /// Returns code of this tier at least from the cache, the fastest first. A faulty entry, and
    /// code for an engine that this machine cannot run, count as absent.
    pub(super) fn cached_code(&self, digest: Digest, least: CodeTier) -> Option<CompiledPlugin> {
        least.and_above().find_map(|tier| {
            let component = self.mapped_code(digest, tier)?;
            Some(CompiledPlugin { component, tier, freshness: Freshness::Cached })
        })
    }

    /// Returns code of this tier at least: from the cache, or compiled.
    pub(crate) fn compile(
        &self,
        bytes: &[u8],
        digest: Digest,
        trust: Trust,
        tier: CodeTier,
        cancel: &CancellationToken,
    ) -> Result<CompiledPlugin, PluginRefused> {
        let engine = &self.runtime.engine;
        if let Some(cached) = self.cached_code(digest, tier) {
            return Ok(cached);
        }
        // An embedded plugin is part of the host, so a failed attempt says nothing about the next
        // one.
        let keeps_verdicts = trust == Trust::Untrusted;
        if keeps_verdicts {
            if let Some(refusal) = self.cache.refusal(engine, digest, tier, self.compiler.limits())
            {
                return Err(refusal.into());
            }
            self.cache.begin_compilation(engine, digest, tier);
        }
        let runtime = self.runtime_of(tier)?;
        let target = Target { engine: &runtime.engine, kind: runtime.kind };
        let compiled = match (&self.compiler, trust, runtime.kind.allocation) {
            // Where the address space is short, a compiler that runs out of it aborts its process,
            // so a child compiles embedded plugins as well.
            (Compiler::Child(child), Trust::Untrusted, _)
            | (Compiler::Child(child), _, Allocation::OnDemand | Allocation::Scarce) => {
                target.compile_in_child(child, bytes, cancel)
            }
            (Compiler::InProcess(limits), Trust::Untrusted, _) => {
                target.compile_on_thread(*limits, bytes, cancel)
            }
            (_, Trust::Embedded, _) => target.compile_in_place(bytes),
        };
        if keeps_verdicts {
            self.cache.end_compilation(engine, digest, tier, compiled.as_ref().map(|_| ()));
        }
        let Compiled { component, code } = compiled?;
        self.cache.keep_code(engine, digest, tier, &code);
        // The engine keeps a descriptor for each memory image of code that is in memory, and one
        // for the file of code that is mapped.
        let component = self.mapped_code(digest, tier).unwrap_or(component);
        Ok(CompiledPlugin { component, tier, freshness: Freshness::Compiled })
    }

    /// Maps code of this tier from its file in the cache.
    fn mapped_code(&self, digest: Digest, tier: CodeTier) -> Option<Component> {
        let file = self.cache.code(&self.runtime.engine, digest, tier)?;
        let runtime = self.runtime_of(tier).ok()?;
        deserialize(&runtime.engine, &CompiledCode::Cached(&file)).ok()
    }
}

/// The outcome of earlier compilations of a plugin that has no code in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PastCompilation {
    /// No compilation, as far as this cache knows.
    None,
    /// A compilation that was begun and did not finish.
    Unfinished,
}

impl Sandbox {
    /// Returns whether an earlier run has begun to compile the plugin.
    ///
    /// # Errors
    ///
    /// Returns [`PluginRefused`] if an earlier run found that the plugin does not compile within
    /// the limits.
    pub(crate) fn past_compilation(
        &self,
        digest: Digest,
        trust: Trust,
    ) -> Result<PastCompilation, PluginRefused> {
        let engine = &self.runtime.engine;
        let tier = self.strategy.first();
        if trust == Trust::Embedded || self.cache.has_code(engine, digest, tier) {
            return Ok(PastCompilation::None);
        }
        match self.cache.refusal(engine, digest, tier, self.compiler.limits()) {
            Some(refusal) => Err(refusal.into()),
            None if self.cache.has_verdict(engine, digest, tier) => Ok(PastCompilation::Unfinished),
            None => Ok(PastCompilation::None),
        }
    }
}
