//! Memory and tables of one call, counted over all of them: wasmtime's own limits are per memory, and a guest may have many. And the memory of all calls of
//! the process, which many calls within their own limits would use up.

use super::engine::{Allocation, Runtime};
use super::limits;
use crate::tool::Limit;
use std::sync::atomic::{AtomicUsize, Ordering};
use wasmtime::ResourceLimiter;

/// What all calls of the process hold: the machine's memory knows nothing of hosts.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The budget of one store.
pub(super) struct Limiter {
    memory_limit: usize,
    allocation: Allocation,
    total: Option<Total>,
    memory: usize,
    peak: usize,
    last_memory: usize,
    elements: usize,
    last_elements: usize,
    denied: Option<Limit>,
}

/// One call's part in the memory of all calls, given back when dropped.
struct Total {
    account: &'static AtomicUsize,
    limit: usize,
    held: usize,
}

impl Total {
    fn take(&mut self, more: usize) -> bool {
        let fits = |held: usize| held.checked_add(more).filter(|sum| *sum <= self.limit);
        let taken = self.account.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        self.held += if taken { more } else { 0 };
        taken
    }

    fn give_back(&mut self, bytes: usize) {
        self.account.fetch_sub(bytes, Ordering::Relaxed);
        self.held -= bytes;
    }
}

impl Drop for Total {
    fn drop(&mut self) {
        self.account.fetch_sub(self.held, Ordering::Relaxed);
    }
}

impl Limiter {
    /// For a guest on its own, of which there are few at once.
    pub(super) fn new(memory_limit: u64) -> Self {
        let memory_limit = bytes(memory_limit);
        Self {
            memory_limit,
            allocation: Allocation::Pooled,
            total: None,
            memory: 0,
            peak: 0,
            last_memory: 0,
            elements: 0,
            last_elements: 0,
            denied: None,
        }
    }

    /// For a call, whose memory counts among that of all calls, and comes from there.
    pub(super) fn of_call(limits: &limits::Limits, allocation: Allocation) -> Self {
        let total = Total { account: &HELD, limit: bytes(limits.total_memory), held: 0 };
        Self { total: Some(total), allocation, ..Self::new(limits.memory) }
    }

    /// The first limit that was refused, if one was.
    pub(super) fn denied(&self) -> Option<(Limit, u64)> {
        let value = |limit| match limit {
            Limit::Memory => self.memory_limit as u64,
            Limit::TotalMemory => self.total.as_ref().map_or(0, |total| total.limit as u64),
            Limit::Sandboxes => Runtime::shared().map_or(0, |runtime| runtime.live()),
            _ => limits::TABLE_ELEMENTS as u64,
        };
        self.denied.map(|limit| (limit, value(limit)))
    }

    /// The most memory held at once, in bytes.
    pub(super) fn peak(&self) -> u64 {
        self.peak as u64
    }

    fn refuse(&mut self, limit: Limit) -> bool {
        self.denied.get_or_insert(limit);
        false
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let Some(sum) = self.memory.checked_add(more).filter(|sum| *sum <= self.memory_limit) else {
            return Ok(self.refuse(Limit::Memory));
        };
        if self.allocation == Allocation::OnDemand && !has_room(desired) {
            return Ok(self.refuse(Limit::Sandboxes));
        }
        if self.total.as_mut().is_some_and(|total| !total.take(more)) {
            return Ok(self.refuse(Limit::TotalMemory));
        }
        (self.last_memory, self.memory) = (more, sum);
        self.peak = self.peak.max(sum);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        let failed = std::mem::take(&mut self.last_memory);
        self.memory = self.memory.saturating_sub(failed);
        self.total.iter_mut().for_each(|total| total.give_back(failed));
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let Some(sum) = self.elements.checked_add(more).filter(|sum| *sum <= limits::TABLE_ELEMENTS) else {
            return Ok(self.refuse(Limit::Tables));
        };
        (self.last_elements, self.elements) = (more, sum);
        Ok(true)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.elements = self.elements.saturating_sub(std::mem::take(&mut self.last_elements));
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

/// Whether the address space has room for so much, and for the host beside it: what the host itself cannot allocate ends the process.
fn has_room(memory: usize) -> bool {
    let wanted = memory.saturating_add(limits::HOST_ROOM);
    // Mapped and given back at once, and never touched.
    Vec::<u8>::new().try_reserve_exact(wanted).is_ok()
}

fn bytes(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call among others that share this account, of which 150 bytes may be held.
    fn sharing(account: &'static AtomicUsize) -> Limiter {
        Limiter { total: Some(Total { account, limit: 150, held: 0 }), ..Limiter::new(100) }
    }

    #[test]
    fn the_sum_over_all_calls_is_bounded_and_comes_back_with_each() -> wasmtime::Result<()> {
        static ACCOUNT: AtomicUsize = AtomicUsize::new(0);
        let (mut one, mut other) = (sharing(&ACCOUNT), sharing(&ACCOUNT));
        assert!(one.memory_growing(0, 90, None)?);
        assert!(other.memory_growing(0, 60, None)?);
        assert!(!other.memory_growing(60, 61, None)?);
        assert_eq!(other.denied(), Some((Limit::TotalMemory, 150)));
        drop(one);
        assert!(other.memory_growing(60, 100, None)?);
        other.memory_grow_failed(wasmtime::Error::msg("no"))?;
        drop(other);
        assert_eq!(ACCOUNT.load(Ordering::Relaxed), 0);
        Ok(())
    }

    #[test]
    fn the_sum_over_all_memories_is_bounded() -> wasmtime::Result<()> {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 60, None)?);
        assert!(!limiter.memory_growing(0, 60, None)?);
        assert_eq!(limiter.denied(), Some((Limit::Memory, 100)));
        assert!(limiter.memory_growing(60, 100, None)?);
        assert_eq!(limiter.peak(), 100);
        Ok(())
    }

    #[test]
    fn a_growth_that_failed_below_is_given_back() -> wasmtime::Result<()> {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 90, None)?);
        limiter.memory_grow_failed(wasmtime::Error::msg("no"))?;
        assert!(limiter.memory_growing(0, 100, None)?);
        Ok(())
    }
}
