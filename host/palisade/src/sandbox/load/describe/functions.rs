//! The description of a component of another world: its functions describe themselves by their
//! types, so that it is not run.

use crate::sandbox::adapt::{Adaptation, Derived, Docs, derived};
use crate::sandbox::bindings::exports::palisade::tool::tool::Definition;
use crate::sandbox::bindings::palisade::tool::types::SideEffects as Class;
use crate::sandbox::description::{Description, LeftOut};
use crate::sandbox::load::definition::{definition, pattern_allowance};
use crate::sandbox::load::error::PluginRefused;
use crate::tool::SideEffects;
use crate::tool::offer::Offer;
use crate::tool::schema::Building;
use wasmtime::Engine;
use wasmtime::component::Component;

/// The beginning of the interface that makes a component a plugin of the contract.
const CONTRACT: &str = "palisade:tool/tool@";
/// The number of functions that a refusal names.
const NAMED: usize = 3;

/// Returns the description of a component, with a tool for each function that can be one.
///
/// # Errors
///
/// Returns [`PluginRefused`] if the component is a plugin of the contract, or if it has no function
/// that can be a tool.
pub(in crate::sandbox::load) fn of_functions(
    engine: &Engine,
    component: &Component,
    adaptation: &Adaptation,
    own: &Docs,
    imports: Vec<String>,
) -> Result<Description, PluginRefused> {
    let ty = component.component_type();
    if ty.exports(engine).any(|(name, _)| name.starts_with(CONTRACT)) {
        return Err(PluginRefused::Contract);
    }
    let (all, mut left_out) = derived(engine, component, adaptation.docs(), own);
    let mut tools = Vec::with_capacity(all.len());
    for derived in all {
        let full_name = derived.full_name.clone();
        let raw = raw(derived, adaptation.class());
        // Each function alone, so that one with a schema beyond the limits costs only itself.
        match definition(&raw, Building::AtFirstUse, &mut pattern_allowance()) {
            Ok(_) => tools.push(raw),
            Err(refused) => left_out.push(LeftOut::new(&full_name, &refused)),
        }
    }
    if tools.is_empty() {
        return Err(PluginRefused::NoFunctions { reasons: reasons(&left_out) });
    }
    Ok(Description { imports, tools, offer: Offer::default(), left_out })
}

fn raw(derived: Derived, class: SideEffects) -> Definition {
    Definition {
        name: derived.tool,
        title: None,
        description: derived.description,
        input_schema: derived.input.to_string(),
        output_schema: derived.output.map(|schema| schema.to_string()),
        side_effects: match class {
            SideEffects::None => Class::None,
            SideEffects::Read => Class::Read,
            SideEffects::Write => Class::Write,
            SideEffects::Execute => Class::Execute,
            SideEffects::Network => Class::Network,
        },
        // Nothing in a component says so.
        idempotent: false,
        timeout_ms: None,
        metadata: String::new(),
    }
}

/// Returns why no function is a tool.
fn reasons(left_out: &[LeftOut]) -> String {
    let named: Vec<String> = left_out
        .iter()
        .take(NAMED)
        .map(|LeftOut { function, reason }| format!("`{function}`: {reason}"))
        .collect();
    match (named.is_empty(), left_out.len().saturating_sub(NAMED)) {
        (true, _) => {
            "it exports no function, or only those of WASI, such as the `run` of a command"
                .to_owned()
        }
        (false, 0) => named.join("; "),
        (false, more) => format!("{}; and {more} more", named.join("; ")),
    }
}
