//! The limits on memory and tables of one call, summed over all of them: wasmtime's own limits
//! apply to each memory, and a guest may have many. The limiter also charges the memory of all
//! calls of the process, which many calls within their own limits could exhaust.

use crate::execution::account::{Account, Charge, address_space_limit, has_room};
use crate::sandbox::engine::{Allocation, live_sandboxes};
use crate::sandbox::limits;
use crate::tool::Limit;
use crate::tool::budget::Exhausted;
use wasmtime::ResourceLimiter;

/// The stage of a guest: its memories are created at instantiation, and only grow afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Instantiation,
    Run,
}

/// The resource limiter of one store.
pub(crate) struct Limiter {
    memory_limit: usize,
    allocation: Allocation,
    stage: Stage,
    charge: Charge,
    memory: usize,
    peak: usize,
    last_memory: usize,
    elements: usize,
    last_elements: usize,
    denied: Option<Limit>,
}

impl Limiter {
    /// Creates the limiter of a guest with at most `memory_limit` bytes, charged to `account`.
    pub(crate) fn new(memory_limit: u64, allocation: Allocation, account: &Account) -> Self {
        Self {
            memory_limit: bytes(memory_limit),
            allocation,
            stage: Stage::Instantiation,
            charge: account.empty_charge(),
            memory: 0,
            peak: 0,
            last_memory: 0,
            elements: 0,
            last_elements: 0,
            denied: None,
        }
    }

    /// Reserves memory that the call takes as a whole, in bytes: its large stack, if it has one,
    /// and what is behind the handles of its powers.
    pub(crate) fn with_whole(mut self, bytes: u64) -> Result<Self, Exhausted> {
        if bytes > 0 {
            self.charge.account().allow_whole(bytes);
            self.charge.grow(bytes)?;
        }
        Ok(self)
    }

    /// Marks the guest as instantiated. From now on its memories only grow.
    pub(crate) fn begin(&mut self) {
        self.stage = Stage::Run;
    }

    /// Returns the first limit that refused a request, with its value.
    pub(crate) fn denied(&self) -> Option<(Limit, u64)> {
        let value = |limit| match limit {
            Limit::Memory => self.memory_limit as u64,
            Limit::TotalMemory => self.charge.account().limits().total,
            Limit::AddressSpace => address_space_limit().unwrap_or(u64::MAX),
            Limit::Sandboxes => live_sandboxes(),
            _ => limits::TABLE_ELEMENTS as u64,
        };
        self.denied.map(|limit| (limit, value(limit)))
    }

    /// Returns the peak memory, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak as u64
    }

    fn charge(&mut self, bytes: u64) -> Result<(), Limit> {
        let refused = |exhausted| match exhausted {
            Exhausted::TotalMemory { .. } => Limit::TotalMemory,
            Exhausted::AddressSpace { .. } => Limit::AddressSpace,
            Exhausted::CallMemory { .. } | Exhausted::Deadline | Exhausted::Cancelled => {
                Limit::Memory
            }
        };
        self.charge.grow(bytes).map_err(refused)
    }

    /// Charges the growth of a memory. A memory that outgrows its reservation is copied, so that
    /// both copies exist for a moment.
    fn charge_growth(&mut self, current: usize, desired: usize) -> Result<(), Limit> {
        self.charge((desired - current) as u64)?;
        if desired as u64 <= self.allocation.reservation() {
            return Ok(());
        }
        let copy = current as u64;
        let has_room = self.charge(copy);
        self.charge.shrink(if has_room.is_ok() { copy } else { (desired - current) as u64 });
        has_room
    }

    /// Returns the address space that a new or growing memory maps, in bytes, or `None` if the
    /// memory stays within its reservation.
    fn mapped(&self, current: usize, desired: usize) -> Option<usize> {
        let reservation = bytes(self.allocation.reservation());
        let is_new = current == 0 && self.stage == Stage::Instantiation;
        let is_mapped =
            self.allocation == Allocation::Pooled || (!is_new && desired <= reservation);
        (!is_mapped).then(|| if is_new { desired.max(reservation) } else { desired })
    }

    fn refuse(&mut self, limit: Limit) -> bool {
        self.denied.get_or_insert(limit);
        false
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let Some(sum) = self.memory.checked_add(more).filter(|sum| *sum <= self.memory_limit)
        else {
            return Ok(self.refuse(Limit::Memory));
        };
        if self.mapped(current, desired).is_some_and(|bytes| !has_room(bytes)) {
            return Ok(self.refuse(Limit::Sandboxes));
        }
        if let Err(limit) = self.charge_growth(current, desired) {
            return Ok(self.refuse(limit));
        }
        self.last_memory = more;
        self.memory = sum;
        self.peak = self.peak.max(sum);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        let failed = std::mem::take(&mut self.last_memory);
        self.memory = self.memory.saturating_sub(failed);
        self.charge.shrink(failed as u64);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        // A table has the size limit of the pool even where it is not in the pool.
        let fits =
            |sum: &usize| *sum <= limits::TABLE_ELEMENTS && desired <= limits::ELEMENTS_PER_TABLE;
        let Some(sum) = self.elements.checked_add(more).filter(fits) else {
            return Ok(self.refuse(Limit::Tables));
        };
        if let Err(limit) = self.charge(more as u64 * limits::TABLE_ELEMENT) {
            return Ok(self.refuse(limit));
        }
        self.last_elements = more;
        self.elements = sum;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        let failed = std::mem::take(&mut self.last_elements);
        self.elements = self.elements.saturating_sub(failed);
        self.charge.shrink(failed as u64 * limits::TABLE_ELEMENT);
        Ok(())
    }

    fn instances(&self) -> usize {
        limits::INSTANCES
    }

    fn memories(&self) -> usize {
        limits::MEMORIES
    }

    fn tables(&self) -> usize {
        limits::TABLES
    }
}

