//! The linked code of a plugin, ready for instantiation, with the functions for calls.

use super::runtime::Runtime;
use super::state::State;
use crate::sandbox::adapt::{Functions, World};
use crate::sandbox::bindings::PluginIndices;
use crate::sandbox::bindings::exports::palisade::tool::tool as wit;
use crate::sandbox::engine::sandbox_units;
use std::sync::Arc;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre, Val};
use wasmtime::{Error, Result, Store};

/// The interface that every plugin of the contract exports, and its function for calls.
const EXECUTE: [&str; 2] = ["palisade:tool/tool@0.1.0", "execute"];

/// A plugin with its imports linked.
pub(crate) struct Linked {
    /// The runtime of the code. Stores for it are created with the runtime's engine.
    pub(crate) runtime: Arc<Runtime>,
    pre: InstancePre<State>,
    contract: Contract,
    /// The number of sandbox units that a call takes.
    pub(crate) units: u64,
}

/// The functions of a plugin that calls invoke.
pub(crate) enum Contract {
    /// `execute`, of the interface of the contract.
    Tool(ComponentExportIndex),
    /// One function for each tool.
    Functions(Functions),
}

impl Linked {
    /// Checks the exports of the plugin by name, or resolves its functions.
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        pre: InstancePre<State>,
        world: &World,
    ) -> Result<Self> {
        let component = pre.component();
        let contract = match world {
            World::Tool => Contract::Tool(execute(&pre)?),
            World::Functions(_) => {
                Contract::Functions(Functions::new(component.engine(), component))
            }
        };
        let units = sandbox_units(runtime.kind, component);
        Ok(Self { runtime, pre, contract, units })
    }

    /// Returns the component with linked imports, from which instances are created.
    pub(crate) fn instance_pre(&self) -> &InstancePre<State> {
        &self.pre
    }

    /// Returns the functions that calls invoke.
    pub(crate) fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Instantiates the plugin and calls `execute`. A lookup of the other functions with their
    /// types would cost 2 % of a call. `call` runs once the instance exists, so that the remaining
    /// time in it is current.
    pub(crate) async fn execute<'c>(
        &self,
        execute: &ComponentExportIndex,
        store: &mut Store<State>,
        call: impl FnOnce() -> wit::Call<'c> + Send,
    ) -> Result<std::result::Result<wit::Output, wit::ToolError>> {
        let instance = self.instantiate(store).await?;
        let execute = instance
            .get_typed_func::<(wit::Call<'_>,), (std::result::Result<wit::Output, wit::ToolError>,)>(
                &mut *store,
                execute,
            )?;
        let (returned,) = execute.call_async(store, (call(),)).await?;
        Ok(returned)
    }

    /// Instantiates the plugin and calls one of its functions, whose types have been resolved
    /// before.
    pub(crate) async fn call(
        &self,
        function: &ComponentExportIndex,
        store: &mut Store<State>,
        parameters: &[Val],
        results: &mut [Val],
    ) -> Result<()> {
        let instance = self.instantiate(store).await?;
        let function = instance.get_func(&mut *store, function);
        let function = function.ok_or_else(|| Error::msg("the function is missing"))?;
        function.call_async(store, parameters, results).await
    }

    async fn instantiate(&self, store: &mut Store<State>) -> Result<Instance> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        store.data_mut().limiter.begin();
        Ok(instance)
    }
}

/// Returns the index of `execute`, if the component exports the interface of the contract.
fn execute(pre: &InstancePre<State>) -> Result<ComponentExportIndex> {
    PluginIndices::new(pre)?;
    let component = pre.component();
    let [interface, function] = EXECUTE;
    let interface = component.get_export_index(None, interface);
    let execute =
        interface.and_then(|interface| component.get_export_index(Some(&interface), function));
    execute.ok_or_else(|| Error::msg("it exports no function `execute`"))
}
