//! The guarded `wasi:filesystem`: every file operation of a guest becomes a system call here.
//!
//! It replaces the implementation of wasmtime-wasi entirely. File operations run inline, on
//! the thread of the call, and epoch interruption cannot end a blocked system call. Therefore every
//! open is non-blocking and checks the file type, every path is resolved beneath the mount point
//! first (`direct/locate.rs`), every host call is bounded, and every byte and entry is counted
//! (`ledger.rs`).

#[cfg(not(unix))]
compile_error!(
    "palisade-wasi-fs does not run on this system yet: it needs the system calls of Unix. It \
     supports Linux; macOS and other Unix systems are untested."
);

mod budget;
mod direct;
mod errors;
mod file;
mod guard;
mod held;
#[doc(hidden)]
pub mod internal;
mod journal;
mod keeper;
mod ledger;
mod path;
mod positioned;
mod regular;
mod rules;
mod seen;
mod streams;
#[cfg(test)]
mod tests;

pub use budget::{DescriptorLimit, NoDescriptor, ResourceBudget};
pub use direct::Mount;
pub use errors::Refusal;
pub use guard::{Access, Guard, GuardView, HasGuard, Options, add_to_linker};
pub use ledger::{Exhausted, Quotas};
pub use rules::{HardLinks, HostRules, Reading, Rules, Tree};
