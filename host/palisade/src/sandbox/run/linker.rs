//! The linker, which provides the imports of plugins.

use super::network;
use super::state::State;
use crate::sandbox::bindings::asking::palisade::tool::client;
use crate::sandbox::bindings::calling::palisade::tool::tools;
use crate::sandbox::bindings::palisade::tool::host;
use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};

/// Links all imports that a plugin may have. Denials are part of the implementations, so a plugin
/// loads even if it imports interfaces that it never uses.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // The guard's file system shadows that of wasmtime-wasi.
    linker.allow_shadowing(true);
    // Streams need only the resource table. Through `IoView`, a stream operation does not create
    // the lazy WASI context.
    wasmtime_wasi_io::add_to_linker_async(&mut linker)?;
    palisade_wasi_fs::add_to_linker(&mut linker)?;
    network::add_to_linker(&mut linker)?;
    linker.allow_shadowing(false);
    host::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)?;
    client::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)?;
    tools::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)?;
    Ok(linker)
}
