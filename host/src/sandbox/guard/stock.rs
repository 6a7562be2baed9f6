//! File operations through wasmtime-wasi's own implementation, with checks in front: for systems other than Unix.
//!
//! On Windows the stock layer knows what our own calls would have to learn: reserved names, alternate streams, short names, reparse points. What it
//! lacks is added here: a look at the type before anything is opened, own streams, quotas and the journal. A look before is enough there, because
//! nothing that blocks when opened can stand in a directory: pipes and devices live in name spaces that the stock layer refuses. Two things are
//! weaker than on Unix: changed paths are noted as the guest wrote them, links not resolved, and a directory is read whole before it is listed.
//! It is compiled and tested on every system, so that it cannot rot unseen.

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
