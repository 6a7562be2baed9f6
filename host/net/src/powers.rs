//! The grants of plugins as powers of the host: `wasi:http` for those with a network rule.

mod setters;

use crate::call::CallData;
use crate::current::CurrentGrants;
use crate::limits;
use crate::network::Network;
use crate::plugin_grants::PluginGrants;
use palisade::internal::{CallState, PluginPowers, PoweredCall, Powers};
use palisade::tool::{Digest, ToolPattern};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::{WasiHttp, WasiHttpCtxView};

/// The grants of all plugins of a host, for [`HostBuilder::powers`](palisade::HostBuilder::powers).
/// Without any grant, nothing of `wasi:http` is linked.
#[derive(Debug, Default)]
pub struct Grants {
    network: Network,
    plugins: RwLock<Plugins>,
}

type Plugins = HashMap<Digest, Arc<CurrentGrants>>;

impl Grants {
    /// Creates grants without any plugin, over a network.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self { network, plugins: RwLock::default() }
    }

    /// Sets the grants of the plugin with this digest.
    #[must_use]
    pub fn plugin(self, plugin: Digest, grants: PluginGrants) -> Self {
        self.plugins_mut().insert(plugin, Arc::new(CurrentGrants::new(grants)));
        self
    }

    /// Returns true if no plugin has ever had a grant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plugins.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Replaces the grants of all plugins during a run. They hold for the next request of each
    /// plugin, also of a call that is under way: a plugin that is left out has none any more.
    ///
    /// A plugin that was loaded without any grant gets none before it is loaded again, since
    /// nothing was linked for it.
    pub fn replace(&self, plugins: impl IntoIterator<Item = (Digest, PluginGrants)>) {
        let mut given: HashMap<Digest, PluginGrants> = plugins.into_iter().collect();
        let mut known = self.plugins_mut();
        for (plugin, current) in known.iter() {
            current.replace(given.remove(plugin).unwrap_or_default());
        }
        let new = given.into_iter();
        known.extend(new.map(|(plugin, grants)| (plugin, Arc::new(CurrentGrants::new(grants)))));
    }

    fn plugins_mut(&self) -> RwLockWriteGuard<'_, Plugins> {
        self.plugins.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Powers for Grants {
    fn of(&self, plugin: Digest) -> Option<Arc<dyn PluginPowers>> {
        let plugins = self.plugins.read().unwrap_or_else(PoisonError::into_inner);
        let grants = plugins.get(&plugin)?.clone();
        let (network, has_http) = (self.network.clone(), AtomicBool::new(false));
        Some(Arc::new(NetPowers { network, grants, has_http }))
    }
}

/// The interface by which a plugin calls other tools.
const TOOLS: &str = "palisade:tool/tools";

/// Powers that give every plugin `wasi:http` and other tools, and refuse each of its requests and
/// calls: to look at a plugin before it has grants.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unconnected;

impl Powers for Unconnected {
    fn of(&self, _: Digest) -> Option<Arc<dyn PluginPowers>> {
        Some(Arc::new(Self))
    }
}

impl PluginPowers for Unconnected {
    fn meaning(&self, interface: &str) -> Option<&'static str> {
        if interface == TOOLS {
            return Some("calls of granted tools; here every one is refused");
        }
        is_provided(interface).then_some("requests to granted hosts; here every one is refused")
    }

    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
        link(linker)
    }

    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn memory(&self) -> u64 {
        limits::HANDLES_MEMORY
    }

    fn begin(&self, _: PoweredCall) -> Box<dyn Any + Send> {
        Box::new(CallData::default())
    }

    fn grants(&self) -> Vec<String> {
        Vec::new()
    }
}

struct NetPowers {
    network: Network,
    grants: Arc<CurrentGrants>,
    /// Whether the plugin has `wasi:http`. It keeps that when its grants are revoked.
    has_http: AtomicBool,
}

impl PluginPowers for NetPowers {
    fn meaning(&self, interface: &str) -> Option<&'static str> {
        if interface == "wasi:cli/environment" && self.grants.now().has_environment() {
            return Some("the granted variables; no arguments, no directory of the host");
        }
        if interface == TOOLS && !self.grants.now().tools().is_empty() {
            return Some("calls of the granted tools");
        }
        (is_provided(interface) && self.grants.now().has_network())
            .then_some("requests to the granted hosts, as far as the tool's class allows")
    }

    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
        if !self.grants.now().has_network() {
            return Ok(());
        }
        self.has_http.store(true, Ordering::Relaxed);
        link(linker)
    }

    fn memory(&self) -> u64 {
        if self.has_http.load(Ordering::Relaxed) { limits::HANDLES_MEMORY } else { 0 }
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.grants.now().environment()
    }

    fn tools(&self) -> Arc<[ToolPattern]> {
        self.grants.now().tools()
    }

    fn begin(&self, call: PoweredCall) -> Box<dyn Any + Send> {
        Box::new(CallData::new(&self.network, &self.grants, call))
    }

    fn grants(&self) -> Vec<String> {
        self.grants.now().lines()
    }
}

fn is_provided(interface: &str) -> bool {
    ["wasi:http/types", "wasi:http/outgoing-handler"].contains(&interface)
}

fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    let options = LinkOptions::default();
    outgoing_handler::add_to_linker::<_, WasiHttp>(linker, view)?;
    types::add_to_linker::<_, WasiHttp>(linker, &options.into(), view)?;
    setters::bound(linker)
}

fn view(state: &mut CallState) -> WasiHttpCtxView<'_> {
    let (table, data) = state.powers::<CallData>();
    WasiHttpCtxView { hooks: &mut data.hooks, table, ctx: &mut data.context }
}
