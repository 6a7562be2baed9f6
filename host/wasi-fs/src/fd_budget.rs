//! The file descriptors that a guest holds, each counted in the budget of the host.

use std::sync::Arc;

use super::budget::ResourceBudget;
use super::quotas::Exhausted;
use super::usage::Usage;

/// One file descriptor held by a guest, returned to the budget on drop.
#[derive(Debug)]
pub(super) struct HeldFd(Arc<dyn ResourceBudget>);

impl HeldFd {
    /// Reserves one file descriptor. Must run before the open.
    pub(super) fn take(usage: &Usage) -> Result<Self, Exhausted> {
        // Without a budget there is no mount, and so nothing to open.
        let budget = usage.budget().ok_or(Exhausted::OpenFiles(0))?;
        budget.take_descriptor().map_err(|full| Exhausted::OpenFiles(full.limit))?;
        Ok(Self(Arc::clone(budget)))
    }
}

impl Drop for HeldFd {
    fn drop(&mut self) {
        self.0.return_descriptor();
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::DescriptorLimit;
    use super::super::quotas::Quotas;
    use super::*;

    #[test]
    fn a_descriptor_beyond_the_budget_is_refused_until_one_is_returned() {
        let budget: Arc<dyn ResourceBudget> = Arc::new(DescriptorLimit::new(2));
        let call = || Usage::new(Quotas::default(), None, Some(Arc::clone(&budget)));
        let (one, other) = (call(), call());
        let (first, second) = (HeldFd::take(&one), HeldFd::take(&other));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(HeldFd::take(&one).map(drop), Err(Exhausted::OpenFiles(2)));
        drop(first);
        assert!(HeldFd::take(&other).is_ok());
        assert_eq!(
            HeldFd::take(&Usage::new(Quotas::default(), None, None)).map(drop),
            Err(Exhausted::OpenFiles(0))
        );
    }
}
