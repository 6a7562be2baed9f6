//! The memory account of one call. Every layer of the host reserves from it before allocating for
//! the call.

mod part;
mod room;

use super::offload::making_room;
use crate::tool::budget::{Budget, Exhausted};
pub(crate) use part::Part;
use room::Granted;
pub(crate) use room::{address_space_limit, has_room};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The memory that the host may use for a call beyond the guest's, in bytes: results, parsed JSON,
/// tables and the input. With the data that the engine copies out of the guest at once (8 MiB), a
/// call takes at most 32 MiB more than its limit.
pub(crate) const HOST_DATA: u64 = 24 << 20;

/// The memory of all calls in the process. It is global because several hosts share the machine's
/// memory.
static PROCESS: Sum = Sum::new();

/// A sum of reserved memory, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Sum(AtomicU64);

impl Sum {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to the sum if the result stays within the limit; returns false otherwise.
    fn add(&self, more: u64, limit: u64) -> bool {
        let added = |held: u64| held.checked_add(more).filter(|sum| *sum <= limit);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_ok()
    }

    fn add_always(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Memory that is in use regardless of the limits, such as events queued for a subscriber. Its
/// holder bounds it; it counts towards the process's total.
#[derive(Debug)]
pub(crate) struct Owed {
    process: &'static Sum,
    bytes: u64,
}

impl Default for Owed {
    fn default() -> Self {
        Self { process: &PROCESS, bytes: 0 }
    }
}

impl Owed {
    /// Counts this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut owed = Self::default();
        owed.set(bytes);
        owed
    }

    /// Replaces the counted number of bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes as u64);
        if self.bytes > before {
            self.process.add_always(self.bytes - before);
        } else if self.bytes < before {
            self.process.subtract(before - self.bytes);
        }
    }

    /// Returns the counted number of bytes.
    #[cfg(test)]
    pub(crate) fn get(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The limits on memory held at once, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryLimits {
    /// The limit of one call.
    pub(crate) call: u64,
    /// The limit of all calls of the process together.
    pub(crate) total: u64,
}

/// The account of one call, which also counts towards the process's total. Clones share it.
/// Dropping the last clone releases all remaining reservations.
#[derive(Debug, Clone)]
pub(crate) struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    process: &'static Sum,
    limits: MemoryLimits,
    /// The allowance of the host beyond the call's limit.
    host: u64,
    held: Sum,
    granted: Granted,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.process.subtract(self.held.get());
    }
}

impl Account {
    /// Creates an empty account, limited for the guest by `limits` and for the host by
    /// [`HOST_DATA`] more.
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        Self::within(&PROCESS, limits, HOST_DATA)
    }

    /// Creates an account with exactly these limits and no allowance for the host.
    #[cfg(test)]
    pub(crate) fn exactly(limits: MemoryLimits) -> Self {
        Self::within(&PROCESS, limits, 0)
    }

    fn within(process: &'static Sum, limits: MemoryLimits, host: u64) -> Self {
        Self(Arc::new(Inner { process, limits, host, held: Sum::new(), granted: Granted::default() }))
    }

    /// Reserves memory, in bytes, until the charge is dropped.
    ///
    /// # Errors
    ///
    /// The errors of [`reserve`](Self::reserve).
    pub(crate) fn charge(&self, bytes: u64) -> Result<Charge, Exhausted> {
        self.reserve(bytes)?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// Creates a charge of zero bytes.
    pub(crate) fn empty_charge(&self) -> Charge {
        Charge { account: self.clone(), bytes: 0 }
    }

    /// Returns the number of bytes that the call holds.
    pub(crate) fn held(&self) -> u64 {
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
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        self.count(bytes)?;
        self.0.granted.grow(bytes).inspect_err(|_| self.release(bytes))
    }

    /// Like [`reserve`](Self::reserve), without the check of the address space.
    fn count(&self, bytes: u64) -> Result<(), Exhausted> {
        let inner = &*self.0;
        if !inner.held.add(bytes, inner.limits.call.saturating_add(inner.host)) {
            return Err(Exhausted::CallMemory { limit: inner.limits.call });
        }
        if !making_room(|| inner.process.add(bytes, inner.limits.total)) {
            inner.held.subtract(bytes);
            return Err(Exhausted::TotalMemory { limit: inner.limits.total });
        }
        Ok(())
    }

    /// Counts memory that is already in use, regardless of the limits.
    pub(crate) fn owe(&self, bytes: u64) {
        self.0.held.add_always(bytes);
        self.0.process.add_always(bytes);
    }

    /// Releases reserved memory, in bytes.
    pub(crate) fn release(&self, bytes: u64) {
        self.0.held.subtract(bytes);
        self.0.process.subtract(bytes);
    }
}

