//! Loading of compiled code, which is the only unsafe operation of the host.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Compiled code that may be loaded.
pub(crate) enum CompiledCode<'a> {
    /// Code that this process or a child of it has just compiled.
    Fresh(&'a [u8]),
    /// A cache entry that has just been authenticated.
    Cached(&'a File),
}

/// Loads compiled code. A cache entry is memory-mapped, so that the pages which a call does not
/// need take no private memory.
#[allow(
    unsafe_code,
    reason = "deserialising is how compiled code is loaded; see the comment below"
)]
pub(crate) fn deserialize(engine: &Engine, code: &CompiledCode<'_>) -> wasmtime::Result<Component> {
    // SAFETY: The bytes are what wasmtime serialised for an engine of this configuration. `Fresh`:
    // this process compiled them, or they came through a pipe that only a child of this process
    // held, which runs the program that the user named for this. `Cached`: the file carries an
    // authentication code made with a key that only this user can read, over a name that contains
    // the configuration and the component's digest, and checked a moment ago through the same
    // handle. The file is in a directory that only this user can write to, and this program
    // replaces entries as a whole and never changes one. wasmtime checks its own version and
    // configuration again.
    unsafe {
        match code {
            CompiledCode::Fresh(bytes) => Component::deserialize(engine, bytes),
            CompiledCode::Cached(file) => Component::deserialize_file(engine, path_of(file)?),
        }
    }
}

/// Returns a path that leads to this open file, even if its name is given to another one.
#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_wraps, reason = "other systems may not know")]
fn path_of(file: &File) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd as _;
    Ok(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
}

#[cfg(target_vendor = "apple")]
fn path_of(file: &File) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    Ok(std::ffi::OsString::from_vec(rustix::fs::getpath(file)?.into_bytes()).into())
}

/// Fails: where a system has no path for an open file, code is not loaded from the cache.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn path_of(_: &File) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}
