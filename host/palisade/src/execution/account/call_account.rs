//! The account of one call, and the reservations in it.

use super::address_space::AddressSpaceGrant;
#[cfg(test)]
use super::budget_checks::BudgetChecks;
use super::client_shares::ClientShares;
use super::counters::{CallCounter, CountedBy, Counter, Owed, PROCESS};
use crate::execution::deferred_drop::retry_after_drops;
use crate::execution::share::threshold;
use crate::tool::budget::{Budget, Exhausted};
use std::sync::{Arc, OnceLock};

/// The memory that the host may use for a call beyond the guest's, in bytes: results, parsed JSON,
/// tables and the input. With the data that the engine copies out of the guest at once (8 MiB), a
/// call takes at most 32 MiB more than its limit.
pub(crate) const HOST_DATA: u64 = 24 << 20;

/// The limits on memory held at once, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The limit of one call.
    pub call: u64,
    /// The limit of all calls of the process together.
    pub total: u64,
}

/// The account of one call. It also counts towards the process's total and, once the call has an
/// owner, towards the owner's share of that total. Clones share the account. Dropping the last
/// clone releases all remaining reservations.
#[derive(Debug, Clone)]
pub struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    process: &'static Counter,
    limits: MemoryLimits,
    /// The allowance of the host beyond the call's limit.
    host: u64,
    /// The client that sent the input.
    client: Option<ClientShares>,
    /// The memory that all calls of this call's owner hold.
    owner: OnceLock<Arc<Counter>>,
    held: CallCounter,
    address_space: AddressSpaceGrant,
    #[cfg(test)]
    checks: BudgetChecks,
}

impl Inner {
    /// The most that this account may hold, in bytes.
    fn most(&self) -> u64 {
        self.limits.call.saturating_add(self.host)
    }

    /// Adds to the process's total, and to the owner's share of it.
    fn add(&self, bytes: u64, counted_by: CountedBy) -> bool {
        if !self.process.add(bytes, self.limits.total) {
            return false;
        }
        let client = self.client.as_ref().map(ClientShares::memory);
        if client.is_some_and(|client| !self.add_to_share(client, bytes)) {
            self.process.subtract(bytes);
            return false;
        }
        let has_room =
            self.owner_in(counted_by).is_none_or(|owner| self.add_to_share(owner, bytes));
        if !has_room {
            self.process.subtract(bytes);
            self.subtract_from_client(bytes);
        }
        has_room
    }

    /// Adds memory that the total already counts to an owner's share. An owner always gets the
    /// limit of one call; beyond that it must not hold more than remains free of the total.
    fn add_to_share(&self, owner: &Counter, bytes: u64) -> bool {
        let free = self.limits.total.saturating_sub(self.process.get());
        owner.add(bytes, threshold(free, self.most()))
    }

    /// Subtracts from all counters but the call's own.
    fn subtract(&self, bytes: u64, counted_by: CountedBy) {
        self.process.subtract(bytes);
        self.subtract_from_client(bytes);
        self.subtract_from_share(bytes, counted_by);
    }

    fn subtract_from_client(&self, bytes: u64) {
        if let Some(client) = &self.client {
            client.memory().subtract(bytes);
        }
    }

    /// Subtracts from the owner's share, if it counts this call.
    fn subtract_from_share(&self, bytes: u64, counted_by: CountedBy) {
        if let Some(owner) = self.owner_in(counted_by) {
            owner.subtract(bytes);
        }
    }

    fn owner_in(&self, counted_by: CountedBy) -> Option<&Counter> {
        match counted_by {
            CountedBy::Process => None,
            CountedBy::ProcessAndOwner => self.owner.get().map(|owner| &**owner),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.subtract(self.held.get(), self.held.counted_by());
    }
}

impl Account {
    /// Creates an empty account, limited for the guest by `limits` and for the host by
    /// 24 MiB more.
    #[must_use]
    pub fn new(limits: MemoryLimits) -> Self {
        Self::within(&PROCESS, limits, HOST_DATA, None)
    }

    /// Like [`new`](Self::new), for a message of this client. All memory of the call counts towards
    /// the client's share of the total as well.
    #[must_use]
    pub fn of_client(limits: MemoryLimits, client: ClientShares) -> Self {
        Self::within(&PROCESS, limits, HOST_DATA, Some(client))
    }

    /// Returns the shares of the client that sent the input, if a server keeps shares for it.
    pub(crate) fn client(&self) -> Option<&ClientShares> {
        self.0.client.as_ref()
    }

    /// Creates an account with exactly these limits and no allowance for the host.
    #[must_use]
    pub fn exactly(limits: MemoryLimits) -> Self {
        Self::within(&PROCESS, limits, 0, None)
    }

    fn within(
        process: &'static Counter,
        limits: MemoryLimits,
        host: u64,
        client: Option<ClientShares>,
    ) -> Self {
        Self(Arc::new(Inner {
            process,
            limits,
            host,
            client,
            owner: OnceLock::new(),
            held: CallCounter::default(),
            address_space: AddressSpaceGrant::default(),
            #[cfg(test)]
            checks: BudgetChecks::default(),
        }))
    }

