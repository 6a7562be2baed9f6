//! The allocation of guest memory.

use crate::execution::account::has_room;
use crate::sandbox::limits;

/// The allocation of guest memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// From a pool that is reserved at the start: about 10 µs a call.
    Pooled,
    /// Mapped for each call, because the address space is too small for a pool: about 50 µs a call.
    OnDemand,
    /// As `OnDemand`, without room to grow, because the address space is too small for that as
    /// well. A memory that grows is copied.
    Scarce,
}

impl Allocation {
    /// Returns the address space that each memory reserves at its creation, in bytes. Up to this
    /// size a memory grows in place.
    pub(crate) fn reservation(self) -> u64 {
        match self {
            Self::Pooled => limits::MAX_MEMORY,
            Self::OnDemand => limits::MEMORY,
            Self::Scarce => 0,
        }
    }

    /// Returns the allocation that the process has address space for, if there is no pool.
    pub(crate) fn without_pool() -> Self {
        /// The number of concurrent calls that must fit.
        const CALLS: usize = 16;
        let wanted = (Self::OnDemand.reservation() as usize).saturating_mul(CALLS);
        if has_room(wanted) { Self::OnDemand } else { Self::Scarce }
    }
}
