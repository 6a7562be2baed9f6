//! Bounds on the parts of a request that a guest sets. The host keeps them behind each handle, and
//! `wasmtime-wasi-http` accepts these in any length. It bounds a path itself, by 64 KiB.

use super::view;
use crate::limits;
use palisade::internal::CallState;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::types::{
    HostOutgoingRequest as _, Method, OutgoingRequest, Scheme,
};

/// The interface as the crate links it.
const TYPES: &str = "wasi:http/types@0.2.12";

/// The result of a setter, as its interface declares it.
type Set = wasmtime::Result<(Result<(), ()>,)>;

/// Replaces the setters of a linker that has the whole interface by setters that refuse long parts.
pub(super) fn bound(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance(TYPES)?;
    types.func_wrap("[method]outgoing-request.set-method", set_method)?;
    types.func_wrap("[method]outgoing-request.set-scheme", set_scheme)?;
    types.func_wrap("[method]outgoing-request.set-authority", set_authority)?;
    linker.allow_shadowing(false);
    Ok(())
}

fn set_method(
    mut store: StoreContextMut<'_, CallState>,
    (request, method): (Resource<OutgoingRequest>, Method),
) -> Set {
    match &method {
        Method::Other(name) if name.len() > limits::WORD => Ok((Err(()),)),
        _ => Ok((view(store.data_mut()).set_method(request, method)?,)),
    }
}

fn set_scheme(
    mut store: StoreContextMut<'_, CallState>,
    (request, scheme): (Resource<OutgoingRequest>, Option<Scheme>),
) -> Set {
    match &scheme {
        Some(Scheme::Other(name)) if name.len() > limits::WORD => Ok((Err(()),)),
        _ => Ok((view(store.data_mut()).set_scheme(request, scheme)?,)),
    }
}

fn set_authority(
    mut store: StoreContextMut<'_, CallState>,
    (request, authority): (Resource<OutgoingRequest>, Option<String>),
) -> Set {
    match &authority {
        Some(authority) if authority.len() > limits::AUTHORITY => Ok((Err(()),)),
        _ => Ok((view(store.data_mut()).set_authority(request, authority)?,)),
    }
}
