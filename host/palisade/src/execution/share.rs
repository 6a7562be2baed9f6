//! A pool of a limited resource with a fair share for each owner: no owner can take all of it.
//!
//! The rule is the dynamic threshold of shared-buffer switches (Choudhury and Hahne, 1998): an
//! owner may take more only while its total does not exceed the free units. A single owner gets
//! half of the pool. `k` greedy owners that start together leave `1 / (k + 1)` of it free. Each
//! later owner gets half of the rest, so it always finds some.
//!
//! Owners can belong to groups, such as those of one plugin or of one caller, which have thresholds
//! of their own. So many owners of one group do not get more than it may have.

mod acquire;
mod group;
mod pool;
mod rule;
mod scheduler;
#[cfg(test)]
mod tests;

#[cfg(test)]
use acquire::Acquire;
pub(crate) use group::{Group, GroupKind, Groups};
pub(crate) use pool::{Beside, Owner};
pub use pool::{Grant, Pool, Share};
pub(crate) use rule::most_within;
pub use scheduler::Full;
