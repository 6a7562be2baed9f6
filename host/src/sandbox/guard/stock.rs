//! File operations through the implementation of wasmtime-wasi, with added checks, for systems
//! other than Unix.
//!
//! On Windows the stock layer handles reserved names, alternate streams, short names and reparse
//! points. This module adds a type check before each open, its own streams, quotas and the change
//! log. A check before the open suffices there: pipes and devices, the only files that block at
//! open, live in name spaces that the stock layer refuses.
//!
//! It is weaker than the Unix layer in two points: changed paths are recorded as the guest wrote
//! them, without resolving links, and a directory is read whole before it is listed. The module is
//! compiled and tested on every system, so that it cannot rot.

mod descriptor;
mod listing;
mod mount;
mod node;
mod view;

#[cfg(not(unix))]
pub(crate) use mount::Mount;
#[cfg(all(unix, test))]
pub(super) use mount::Mount;
pub(super) use mount::Root;
pub(super) use view::StockView;
