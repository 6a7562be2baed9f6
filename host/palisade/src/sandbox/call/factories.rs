//! The factories of a plugin's tools.

use super::offered::Offered;
use super::wasm_tool::{Entry, WasmTool};
use crate::execution::{Factory, Tool};
use crate::sandbox::adapt::World;
use crate::sandbox::handle::Sandbox;
use crate::sandbox::limits::Limits;
use crate::sandbox::load::Prepared;
use crate::tool::{Definition, SideEffects};
use std::sync::Arc;

impl Sandbox {
    /// Returns the definitions of a plugin's tools with their factories.
    #[must_use]
    pub fn factories(&self, plugin: &Arc<Prepared>, limits: Limits) -> Vec<(Definition, Factory)> {
        let entry = match plugin.world() {
            World::Tool => Entry::Tool,
            World::Functions(_) => Entry::Function,
        };
        let factory = |definition: &Definition| -> (Definition, Factory) {
            let sandbox = self.clone();
            let plugin = plugin.clone();
            let own = definition.clone();
            let make = move || {
                Box::new(WasmTool::new(&sandbox, &plugin, &own, entry, limits)) as Box<dyn Tool>
            };
            (definition.clone(), Arc::new(make))
        };
        plugin.definitions().iter().map(factory).collect()
    }

    /// Returns a tool of class `read` for one kind of request to a plugin with this name. No client
    /// can call the tool by name. Returns `None` if no tool name can be derived.
    pub(crate) fn offering(
        &self,
        name: &str,
        plugin: &Arc<Prepared>,
        offered: Offered,
        limits: Limits,
    ) -> Option<(Definition, Factory)> {
        let plain = |character: char| {
            if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '_' }
        };
        let plain: String = name.chars().take(40).map(plain).collect();
        let name = format!("of_{plain}_{}", offered.suffix());
        let description = "What a plugin offers besides its tools.";
        let definition =
            Definition::with_schema(&name, description, SideEffects::Read, offered.schema()?)
                .ok()?;
        let sandbox = self.clone();
        let plugin = plugin.clone();
        let own = definition.clone();
        let make = move || {
            let entry = Entry::Offered(offered);
            Box::new(WasmTool::new(&sandbox, &plugin, &own, entry, limits)) as Box<dyn Tool>
        };
        Some((definition, Arc::new(make)))
    }
}