fn bytes(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an account with `total` bytes for all calls, and the limiter of a call with 100
    /// bytes.
    fn call_limiter(total: u64) -> (Account, Limiter) {
        let limits =
            limits::Limits { memory: 100, total_memory: total, ..limits::Limits::default() };
        let account = limits.account();
        (account.clone(), limiter_of(Allocation::Pooled, &account))
    }

    fn limiter_of(allocation: Allocation, account: &Account) -> Limiter {
        Limiter::new(account.limits().call, allocation, account)
    }

    #[test]
    fn memory_and_tables_are_charged_and_released() -> wasmtime::Result<()> {
        let (account, mut limiter) = call_limiter(u64::MAX);
        assert!(limiter.memory_growing(0, 90, None)?);
        assert!(limiter.table_growing(0, 10, None)?);
        assert_eq!(account.held(), 90 + 10 * limits::TABLE_ELEMENT);
        assert!(limiter.table_growing(10, 30, None)?);
        limiter.table_grow_failed(wasmtime::Error::msg("no"))?;
        assert!(limiter.memory_growing(90, 100, None)?);
        limiter.memory_grow_failed(wasmtime::Error::msg("no"))?;
        assert_eq!(account.held(), 90 + 10 * limits::TABLE_ELEMENT);
        drop(limiter);
        assert_eq!(account.held(), 0);
        Ok(())
    }

    #[test]
    fn total_memory_bounds_each_call() -> wasmtime::Result<()> {
        // Memory held by other tests of this process does not matter: the limit is zero.
        let (_, mut limiter) = call_limiter(0);
        assert!(!limiter.memory_growing(0, 1, None)?);
        assert_eq!(limiter.denied(), Some((Limit::TotalMemory, 0)));
        let (_, mut limiter) = call_limiter(0);
        assert!(!limiter.table_growing(0, 1, None)?);
        assert_eq!(limiter.denied(), Some((Limit::TotalMemory, 0)));
        Ok(())
    }

    #[test]
    fn memory_copied_on_growth_counts_twice() -> wasmtime::Result<()> {
        const MIB: usize = 1 << 20;
        let limits = limits::Limits::default();
        for (allocation, grown) in
            [(Allocation::Pooled, 128), (Allocation::OnDemand, 128), (Allocation::Scarce, 76)]
        {
            let account = limits.account();
            let mut limiter = limiter_of(allocation, &account);
            let mut held = 0;
            while held < 128 && limiter.memory_growing(held * MIB, (held + 1) * MIB, None)? {
                held += 1;
            }
            assert_eq!((held, account.held()), (grown, (grown * MIB) as u64), "{allocation:?}");
        }
        Ok(())
    }

    #[test]
    fn memory_without_pages_grows_in_place() {
        let mut limiter = limiter_of(Allocation::OnDemand, &call_limiter(u64::MAX).0);
        let reservation = Allocation::OnDemand.reservation() as usize;
        assert_eq!(limiter.mapped(0, 0), Some(reservation));
        limiter.begin();
        assert_eq!(
            [(0, 1), (1, reservation)].map(|(from, to)| limiter.mapped(from, to)),
            [None; 2]
        );
        assert_eq!(
            limiter.mapped(0, reservation + 1),
            Some(reservation + 1),
            "beyond its place it is copied"
        );
    }

    #[test]
    fn table_size_is_bounded_without_a_pool() -> wasmtime::Result<()> {
        let (_, mut limiter) = call_limiter(u64::MAX);
        assert!(limiter.table_growing(0, limits::ELEMENTS_PER_TABLE, None)?);
        assert!(!limiter.table_growing(0, limits::ELEMENTS_PER_TABLE + 1, None)?);
        assert_eq!(limiter.denied(), Some((Limit::Tables, limits::TABLE_ELEMENTS as u64)));
        Ok(())
    }

    #[test]
    fn host_memory_leaves_room_for_the_guest() -> wasmtime::Result<()> {
        let (account, mut limiter) = call_limiter(u64::MAX);
        assert_eq!(account.reserve(limits::HOST_DATA), Ok(()));
        assert!(limiter.memory_growing(0, 100, None)?);
        assert!(!limiter.table_growing(0, 1, None)?);
        assert_eq!(limiter.denied(), Some((Limit::Memory, 100)));
        Ok(())
    }

    #[test]
    fn sum_of_memories_is_bounded() -> wasmtime::Result<()> {
        let (_, mut limiter) = call_limiter(u64::MAX);
        assert!(limiter.memory_growing(0, 60, None)?);
        assert!(!limiter.memory_growing(0, 60, None)?);
        assert_eq!(limiter.denied(), Some((Limit::Memory, 100)));
        assert!(limiter.memory_growing(60, 100, None)?);
        assert_eq!(limiter.peak(), 100);
        Ok(())
    }

    #[test]
    fn failed_growth_is_refunded() -> wasmtime::Result<()> {
        let (_, mut limiter) = call_limiter(u64::MAX);
        assert!(limiter.memory_growing(0, 90, None)?);
        limiter.memory_grow_failed(wasmtime::Error::msg("no"))?;
        assert!(limiter.memory_growing(0, 100, None)?);
        Ok(())
    }

    #[test]
    fn store_has_the_instance_counts_of_the_pool() {
        let (_, limiter) = call_limiter(u64::MAX);
        let most = (limits::INSTANCES, limits::MEMORIES, limits::TABLES);
        assert_eq!((limiter.instances(), limiter.memories(), limiter.tables()), most);
    }

    #[test]
    fn memory_without_address_space_is_refused() -> wasmtime::Result<()> {
        // No process has this much address space.
        let nowhere = isize::MAX as usize;
        let limits = limits::Limits { memory: u64::MAX, ..limits::Limits::default() };
        for (allocation, denied) in
            [(Allocation::OnDemand, Limit::Sandboxes), (Allocation::Pooled, Limit::TotalMemory)]
        {
            let mut limiter = limiter_of(allocation, &limits.account());
            assert!(limiter.memory_growing(0, 1, None)?);
            assert!(!limiter.memory_growing(1, nowhere, None)?);
            assert_eq!(limiter.denied().map(|(limit, _)| limit), Some(denied), "{allocation:?}");
        }
        Ok(())
    }

    #[test]
    fn refused_limit_is_reported_with_its_value() {
        let value = |limit| {
            Limiter { denied: Some(limit), ..call_limiter(u64::MAX).1 }
                .denied()
                .map(|(_, value)| value)
        };
        assert_eq!(value(Limit::Memory), Some(100));
        assert_eq!(value(Limit::AddressSpace), Some(address_space_limit().unwrap_or(u64::MAX)));
        assert_eq!(value(Limit::Tables), Some(limits::TABLE_ELEMENTS as u64));
        assert!(value(Limit::Sandboxes).is_some_and(|live| live < limits::TABLE_ELEMENTS as u64));
    }
}
