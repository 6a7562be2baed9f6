//! The imports that a plugin may have.

use super::error::PluginRefused;
use crate::sandbox::error_text::printable;
use crate::sandbox::powers::PluginPowers;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

/// An import of a plugin, with its meaning in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The full name of the interface.
    pub name: String,
    /// A description of what the sandbox provides for the import.
    pub meaning: &'static str,
}

/// Returns the names of a component's imports. A type that a world uses is an import as well, but
/// needs no implementation of its own, because it belongs to an interface. A type without an
/// interface fails when the component is linked.
pub(crate) fn names(engine: &Engine, component: &Component) -> Vec<String> {
    let is_type =
        |item: &ComponentItem| matches!(item, ComponentItem::Type(_) | ComponentItem::Resource(_));
    let ty = component.component_type();
    ty.imports(engine)
        .filter(|(_, import)| !is_type(&import.ty))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Returns the names of the imports of a component of another world. An interface that has types
/// alone needs no implementation, so that it may be of any package.
pub(crate) fn names_of_functions(engine: &Engine, component: &Component) -> Vec<String> {
    let ty = component.component_type();
    let has_types_alone = |name: &str| match ty.get_import(engine, name).map(|import| import.ty) {
        Some(ComponentItem::ComponentInstance(interface)) => {
            interface.exports(engine).all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)))
        }
        _ => false,
    };
    let mut names = names(engine, component);
    names.retain(|name| meaning(name).is_ok() || !has_types_alone(name));
    names
}

/// Returns the imports with their meaning. The first one that neither the host nor the powers of
/// the plugin provide rejects the plugin.
pub(crate) fn check(
    names: Vec<String>,
    powers: Option<&dyn PluginPowers>,
) -> Result<Vec<Import>, PluginRefused> {
    names.into_iter().map(|name| classify(name, powers)).collect()
}

fn classify(name: String, powers: Option<&dyn PluginPowers>) -> Result<Import, PluginRefused> {
    let granted = powers.and_then(|powers| powers.meaning(without_version(&name)));
    match granted.map_or_else(|| meaning(&name), Ok) {
        Ok(meaning) => Ok(Import { name, meaning }),
        Err(reason) => Err(PluginRefused::Import { import: printable(&name), reason }),
    }
}

/// Returns the meaning of one `wasi:cli` interface. Each is described on its own, because every
/// language imports all of them and most provide nothing.
fn cli(interface: &str) -> &'static str {
    match interface {
        "wasi:cli/stdout" | "wasi:cli/stderr" => "captured, and cut at 256 KiB",
        "wasi:cli/exit" => "ends the call",
        "wasi:cli/environment" => "nothing: no variables, no arguments, no directory of the host",
        "wasi:cli/stdin" => "nothing: it is at its end",
        _ => "nothing: there is no terminal",
    }
}

/// The interface through which a plugin calls other tools.
const TOOLS: &str = "palisade:tool/tools";

/// Returns true if the plugin can call other tools.
pub(super) fn call_tools(imports: &[Import]) -> bool {
    imports.iter().any(|import| without_version(&import.name) == TOOLS)
}

fn without_version(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn meaning(name: &str) -> Result<&'static str, &'static str> {
    let interface = without_version(name);
    match interface.split('/').next().unwrap_or(interface) {
        "palisade:tool" => Ok(match interface {
            "palisade:tool/host" => "log, progress, emitted text, cancellation",
            "palisade:tool/client" => "questions to the caller, if the caller can be asked",
            TOOLS => "calls of other tools, if they are granted",
            _ => "types of the other interfaces, and nothing by itself",
        }),
        "wasi:filesystem" => Ok("the workspace, as far as the tool's class allows"),
        "wasi:cli" => Ok(cli(interface)),
        "wasi:clocks" => Ok("time"),
        "wasi:random" => Ok("random bytes"),
        "wasi:io" => {
            Ok("input and output of the files, clocks and texts that the other interfaces give")
        }
        "wasi:sockets" => Ok("nothing: every connection is refused"),
        "wasi:http" => Err(
            "the plugin has no network grant; give it one (`palisade grant PLUGIN net \"GET https://HOST\"`), or build it without HTTP (componentize-js: disable the `http` feature)",
        ),
        package if package.starts_with("wasi:") => Err(
            "the host has no such WASI interface; WASI 0.2 has cli, clocks, filesystem, io, random and sockets",
        ),
        _ => Err(
            "only WASI 0.2 and palisade:tool can be imported; a component of another world may fit with `palisade adapt`",
        ),
    }
}
