//! Powers beyond the class of a tool, which another crate provides for plugins with a grant: it
//! adds imports to the linker of such a plugin, and the data behind them to each of its calls.

use super::run::Runtime;
pub use super::run::{Refusals, State as CallState};
use crate::execution::account::Account;
use crate::execution::owner::{descriptors, owner_of};
use crate::execution::share::{Grant, Owner, Pool};
use crate::tool::{Digest, SideEffects, ToolPattern};
use std::any::Any;
use std::sync::Arc;
use wasmtime::component::Linker;

/// The source of the powers of all plugins. A host without one links nothing of them.
pub trait Powers: Send + Sync {
    /// Returns the powers of a plugin, or `None` if it has none. Runs when the plugin is loaded, on
    /// a thread that may block.
    fn of(&self, plugin: Digest) -> Option<Arc<dyn PluginPowers>>;
}

/// The powers of one plugin.
pub trait PluginPowers: Send + Sync {
    /// Returns the meaning of an interface, such as `wasi:http/types`, or `None` if the powers do
    /// not provide it.
    fn meaning(&self, interface: &str) -> Option<&'static str>;

    /// Adds the interfaces to a linker of the plugin's own, which has all others already. Runs once
    /// for each compiled code of the plugin.
    ///
    /// # Errors
    ///
    /// An error of the linker, which rejects the plugin.
    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()>;

    /// Returns the environment variables of calls. Runs at each call that reads them.
    fn environment(&self) -> Vec<(String, String)>;

    /// Returns the tools that the plugin may call. Runs at each call of a plugin that calls others.
    fn tools(&self) -> Arc<[ToolPattern]> {
        Arc::default()
    }

    /// Returns the most memory that the host holds behind the handles of the powers, in bytes. Each
    /// call reserves it, beside what it may hold without powers.
    fn memory(&self) -> u64 {
        0
    }

    /// Creates the data of one call. Runs at each call of the plugin and must not block.
    fn begin(&self, call: PoweredCall) -> Box<dyn Any + Send>;

    /// Returns the grants behind the powers, one on each line, for a person.
    fn grants(&self) -> Vec<String>;
}

/// Returns the memory that each call of a plugin takes as a whole, in bytes.
pub(crate) fn whole_memory(runtime: &Runtime, powers: Option<&dyn PluginPowers>) -> u64 {
    runtime.kind.counted_stack().unwrap_or(0) + powers.map_or(0, PluginPowers::memory)
}

/// A call that begins.
#[derive(Debug, Clone)]
pub struct PoweredCall {
    /// The class of the tool. While a plugin is described, it is `none`.
    pub class: SideEffects,
    /// The account that the memory of the powers counts in.
    pub account: Account,
    /// The refusals of the call.
    pub refusals: Refusals,
    /// The plugin, and the caller if the calls of callers are told apart.
    pub(crate) owner: Owner,
}

impl PoweredCall {
    /// Describes a call of a plugin that belongs to no caller.
    #[must_use]
    pub fn new(class: SideEffects, account: Account, refusals: Refusals, plugin: Digest) -> Self {
        Self { class, account, refusals, owner: owner_of(plugin) }
    }

    /// Waits for a unit of a pool, in which the call's plugin and caller have a share that others
    /// cannot take.
    pub fn take(&self, pool: &Pool) -> impl Future<Output = Grant> + Send + use<> {
        pool.share_of(&self.owner).take(1)
    }

    /// Waits for a file descriptor of those that guests may hold.
    pub fn descriptor(&self) -> impl Future<Output = Grant> + Send + use<> {
        self.take(descriptors())
    }
}
