//! The functions of a component that are tools.

use super::docs::Docs;
use super::exports::{Exported, exported};
use super::function::Function;
use super::schema;
use super::unfit::Unfit;
use crate::sandbox::description::LeftOut;
use serde_json::Value;
use std::collections::HashMap;
use wasmtime::Engine;
use wasmtime::component::Component;

/// The maximum number of functions that are looked at. A plugin may have 256 tools.
const MAX_FUNCTIONS: usize = 4_096;
/// The maximum number of functions that are listed as left out.
const MAX_LEFT_OUT: usize = 256;

/// The functions of a component that are tools, by the names of their tools.
pub(crate) struct Functions {
    by_tool: HashMap<String, Function>,
}

/// A function whose types fit a tool, with the parts of its definition.
pub(crate) struct Derived {
    /// The name of the function with that of its interface.
    pub(crate) full_name: String,
    pub(crate) tool: String,
    pub(crate) description: String,
    pub(crate) input: Value,
    pub(crate) output: Option<Value>,
}

impl Functions {
    /// Resolves the functions of a component.
    pub(crate) fn new(engine: &Engine, component: &Component) -> Self {
        let mut by_tool = HashMap::new();
        for exported in exported(engine, component).take(MAX_FUNCTIONS) {
            if let Ok((tool, function)) = resolved(&exported) {
                by_tool.entry(tool).or_insert(function);
            }
        }
        Self { by_tool }
    }

    /// Returns the function of a tool.
    pub(crate) fn get(&self, tool: &str) -> Option<&Function> {
        self.by_tool.get(tool)
    }
}

/// Returns the parts of the tools' definitions, in the order of the exports, and the functions that
/// are left out. A description of `docs` takes precedence over one of `own`.
pub(crate) fn derived(
    engine: &Engine,
    component: &Component,
    docs: &Docs,
    own: &Docs,
) -> (Vec<Derived>, Vec<LeftOut>) {
    let mut tools: Vec<Derived> = Vec::new();
    let mut left_out = Vec::new();
    for exported in exported(engine, component).take(MAX_FUNCTIONS) {
        let taken = |tool: &str| tools.iter().find(|known| known.tool == tool);
        let derived = resolved(&exported).and_then(|(tool, function)| match taken(&tool) {
            Some(first) => Err(Unfit::NameTaken(first.full_name.clone())),
            None => Ok(derive(&exported, tool, &function, docs, own)),
        });
        match derived {
            Ok(derived) => tools.push(derived),
            Err(unfit) if left_out.len() < MAX_LEFT_OUT => {
                left_out.push(LeftOut::new(&exported.full_name(), &unfit));
            }
            Err(_) => {}
        }
    }
    (tools, left_out)
}

fn resolved(exported: &Exported) -> Result<(String, Function), Unfit> {
    let tool = exported.tool_name()?.to_string();
    Ok((tool, Function::new(exported.index, &exported.ty)?))
}

fn derive(
    exported: &Exported,
    tool: String,
    function: &Function,
    docs: &Docs,
    own: &Docs,
) -> Derived {
    let Exported { interface, function: name, .. } = exported;
    let interface = interface.as_deref();
    let parts = docs.parts_of(interface, name);
    let text = docs.of(interface, name).or_else(|| own.of(interface, name));
    let description = match (text, interface) {
        (Some(text), _) => text.to_owned(),
        (None, Some(interface)) => format!("Calls `{name}` of `{interface}`."),
        (None, None) => format!("Calls `{name}`."),
    };
    Derived {
        full_name: exported.full_name(),
        tool,
        description,
        input: schema::input(&function.parameters, parts),
        output: function.result.json().map(|shape| schema::output(shape, parts)),
    }
}