/// Reserved memory, released on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Account,
    bytes: u64,
}

impl Charge {
    /// Returns the account of the reservation.
    pub(crate) fn account(&self) -> &Account {
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
    pub(crate) fn into_owed(mut self) -> Owed {
        let bytes = std::mem::take(&mut self.bytes);
        let inner = &*self.account.0;
        inner.held.subtract(bytes);
        Owed { process: inner.process, bytes }
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

/// The budget of the host's own work for a call: the call's memory, until its deadline or
/// cancellation.
#[derive(Debug, Clone)]
pub(crate) struct CallBudget {
    account: Account,
    deadline: Instant,
    cancel: CancellationToken,
}

impl CallBudget {
    /// Creates a budget that ends at `deadline` or when `cancel` is cancelled.
    pub(crate) fn new(account: Account, deadline: Instant, cancel: CancellationToken) -> Self {
        Self { account, deadline, cancel }
    }

    /// Returns the same budget, which also ends when the guard is dropped.
    pub(crate) fn until_dropped(&self) -> (Self, DropGuard) {
        let cancel = self.cancel.child_token();
        (Self { cancel: cancel.clone(), ..self.clone() }, cancel.drop_guard())
    }

    /// Returns the deadline.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the cancellation token of the budget.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}

impl Budget for CallBudget {
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        self.account.reserve(bytes)
    }

    fn release(&self, bytes: u64) {
        self.account.release(bytes);
    }

    fn check(&self) -> Result<(), Exhausted> {
        if self.cancel.is_cancelled() {
            Err(Exhausted::Cancelled)
        } else if Instant::now() >= self.deadline {
            Err(Exhausted::Deadline)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(process: &'static Sum) -> Account {
        let limits = MemoryLimits { call: 90, total: 150 };
        Account::within(process, limits, 10)
    }

    fn charged(account: &Account, bytes: u64) -> Result<Charge, Exhausted> {
        let mut charge = account.empty_charge();
        charge.grow(bytes).map(|()| charge)
    }

    #[test]
    fn what_is_not_released_is_given_back_with_the_account() {
        static SUM: Sum = Sum::new();
        let call = account(&SUM);
        assert_eq!((call.reserve(40), call.reserve(50)), (Ok(()), Ok(())));
        call.release(50);
        call.owe(200);
        let charge = call.empty_charge();
        assert_eq!(SUM.get(), 240);
        drop(call);
        assert_eq!(SUM.get(), 240, "a charge holds its account");
        drop(charge);
        assert_eq!(SUM.get(), 0);
    }

    #[test]
    fn a_call_holds_at_most_its_own_limit() {
        static SUM: Sum = Sum::new();
        let call = account(&SUM);
        let held = charged(&call, 100);
        assert!(held.is_ok());
        assert_eq!(charged(&call, 1).err(), Some(Exhausted::CallMemory { limit: 90 }));
        drop(held);
        assert!(charged(&call, 100).is_ok());
        assert_eq!((call.held(), SUM.get()), (0, 0));
    }

    #[test]
    fn all_calls_together_hold_at_most_the_total() {
        static SUM: Sum = Sum::new();
        let (one, other) = (account(&SUM), account(&SUM));
        let mut held = charged(&one, 60);
        assert!(held.as_mut().is_ok_and(|held| held.grow(40).is_ok()));
        assert_eq!(charged(&other, 51).err(), Some(Exhausted::TotalMemory { limit: 150 }));
        assert_eq!(other.held(), 0);
        drop(held);
        assert!(charged(&other, 51).is_ok());
    }

    #[test]
    fn what_outlives_its_call_counts_among_the_memory_of_all_calls_alone() {
        static SUM: Sum = Sum::new();
        let call = account(&SUM);
        let owed = call.charge(60).map(Charge::into_owed);
        assert_eq!((owed.is_ok(), call.held(), SUM.get()), (true, 0, 60));
        drop(call);
        assert_eq!(SUM.get(), 60);
        drop(owed);
        assert_eq!(SUM.get(), 0);
    }

    #[test]
    fn work_ends_at_the_deadline_and_at_the_cancellation() {
        static SUM: Sum = Sum::new();
        let (cancel, far) = (CancellationToken::new(), Instant::now() + std::time::Duration::from_secs(600));
        let budget = CallBudget::new(account(&SUM), far, cancel.clone());
        assert_eq!(budget.check(), Ok(()));
        assert_eq!(CallBudget { deadline: Instant::now(), ..budget.clone() }.check(), Err(Exhausted::Deadline));
        cancel.cancel();
        assert_eq!(budget.check(), Err(Exhausted::Cancelled));
    }
}
