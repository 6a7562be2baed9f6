//! The runtimes of the process, one for each tier of code: an engine, its linker and its clock.

use super::linker::linker;
use super::state::State;
use crate::execution::owner;
use crate::execution::share::Pool;
use crate::sandbox::engine::{
    Allocation, Clock, CodeKind, CodeTier, EngineError, Running, on_demand, pooled, system_check,
};
use crate::sandbox::limits;
use std::sync::{Arc, OnceLock};
use wasmtime::Engine;
use wasmtime::component::Linker;

/// The engine for code of one tier, and everything else that exists once per engine.
pub(crate) struct Runtime {
    /// The kind of the code that the engine runs.
    pub(crate) kind: CodeKind,
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    /// The pool of sandboxes for loading plugins.
    pub(crate) loading: Pool,
    clock: Clock,
}

impl Runtime {
    /// Returns the runtime of the process for code of this tier, which is created at first use.
    /// There is only one of each tier. Types and code of two engines must never be mixed, so that
    /// linked code refers to its runtime.
    pub(crate) fn of(tier: CodeTier) -> Result<Arc<Self>, EngineError> {
        static OPTIMIZED: OnceLock<Result<Arc<Runtime>, EngineError>> = OnceLock::new();
        static BASELINE: OnceLock<Result<Arc<Runtime>, EngineError>> = OnceLock::new();
        system_check::check()?;
        let shared = match tier {
            CodeTier::Baseline => &BASELINE,
            CodeTier::Optimized => &OPTIMIZED,
        };
        shared.get_or_init(|| Self::start_without_panic(tier).map(Arc::new)).clone()
    }

    /// Starts the runtime, and converts a panic to an error: on a machine that is short of a
    /// resource the engine may panic.
    fn start_without_panic(tier: CodeTier) -> Result<Self, EngineError> {
        match std::panic::catch_unwind(|| Self::start(tier)) {
            Ok(started) => started.map_err(|error| EngineError(format!("{error:#}"))),
            Err(_) => Err(EngineError("it panicked; the log has the details".to_owned())),
        }
    }

    fn start(tier: CodeTier) -> wasmtime::Result<Self> {
        let sandboxes = owner::sandbox_count() + owner::nested_sandbox_count();
        let (engine, allocation) = match Engine::new(&pooled(tier, sandboxes)) {
            Ok(engine) => (engine, Allocation::Pooled),
            Err(error) => {
                let allocation = Allocation::without_pool();
                tracing::info!(
                    "no pool of memory on this machine for {} code, allocating for each call ({allocation:?}): {error:#}",
                    tier.name()
                );
                (Engine::new(&on_demand(CodeKind { allocation, tier }))?, allocation)
            }
        };
        let linker = linker(&engine)?;
        let clock = Clock::start(engine.weak())?;
        Ok(Self {
            kind: CodeKind { allocation, tier },
            engine,
            linker,
            loading: Pool::new(u64::from(limits::LOADING_SANDBOXES)),
            clock,
        })
    }

    /// Keeps the clock ticking while the guard is alive.
    pub(crate) fn running(&self) -> Running<'_> {
        self.clock.running()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot make an engine has failed")]
    use super::super::client_requests::ClientRequests;
    use super::super::limiter::Limiter;
    use super::super::messages::Messages;
    use super::super::store::new_store;
    use super::*;
    use crate::sandbox::engine::{for_compilation, sandbox_units};
    use crate::sandbox::precheck::Cap;
    use crate::tool::Digest;
    use palisade_wasi_fs::Filesystem;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    use wasmtime::Config;
    use wasmtime::component::Component;

    /// Returns the compatibility number of an engine. Engines with the same number load each
    /// other's code.
    fn number(config: &Config) -> u64 {
        let mut hasher = DefaultHasher::new();
        Engine::new(config).unwrap().precompile_compatibility_hash().hash(&mut hasher);
        hasher.finish()
    }

    fn shared() -> Arc<Runtime> {
        Runtime::of(CodeTier::Optimized).unwrap()
    }

    fn optimized(allocation: Allocation) -> CodeKind {
        CodeKind { allocation, tier: CodeTier::Optimized }
    }

