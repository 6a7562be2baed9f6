//! The engine: its configuration, its allocator, and the epoch clock that interrupts guests.

mod allocation;
mod clock;
mod config;
mod error;
pub(crate) mod system_check;
mod tier;

pub use allocation::Allocation;
pub(super) use clock::{Clock, Running};
pub(super) use config::{for_compilation, on_demand, pooled, sandbox_units};
pub use error::EngineError;
pub use tier::CompileStrategy;
pub(super) use tier::{CodeKind, CodeTier};

use crate::execution::owner;

/// Returns the number of sandbox units that calls hold now.
pub(super) fn live_sandboxes() -> u64 {
    owner::sandboxes().held()
}

/// Returns true if an operation of the engine failed because the system had no memory, or no room
/// in the address space. Only the type of a cause tells: its text may quote the component.
pub(super) fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| {
        if cause.downcast_ref::<rustix::io::Errno>() == Some(&rustix::io::Errno::NOMEM) {
            return true;
        }
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::OutOfMemory)
    })
}

/// Returns true if an operation of the engine failed because the process had no file descriptor
/// left.
pub(super) fn is_out_of_descriptors(error: &wasmtime::Error) -> bool {
    use rustix::io::Errno;
    let code = |cause: &(dyn std::error::Error + 'static)| {
        let own = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        own.or_else(|| cause.downcast_ref::<Errno>().map(|errno| errno.raw_os_error()))
    };
    let full = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.chain().filter_map(code).any(|code| full.contains(&code))
}
