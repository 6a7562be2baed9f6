//! A pool of a limited resource with a fair share for each owner: no owner can take all of it.
//!
//! The rule is the dynamic threshold of shared-buffer switches (Choudhury and Hahne, 1998): an
//! owner may take more only while its total does not exceed the free units. A single owner gets
//! half of the pool. `k` greedy owners that start together leave `1 / (k + 1)` of it free. Each
//! later owner gets half of the rest, so it always finds some.

mod acquire;
mod pool;
mod scheduler;
#[cfg(test)]
mod tests;

#[cfg(test)]
use acquire::Acquire;
pub(crate) use pool::Beside;
pub use pool::{Grant, Pool, Share};
pub use scheduler::Full;
pub(crate) use scheduler::threshold;
