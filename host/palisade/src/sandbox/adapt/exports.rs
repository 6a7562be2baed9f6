//! The exported functions of a component, with the names of their tools.

use super::unfit::Unfit;
use crate::tool::ToolName;
use wasmtime::Engine;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex};

/// The packages whose exports are for other hosts: `wasi:cli/run`, `wasi:http/incoming-handler`.
const WASI: &str = "wasi:";
/// The function with which componentize-py prepares a component when it is built, and its
/// interface.
const INIT: &str = "init";
const EXPORTS: &str = "exports";

/// An exported function.
pub(super) struct Exported {
    pub(super) interface: Option<String>,
    pub(super) function: String,
    pub(super) index: ComponentExportIndex,
    pub(super) ty: ComponentFunc,
}

impl Exported {
    /// Returns the name of the function with that of its interface, as WIT writes it.
    pub(super) fn full_name(&self) -> String {
        match &self.interface {
            Some(interface) => format!("{interface}#{}", self.function),
            None => self.function.clone(),
        }
    }

    /// Returns the name of the tool: that of the function, after that of its interface without its
    /// package. It does not depend on the other functions, so that a later version of the component
    /// has the same names.
    pub(super) fn tool_name(&self) -> Result<ToolName, Unfit> {
        let interface = self.interface.as_deref();
        match (interface, self.function.as_str()) {
            (_, name) if name.starts_with('[') => return Err(Unfit::Method),
            (None | Some(EXPORTS), INIT) => return Err(Unfit::Toolchain),
            _ => {}
        }
        let interface = interface.map(|interface| {
            let unversioned = interface.split('@').next().unwrap_or(interface);
            unversioned.rsplit('/').next().unwrap_or(unversioned)
        });
        let words = interface.into_iter().chain([self.function.as_str()]);
        let name = words.collect::<Vec<_>>().join("_").replace('-', "_").to_ascii_lowercase();
        Ok(ToolName::parse(&name)?)
    }
}

/// Returns the exported functions of a component and of its exported interfaces, in order, apart
/// from those of WASI.
pub(super) fn exported(engine: &Engine, component: &Component) -> impl Iterator<Item = Exported> {
    let ty = component.component_type();
    let exports: Vec<_> =
        ty.exports(engine).map(|(name, export)| (name.to_owned(), export.ty)).collect();
    let of_export = move |(name, item): (String, ComponentItem)| match item {
        ComponentItem::ComponentFunc(ty) => {
            let index = component.get_export_index(None, name.as_str());
            let exported =
                index.map(|index| Exported { interface: None, function: name, index, ty });
            exported.into_iter().collect()
        }
        ComponentItem::ComponentInstance(instance) if !name.starts_with(WASI) => {
            let index = component.get_export_index(None, name.as_str());
            let exported = instance.exports(engine).filter_map(|(function, export)| {
                let ComponentItem::ComponentFunc(ty) = export.ty else { return None };
                let index = component.get_export_index(index.as_ref(), function)?;
                let (interface, function) = (Some(name.clone()), function.to_owned());
                Some(Exported { interface, function, index, ty })
            });
            exported.collect()
        }
        // Types need no tool, and modules and components cannot be called.
        _ => Vec::new(),
    };
    exports.into_iter().flat_map(of_export)
}
