//! Memory and tables of one call, counted over all of them: wasmtime's own limits are per memory, and a guest may have many.

use super::limits;
use crate::tool::Limit;
use wasmtime::ResourceLimiter;

/// The budget of one store.
pub(super) struct Limiter {
    memory_limit: usize,
    memory: usize,
    peak: usize,
    last_memory: usize,
    elements: usize,
    last_elements: usize,
    denied: Option<Limit>,
}

impl Limiter {
    pub(super) fn new(memory_limit: u64) -> Self {
        let memory_limit = usize::try_from(memory_limit).unwrap_or(usize::MAX);
        Self { memory_limit, memory: 0, peak: 0, last_memory: 0, elements: 0, last_elements: 0, denied: None }
    }

    /// The first limit that was refused, if one was.
    pub(super) fn denied(&self) -> Option<(Limit, u64)> {
        let value = |limit| if limit == Limit::Memory { self.memory_limit } else { limits::TABLE_ELEMENTS };
        self.denied.map(|limit| (limit, value(limit) as u64))
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
        (self.last_memory, self.memory) = (more, sum);
        self.peak = self.peak.max(sum);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory = self.memory.saturating_sub(std::mem::take(&mut self.last_memory));
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

#[cfg(test)]
mod tests {
    use super::*;

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
