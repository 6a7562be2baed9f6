//! The imports that a plugin may have, and the linker that provides them.

use super::bindings::asking::palisade::tool::client;
use super::bindings::palisade::tool::host;
use super::prepare::{PluginRefused, shown};
use super::state::State;
use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, Linker};

/// An import of a plugin, with its meaning in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The full name of the interface.
    pub name: String,
    /// A description of what the sandbox provides for the import.
    pub meaning: &'static str,
}

/// Links all imports that a plugin may have. Denials are part of the implementations, so a plugin
/// loads even if it imports interfaces that it never uses.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // The guarded file system shadows that of wasmtime-wasi.
    linker.allow_shadowing(true);
    // Streams need only the resource table. Through `IoView`, a stream operation does not create
    // the lazy WASI context.
    wasmtime_wasi_io::add_to_linker_async(&mut linker)?;
    palisade_wasi_fs::add_to_linker(&mut linker)?;
    linker.allow_shadowing(false);
    host::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)?;
    client::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)?;
    Ok(linker)
}

/// Returns the names of a component's imports. A type that a world uses is an import as well, but
/// needs no implementation of its own, because it belongs to an interface. A type without an
/// interface fails when the component is linked.
pub(super) fn of(engine: &Engine, component: &Component) -> Vec<String> {
    let is_type =
        |item: &ComponentItem| matches!(item, ComponentItem::Type(_) | ComponentItem::Resource(_));
    let ty = component.component_type();
    ty.imports(engine)
        .filter(|(_, import)| !is_type(&import.ty))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Returns the imports with their meaning. The first one that the host does not provide rejects the
/// plugin.
pub(super) fn check(names: Vec<String>) -> Result<Vec<Import>, PluginRefused> {
    names.into_iter().map(classify).collect()
}

fn classify(name: String) -> Result<Import, PluginRefused> {
    match meaning(&name) {
        Ok(meaning) => Ok(Import { name, meaning }),
        Err(reason) => Err(PluginRefused::Import { import: shown(&name), reason }),
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

fn meaning(name: &str) -> Result<&'static str, &'static str> {
    let interface = name.split('@').next().unwrap_or(name);
    match interface.split('/').next().unwrap_or(interface) {
        "palisade:tool" => Ok(match interface {
            "palisade:tool/host" => "log, progress, emitted text, cancellation",
            "palisade:tool/client" => {
                "questions to whoever makes the call, where they can be asked"
            }
            _ => "types only",
        }),
        "wasi:filesystem" => Ok("the workspace, as far as the tool's class allows"),
        "wasi:cli" => Ok(cli(interface)),
        "wasi:clocks" => Ok("time"),
        "wasi:random" => Ok("random bytes"),
        "wasi:io" => Ok("streams of the above"),
        "wasi:sockets" => Ok("nothing: every connection is refused"),
        "wasi:http" => Err(
            "no tool has network access yet; build the plugin without HTTP (componentize-js: disable the `http` feature)",
        ),
        package if package.starts_with("wasi:") => Err(
            "the host has no such WASI interface; WASI 0.2 has cli, clocks, filesystem, io, random and sockets",
        ),
        _ => Err("only WASI 0.2 and palisade:tool can be imported"),
    }
}
