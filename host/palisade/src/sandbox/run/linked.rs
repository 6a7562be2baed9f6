//! The linked code of a plugin, ready for instantiation, with the index of its function for calls.

use super::state::State;
use crate::sandbox::bindings::PluginPre;
use crate::sandbox::bindings::exports::palisade::tool::tool as wit;
use crate::sandbox::engine::sandbox_units;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre};
use wasmtime::{Error, Result, Store};

/// The interface that every plugin exports, and its function for calls.
const EXECUTE: [&str; 2] = ["palisade:tool/tool@0.1.0", "execute"];

/// A plugin that exports the interface of the contract, with its imports linked.
pub(crate) struct Linked {
    plugin: PluginPre<State>,
    execute: ComponentExportIndex,
    /// The number of sandbox units that a call takes.
    pub(crate) units: u64,
}

impl Linked {
    /// Checks the exports of the plugin by name.
    pub(crate) fn new(pre: InstancePre<State>) -> Result<Self> {
        let plugin = PluginPre::new(pre)?;
        let component = plugin.instance_pre().component();
        let [interface, function] = EXECUTE;
        let interface = component.get_export_index(None, interface);
        let execute =
            interface.and_then(|interface| component.get_export_index(Some(&interface), function));
        let execute = execute.ok_or_else(|| Error::msg("it exports no function `execute`"))?;
        let units = sandbox_units(component);
        Ok(Self { plugin, execute, units })
    }

    /// Returns the component with linked imports, from which instances are created.
    pub(crate) fn instance_pre(&self) -> &InstancePre<State> {
        self.plugin.instance_pre()
    }

    /// Instantiates the plugin and calls `execute`. A lookup of the other functions with their
    /// types would cost 2 % of a call. `call` runs once the instance exists, so that the remaining
    /// time in it is current.
    pub(crate) async fn execute<'c>(
        &self,
        store: &mut Store<State>,
        call: impl FnOnce() -> wit::Call<'c> + Send,
    ) -> Result<std::result::Result<wit::Output, wit::ToolError>> {
        let instance: Instance = self.instance_pre().instantiate_async(&mut *store).await?;
        store.data_mut().limiter.begin();
        let execute = instance
            .get_typed_func::<(wit::Call<'_>,), (std::result::Result<wit::Output, wit::ToolError>,)>(
                &mut *store,
                &self.execute,
            )?;
        let (returned,) = execute.call_async(store, (call(),)).await?;
        Ok(returned)
    }
}
