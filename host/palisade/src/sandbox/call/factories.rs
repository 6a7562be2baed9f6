//! The factories of a plugin's tools.

use super::offered::Offered;
use super::wasm_tool::{Entry, WasmTool};
use crate::execution::{Factory, Tool};
use crate::sandbox::adapt::World;
use crate::sandbox::limits::Limits;
use crate::sandbox::load::Prepared;
use crate::sandbox::plugin_settings::{PluginSettings, UnusableNames};
use crate::tool::{Definition, SideEffects};
use std::sync::Arc;

impl Prepared {
    /// Returns the definitions of a plugin's tools with their factories, under the settings of the
    /// plugin, if there are any.
    ///
    /// # Errors
    ///
    /// [`UnusableNames`] if the tools cannot have the names of the settings.
    pub(crate) fn factories(
        self: &Arc<Self>,
        limits: Limits,
        settings: Option<&Arc<PluginSettings>>,
    ) -> Result<Vec<(Definition, Factory)>, UnusableNames> {
        let limits = limits_of(limits, settings);
        let entry = match self.world() {
            World::Tool => Entry::Tool,
            World::Functions(_) => Entry::Function,
        };
        let factory = |definition: &Definition| -> (Definition, Factory) {
            let plugin = self.clone();
            let own = definition.clone();
            let settings = settings.cloned();
            let make = move || {
                let tool = WasmTool::new(&plugin, &own, entry, limits);
                Box::new(tool.with_settings(settings.clone())) as Box<dyn Tool>
            };
            (definition.clone(), Arc::new(make))
        };
        Ok(match settings {
            None => self.definitions().iter().map(factory).collect(),
            Some(settings) => settings.shown(self.definitions())?.iter().map(factory).collect(),
        })
    }

    /// Returns a tool of class `read` for one kind of request to a plugin with this name. No client
    /// can call the tool by name. Returns `None` if no tool name can be derived.
    pub(crate) fn offering(
        self: &Arc<Self>,
        name: &str,
        offered: Offered,
        limits: Limits,
        settings: Option<&Arc<PluginSettings>>,
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
        let plugin = self.clone();
        let own = definition.clone();
        let limits = limits_of(limits, settings);
        let settings = settings.cloned();
        let make = move || {
            let entry = Entry::Offered(offered);
            let tool = WasmTool::new(&plugin, &own, entry, limits);
            Box::new(tool.with_settings(settings.clone())) as Box<dyn Tool>
        };
        Some((definition, Arc::new(make)))
    }
}

/// Returns the limits of the calls of a plugin with these settings.
fn limits_of(limits: Limits, settings: Option<&Arc<PluginSettings>>) -> Limits {
    let memory = settings.and_then(|settings| settings.memory()).unwrap_or(limits.memory);
    Limits { memory, ..limits }
}
