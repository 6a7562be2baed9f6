//! A guarded `wasi:filesystem` (WASI 0.2) for any program that embeds wasmtime: one directory,
//! mounted read-only or read-write, in place of the implementation of wasmtime-wasi.
//!
//! File operations run inline, on the thread that polls the guest. That is an order of magnitude
//! faster than a pool of blocking threads, but epoch interruption cannot end a blocked system call.
//! Therefore
//!
//! - every path is resolved beneath the handle of the mounted directory, and every operation acts
//!   on one name in a pinned directory, so that concurrent changes lead no operation out of it,
//! - only regular files and directories are opened, after an inspection, and never blocking,
//! - git repositories, and the paths that a host protects, are not changed ([`ProtectedPaths`]),
//! - the bytes and entries of a call are counted ([`Quotas`]), and its open files come out of a
//!   budget that calls may share ([`ResourceBudget`]),
//! - the changed paths are listed ([`Filesystem::modified`]), and the first refusal is kept for the
//!   host ([`Filesystem::refusal`]).
//!
//! ```
//! use palisade_wasi_fs::{
//!     Access, Filesystem, FilesystemView, HasFilesystem, Mount, Options, ProtectedPaths,
//! };
//! use std::sync::Arc;
//! use wasmtime::component::{Linker, ResourceTable};
//! use wasmtime::{Engine, Store};
//! use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
//!
//! struct State {
//!     wasi: WasiCtx,
//!     table: ResourceTable,
//!     files: Filesystem,
//! }
//!
//! impl WasiView for State {
//!     fn ctx(&mut self) -> WasiCtxView<'_> {
//!         WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
//!     }
//! }
//!
//! impl HasFilesystem for State {
//!     fn filesystem(&mut self) -> FilesystemView<'_> {
//!         FilesystemView { filesystem: &mut self.files, table: &mut self.table }
//!     }
//! }
//!
//! # fn main() -> wasmtime::Result<()> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! // Once for each directory:
//! let root = path.canonicalize()?;
//! let handle = std::fs::File::open(&root)?;
//! let mount = Mount::new(&handle)?;
//! let protected = Arc::new(ProtectedPaths::new(&handle, &root)?);
//!
//! // Once for each engine:
//! let engine = Engine::default();
//! let mut linker: Linker<State> = Linker::new(&engine);
//! wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
//! linker.allow_shadowing(true);
//! palisade_wasi_fs::add_to_linker(&mut linker)?;
//!
//! // Once for each call:
//! let files = Filesystem::new(&mount, Access::ReadOnly, protected, Options::default());
//! let wasi = WasiCtx::builder().build();
//! let store = Store::new(&engine, State { wasi, table: ResourceTable::new(), files });
//! # assert_eq!(store.data().files.bytes_read(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! The crate is the file system of Palisade. Messages call the mounted
//! directory the workspace.

#[cfg(not(unix))]
compile_error!(
    "palisade-wasi-fs does not run on this system yet: it needs the system calls of Unix. It \
     supports Linux; macOS and other Unix systems are untested."
);

mod access_list;
mod budget;
mod change_log;
mod direct;
mod errors;
mod fd_budget;
mod fd_location;
mod file;
mod filesystem;
mod inspect;
#[doc(hidden)]
pub mod internal;
mod new_files;
mod path;
mod path_rules;
mod planted_link;
mod positioned;
mod protected_paths;
mod quotas;
mod regular;
mod streams;
#[cfg(test)]
mod tests;
mod usage;

pub use budget::{DescriptorLimit, NoDescriptor, ResourceBudget};
pub use direct::Mount;
pub use errors::Refusal;
pub use filesystem::{
    Access, Filesystem, FilesystemView, HasFilesystem, MAX_TEMP_FILES, Options, add_to_linker,
};
pub use path_rules::{PathRuleError, PathRules};
pub use protected_paths::{
    HardLinks, PRIVATE_PREFIX, ProtectedPaths, ProtectedTree, Protection, Reading,
};
pub use quotas::{Exhausted, Quotas, SharedQuotas};