    #[test]
    fn child_compiles_the_same_code() {
        for allocation in [Allocation::OnDemand, Allocation::Scarce] {
            assert_eq!(
                number(&for_compilation(optimized(allocation))),
                number(&on_demand(optimized(allocation)))
            );
        }
        let runtime = shared();
        let mut hasher = DefaultHasher::new();
        runtime.engine.precompile_compatibility_hash().hash(&mut hasher);
        assert_eq!(number(&for_compilation(runtime.kind)), hasher.finish());
    }

    #[test]
    fn code_does_not_depend_on_the_size_of_the_pool() {
        let [small, full] = [owner::ONE_CALL_SANDBOXES, owner::SANDBOXES];
        for tier in CodeTier::FASTEST_FIRST {
            assert_eq!(number(&pooled(tier, small)), number(&pooled(tier, full)));
        }
    }

    #[test]
    fn small_pool_admits_the_largest_component() {
        let share = Pool::new(owner::ONE_CALL_SANDBOXES.into()).share(Digest::of(b"one"));
        let units = sandbox_units(shared().kind, &with_memories(limits::MEMORIES));
        assert!(share.try_take(units).is_ok(), "{units} units");
    }

    /// Returns a component with `count` memories.
    fn with_memories(count: usize) -> Component {
        let instances = "(core instance (instantiate $m))".repeat(count);
        let text = format!("(component (core module $m (memory 1)) {instances})");
        Component::new(&shared().engine, palisade_tests::wat::binary(&text)).unwrap()
    }

    #[tokio::test]
    async fn admitted_calls_never_exhaust_the_pool() {
        let runtime = shared();
        let pool = Pool::new(u64::from(limits::LIVE_SANDBOXES));
        let component = with_memories(limits::MEMORIES);
        let greedy = runtime.linker.instantiate_pre(&component).unwrap();
        let mut running = Vec::new();
        for owner in [b"one", b"two"] {
            let share = pool.share(Digest::of(owner));
            while let Ok(grant) = share.try_take(sandbox_units(runtime.kind, &component)) {
                let mut store = new_store(&runtime.engine, idle());
                let instance = greedy.instantiate_async(&mut store).await;
                assert!(instance.is_ok(), "{:#} beside {}", instance.err().unwrap(), running.len());
                running.push((grant, store));
            }
        }
        // Calls that these make are admitted by a pool of their own, and find room as well.
        let nested = owner::nested_sandboxes().share(Digest::of(b"nested"));
        while let Ok(grant) = nested.try_take(sandbox_units(runtime.kind, &component)) {
            let mut store = new_store(&runtime.engine, idle());
            let instance = greedy.instantiate_async(&mut store).await;
            assert!(instance.is_ok(), "{:#} beside {}", instance.err().unwrap(), running.len());
            running.push((grant, store));
        }
        assert!(running.len() >= 20, "{}", running.len());
    }

    #[test]
    fn the_pool_takes_as_many_globals_as_the_precheck() {
        let globals = "(global i32 (i32.const 0))".repeat(Cap::Globals.max() as usize);
        let text =
            format!("(component (core module $m {globals}) (core instance (instantiate $m)))");
        let component = Component::new(&shared().engine, palisade_tests::wat::binary(&text));
        assert!(component.is_ok(), "{:#}", component.err().unwrap());
    }

    #[test]
    fn call_takes_pool_units_by_its_memories() {
        let units = |allocation, tier| {
            let kind = CodeKind { allocation, tier };
            [0, 1, 2, 3, 16].map(|memories| sandbox_units(kind, &with_memories(memories)))
        };
        assert_eq!(units(Allocation::Pooled, CodeTier::Optimized), [1, 1, 1, 2, 8]);
        assert_eq!(units(Allocation::Pooled, CodeTier::Baseline), [2, 2, 2, 2, 8]);
        assert_eq!(units(Allocation::OnDemand, CodeTier::Baseline), [1, 1, 1, 2, 8]);
    }

    /// Returns the state of a guest that does nothing.
    fn idle() -> State {
        let account = limits::Limits::default().account();
        let limiter = Limiter::new(limits::MEMORY, Allocation::Pooled, &account);
        let filesystem = Filesystem::closed();
        State::new(
            filesystem,
            limiter,
            Messages::silent(),
            ClientRequests::without_client(),
            std::time::Instant::now() + limits::TIMEOUT,
        )
    }
}