    /// Counts all memory of the call, held and future, towards its owner's share as well. Later
    /// owners are ignored.
    ///
    /// # Errors
    ///
    /// [`Exhausted::TotalMemory`] if the share has no room for the memory that the call holds; the
    /// call has no owner then.
    pub(crate) fn assign(&self, owner: &Arc<Counter>) -> Result<(), Exhausted> {
        let inner = &*self.0;
        if inner.owner.get().is_some() {
            return Ok(());
        }
        let expected = inner.held.get();
        if !retry_after_drops(|| inner.add_to_share(owner, expected)) {
            return Err(Exhausted::TotalMemory { limit: inner.limits.total });
        }
        if inner.owner.set(owner.clone()).is_err() {
            owner.subtract(expected);
            return Ok(());
        }
        // Another thread may have released memory since.
        let held = inner.held.assign();
        owner.add_always(held.saturating_sub(expected));
        owner.subtract(expected.saturating_sub(held));
        Ok(())
    }

    /// Reserves memory, in bytes, until the charge is dropped.
    ///
    /// # Errors
    ///
    /// The errors of [`reserve`](Self::reserve).
    pub fn charge(&self, bytes: u64) -> Result<Charge, Exhausted> {
        self.reserve(bytes)?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// Creates a charge of zero bytes.
    pub(crate) fn empty_charge(&self) -> Charge {
        Charge { account: self.clone(), bytes: 0 }
    }

    /// Returns the number of bytes that the call holds.
    pub fn held(&self) -> u64 {
        self.0.held.get()
    }

    /// Returns the limits of the account.
    pub(crate) fn limits(&self) -> MemoryLimits {
        self.0.limits
    }

    /// Reserves memory, in bytes, until it is released or the account is dropped.
    ///
    /// # Errors
    ///
    /// [`Exhausted::CallMemory`], [`Exhausted::TotalMemory`] or [`Exhausted::AddressSpace`];
    /// nothing is reserved then.
    pub fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        self.count(bytes)?;
        self.0.address_space.grow(bytes).inspect_err(|_| self.release(bytes))
    }

    /// Like [`reserve`](Self::reserve), without the check of the address space.
    fn count(&self, bytes: u64) -> Result<(), Exhausted> {
        let inner = &*self.0;
        let Some(counted_by) = inner.held.add(bytes, inner.most()) else {
            return Err(Exhausted::CallMemory { limit: inner.limits.call });
        };
        if !retry_after_drops(|| inner.add(bytes, counted_by)) {
            let now = inner.held.subtract(bytes);
            if now != counted_by {
                // The call got its owner meanwhile, with these bytes.
                inner.subtract_from_share(bytes, now);
            }
            return Err(Exhausted::TotalMemory { limit: inner.limits.total });
        }
        Ok(())
    }

    /// Counts memory that is already in use, regardless of the limits.
    pub fn owe(&self, bytes: u64) {
        let inner = &*self.0;
        inner.process.add_always(bytes);
        if let Some(client) = &inner.client {
            client.memory().add_always(bytes);
        }
        if let Some(owner) = inner.owner_in(inner.held.add_always(bytes)) {
            owner.add_always(bytes);
        }
    }

    /// Sets an action for each check of long work under this account, before its verdict. The
    /// action gets the number of the check, from one.
    #[cfg(test)]
    pub(crate) fn on_budget_check(
        &self,
        action: impl Fn(usize, &dyn Budget) + Send + Sync + 'static,
    ) {
        self.0.checks.set_action(action);
    }

    /// Waits until no work holds the account any more, and returns the number of checks.
    #[cfg(test)]
    pub(crate) async fn count_budget_checks(self) -> usize {
        while Arc::strong_count(&self.0) > 1 {
            tokio::task::yield_now().await;
        }
        self.0.checks.count()
    }

    #[cfg(test)]
    pub(super) fn budget_checks(&self) -> &BudgetChecks {
        &self.0.checks
    }

    /// Releases reserved memory, in bytes.
    pub(crate) fn release(&self, bytes: u64) {
        let inner = &*self.0;
        inner.subtract(bytes, inner.held.subtract(bytes));
    }
}

/// Reserved memory, released on drop.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    bytes: u64,
}

impl Charge {
    /// Returns the account of the reservation.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Reserves more memory for the guest, in bytes. The sandbox checks the address space for it.
    ///
    /// # Errors
    ///
    /// The errors of [`Account::reserve`]; the charge is unchanged then.
    pub(crate) fn grow(&mut self, more: u64) -> Result<(), Exhausted> {
        self.account.count(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Releases a part, in bytes.
    pub(crate) fn shrink(&mut self, less: u64) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.account.release(less);
    }

    /// Moves the memory out of the call's account, which may end first. It still counts towards the
    /// process's total.
    pub fn into_owed(mut self) -> Owed {
        let bytes = std::mem::take(&mut self.bytes);
        let inner = &*self.account.0;
        inner.subtract_from_client(bytes);
        inner.subtract_from_share(bytes, inner.held.subtract(bytes));
        Owed::from_counted(inner.process, bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}

/// A budget without a deadline, for work that is bounded by the length of its input.
impl Budget for Account {
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        Self::reserve(self, bytes)
    }

    fn release(&self, bytes: u64) {
        Self::release(self, bytes);
    }

    fn check(&self) -> Result<(), Exhausted> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
