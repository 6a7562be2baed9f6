//! File operations by direct system calls.

mod attributes;
mod descriptor;
mod entries;
mod height;
mod kernel;
mod listing;
mod locate;
mod mount;
mod node;
mod open;
mod pace;
mod permissions;
mod sync;
mod walk;

pub(super) use entries::remove_new;
pub use kernel::is_the_kernels;
pub use mount::Mount;
#[cfg(test)]
pub(super) use mount::Resolver;
pub(super) use mount::Root;
pub use permissions::is_temporary;
