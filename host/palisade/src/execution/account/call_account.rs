//! The account of one call, and the reservations in it.

use super::address_space::AddressSpaceGrant;
#[cfg(test)]
use super::budget_checks::BudgetChecks;
use super::client_shares::ClientShares;
use super::counters::{CallCounter, CountedBy, Counter, KeptFor, Owed, PROCESS, Room};
use crate::execution::deferred_drop::retry_after_drops;
use crate::tool::budget::Exhausted;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The account of one call. It also counts towards the process's total and towards a share of it:
/// that of the client that sent the message, and, once the call has an owner, that of the owner. If
/// the owner itself belongs to a client, its share replaces that of the sender. Clones share the
/// account. Dropping the last clone releases all remaining reservations.
#[derive(Debug, Clone)]
pub struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    process: &'static Counter,
    limits: MemoryLimits,
    /// The allowance of the host beyond the call's limit.
    host: u64,
    /// The memory that the tool may hold beyond the limit that the account was created with. Its
    /// plugin has a limit of its own then.
    more: AtomicU64,
    /// The memory that the call and the calls that it makes take as a whole, in bytes: counted
    /// stacks, and what is behind the handles of powers.
    whole: AtomicU64,
    /// The account of the call that makes this one. It counts what this one counts, in place of the
    /// process and its shares.
    parent: Option<Account>,
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
        let whole = self.whole.load(Ordering::Relaxed);
        self.limit_of_call().saturating_add(self.host).saturating_add(whole)
    }

    /// The limit of the call without the allowance of the host, in bytes.
    fn limit_of_call(&self) -> u64 {
        self.limits.call.saturating_add(self.more.load(Ordering::Relaxed))
    }

    /// Adds to the process's total, and to the shares of it.
    fn add(&self, bytes: u64, counted_by: CountedBy) -> bool {
        if !self.process.add(bytes, self.limits.total) {
            return false;
        }
        let (client, owner) = self.shares_in(counted_by);
        if client.is_some_and(|client| !client.add_within(bytes, self.room(), None)) {
            self.process.subtract(bytes);
            return false;
        }
        let has_room = owner.is_none_or(|owner| owner.add_within(bytes, self.room(), None));
        if !has_room {
            self.process.subtract(bytes);
            client.inspect(|client| client.subtract(bytes));
        }
        has_room
    }

    /// Returns the room for memory that the total already counts. An owner always gets the limit of
    /// one call if its groups hold no more than that.
    fn room(&self) -> Room {
        let free = self.limits.total.saturating_sub(self.process.get());
        Room { free, floor: self.most() }
    }

    /// Adds to all counters but the call's own, regardless of the limits.
    fn add_always(&self, bytes: u64, counted_by: CountedBy) {
        self.process.add_always(bytes);
        self.add_to_shares(bytes, counted_by);
    }

    fn add_to_shares(&self, bytes: u64, counted_by: CountedBy) {
        let (client, owner) = self.shares_in(counted_by);
        client.into_iter().chain(owner).for_each(|share| share.add_always(bytes));
    }

    /// Subtracts from all counters but the call's own.
    fn subtract(&self, bytes: u64, counted_by: CountedBy) {
        self.process.subtract(bytes);
        self.subtract_from_shares(bytes, counted_by);
    }

    fn subtract_from_shares(&self, bytes: u64, counted_by: CountedBy) {
        let (client, owner) = self.shares_in(counted_by);
        client.into_iter().chain(owner).for_each(|share| share.subtract(bytes));
    }

    /// Moves memory that the shares count to those that count it now: the call may have got its
    /// owner between two steps of a reservation.
    fn recount(&self, bytes: u64, before: CountedBy, now: CountedBy) {
        if before != now {
            self.subtract_from_shares(bytes, before);
            self.add_to_shares(bytes, now);
        }
    }

    /// Returns the share of the client that sent the message, if it counts this call, and the share
    /// of the owner, if it does.
    fn shares_in(&self, counted_by: CountedBy) -> (Option<&Counter>, Option<&Counter>) {
        let owner = self.owner_in(counted_by).map(|owner| &**owner);
        let client = self.client.as_ref().map(ClientShares::memory);
        (client.filter(|_| owner.is_none_or(|owner| !owner.groups().have_caller())), owner)
    }

    /// Returns the one that the call's result is kept for.
    fn kept_for(&self, counted_by: CountedBy) -> KeptFor {
        match (self.owner_in(counted_by), &self.client) {
            (Some(owner), _) if owner.groups().have_caller() => KeptFor::Owner(owner.clone()),
            (_, Some(client)) => KeptFor::Client(client.memory().groups().clone()),
            (_, None) => KeptFor::Nobody,
        }
    }

    fn owner_in(&self, counted_by: CountedBy) -> Option<&Arc<Counter>> {
        match counted_by {
            CountedBy::Process => None,
            CountedBy::ProcessAndOwner => self.owner.get(),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (held, counted_by) = self.held.look();
        match &self.parent {
            Some(parent) => {
                parent.release(held);
                parent.0.whole.fetch_sub(self.whole.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            None => self.subtract(held, counted_by),
        }
    }
}

impl Account {
    /// Creates an empty account, limited for the guest by `limits` and for the host by
    /// 24 MiB more.
    #[must_use]
    pub fn new(limits: MemoryLimits) -> Self {
        Self::within(&PROCESS, limits, HOST_DATA, None, None)
    }

    /// Creates an empty account for a call that this call makes. All that it holds counts in this
    /// account as well, within its limit.
    #[must_use]
    pub(crate) fn nested(&self) -> Self {
        let Inner { process, limits, host, ref client, .. } = *self.0;
        Self::within(process, limits, host, client.clone(), Some(self.clone()))
    }

    /// Like [`new`](Self::new), for a message of this client. The memory of the call counts towards
    /// the client's share of the total as well, until it has an owner that belongs to a client.
    #[must_use]
    pub fn of_client(limits: MemoryLimits, client: ClientShares) -> Self {
        Self::within(&PROCESS, limits, HOST_DATA, Some(client), None)
    }

    /// Returns the shares of the client that sent the input, if a server keeps shares for it.
    pub(crate) fn client(&self) -> Option<&ClientShares> {
        self.0.client.as_ref()
    }

    /// Creates an account with exactly these limits and no allowance for the host.
    #[must_use]
    pub fn exactly(limits: MemoryLimits) -> Self {
        Self::within(&PROCESS, limits, 0, None, None)
    }

    fn within(
        process: &'static Counter,
        limits: MemoryLimits,
        host: u64,
        client: Option<ClientShares>,
        parent: Option<Self>,
    ) -> Self {
        Self(Arc::new(Inner {
            process,
            limits,
            host,
            more: AtomicU64::new(0),
            whole: AtomicU64::new(0),
            parent,
            client,
            owner: OnceLock::new(),
            held: CallCounter::default(),
            address_space: AddressSpaceGrant::default(),
            #[cfg(test)]
            checks: BudgetChecks::default(),
        }))
    }

    /// Counts all memory of the call, held and future, towards its owner's share. If the owner
    /// belongs to a client, the memory is kept for that client, and the share of the sender does
    /// not count it any more. Later owners are ignored.
    ///
    /// # Errors
    ///
    /// [`Exhausted::TotalMemory`] if the share has no room for the memory that the call holds; the
    /// call has no owner then.
    pub(crate) fn assign(&self, owner: &Arc<Counter>) -> Result<(), Exhausted> {
        let inner = &*self.0;
        if inner.owner.get().is_some() || inner.parent.is_some() {
            return Ok(());
        }
        let expected = inner.held.get();
        let from = inner.client.as_ref().map(ClientShares::memory);
        let from = from.filter(|_| owner.groups().have_caller());
        if !retry_after_drops(|| owner.add_within(expected, inner.room(), from)) {
            return Err(Exhausted::TotalMemory { limit: inner.limits.total });
        }
        if inner.owner.set(owner.clone()).is_err() {
            owner.subtract(expected);
            return Ok(());
        }
        // Another thread may have released memory since. That thread itself counts its later
        // reservations where they belong.
        let held = inner.held.assign();
        owner.add_always(held.saturating_sub(expected));
        owner.subtract(expected.saturating_sub(held));
        from.inspect(|from| from.subtract(held));
        Ok(())
    }

    /// Returns the number of bytes that the call holds.
    pub fn held(&self) -> u64 {
        self.0.held.get()
    }

    /// Returns the limits of the account.
    pub(crate) fn limits(&self) -> MemoryLimits {
        MemoryLimits { call: self.0.limit_of_call(), ..self.0.limits }
    }

    /// Raises the limit of the call to this number of bytes, for a tool whose plugin has a limit of
    /// its own. The account is often created before the tool is known. A lower number has no
    /// effect.
    pub(crate) fn allow_call(&self, bytes: u64) {
        let more = bytes.saturating_sub(self.0.limits.call);
        self.0.more.store(more, Ordering::Relaxed);
    }

    /// Raises the most that the account may hold by memory that the call takes as a whole, such as
    /// its stack, in bytes. It is reserved like other memory.
    pub(crate) fn allow_whole(&self, bytes: u64) {
        self.0.whole.fetch_add(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.0.parent {
            parent.allow_whole(bytes);
        }
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

    /// Like [`reserve`](Self::reserve), without the check of the address space. The sandbox makes
    /// it itself for the memory of guests.
    ///
    /// The shares count the memory first, and the call after them: so at the moment when the call
    /// gets its owner, the shares count all that the call holds.
    pub(super) fn count(&self, bytes: u64) -> Result<(), Exhausted> {
        let inner = &*self.0;
        let too_much = Exhausted::CallMemory { limit: inner.limit_of_call() };
        let (held, counted_by) = inner.held.look();
        if held.saturating_add(bytes) > inner.most() {
            return Err(too_much);
        }
        if let Some(parent) = &inner.parent {
            parent.count(bytes)?;
            let counted = inner.held.add(bytes, inner.most());
            return counted.map(drop).ok_or_else(|| {
                parent.release(bytes);
                too_much
            });
        }
        if !retry_after_drops(|| inner.add(bytes, counted_by)) {
            return Err(Exhausted::TotalMemory { limit: inner.limits.total });
        }
        match inner.held.add(bytes, inner.most()) {
            Some(now) => {
                inner.recount(bytes, counted_by, now);
                Ok(())
            }
            // Another thread has reserved memory for the call meanwhile.
            None => {
                inner.subtract(bytes, counted_by);
                Err(too_much)
            }
        }
    }

    /// Counts memory that is already in use, regardless of the limits.
    pub fn owe(&self, bytes: u64) {
        let inner = &*self.0;
        if let Some(parent) = &inner.parent {
            parent.owe(bytes);
            inner.held.add_always(bytes);
            return;
        }
        let (_, counted_by) = inner.held.look();
        inner.add_always(bytes, counted_by);
        inner.recount(bytes, counted_by, inner.held.add_always(bytes));
    }

    /// Counts memory that is already in use and outlives the call, such as a response, for the one
    /// that the call is charged to, in bytes.
    #[must_use]
    pub fn owed(&self, bytes: usize) -> Owed {
        let inner = &*self.0;
        if let Some(parent) = &inner.parent {
            return parent.owed(bytes);
        }
        let kept_for = inner.kept_for(inner.held.look().1);
        inner.process.add_always(bytes as u64);
        kept_for.add(bytes as u64);
        Owed::from_counted(inner.process, kept_for, bytes as u64)
    }

    /// Moves reserved memory out of the account, in bytes.
    pub(super) fn give_up(&self, bytes: u64) -> Owed {
        let inner = &*self.0;
        let counted_by = inner.held.subtract(bytes);
        if let Some(parent) = &inner.parent {
            return parent.give_up(bytes);
        }
        let kept_for = inner.kept_for(counted_by);
        if !matches!(kept_for, KeptFor::Owner(_)) {
            kept_for.add(bytes);
            inner.subtract_from_shares(bytes, counted_by);
        }
        Owed::from_counted(inner.process, kept_for, bytes)
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
        let counted_by = inner.held.subtract(bytes);
        match &inner.parent {
            Some(parent) => parent.release(bytes),
            None => inner.subtract(bytes, counted_by),
        }
    }
}

#[cfg(test)]
mod tests;
