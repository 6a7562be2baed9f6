//! A pool of units of one resource, the shares of its owners, and the units that they hold.

use super::group::Groups;
use super::scheduler::{Full, Scheduler};
use crate::tool::Digest;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// A pool of units of one resource. Clones share it.
#[derive(Debug, Clone)]
pub struct Pool {
    scheduler: Arc<Mutex<Scheduler<Share>>>,
    capacity: u64,
    /// The number of taken slots beside the units.
    beside: Arc<AtomicU64>,
}

/// A slot beside the units of a pool, released on drop.
#[derive(Debug)]
pub(crate) struct Beside<'a>(&'a AtomicU64);

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An owner of shares: its name, and the groups that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    name: Digest,
    groups: Groups,
}

impl Owner {
    /// Creates an owner. All uses of one name must have the same groups.
    pub(crate) fn new(name: Digest, groups: Groups) -> Self {
        Self { name, groups }
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> Digest {
        self.name
    }

    /// Returns the groups.
    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }
}

/// One owner's share of a pool. Each owner has a single share while it is referenced.
#[derive(Debug)]
pub struct Share {
    pub(super) pool: Pool,
    owner: Owner,
    pub(super) index: usize,
    /// The number of this owner's queued requests.
    pub(super) waiting: AtomicUsize,
}

/// Units held by an owner, released on drop.
#[derive(Debug)]
pub struct Grant {
    pub(super) share: Arc<Share>,
    pub(super) units: u64,
    pub(super) lease: Option<u64>,
}

impl Pool {
    /// Creates a pool of this many units. Each owner may hold one free unit regardless of its
    /// threshold.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self::from_scheduler(Scheduler::new(capacity), capacity)
    }

    /// Creates a pool whose grants are leases, which can be abandoned if the holder never returns
    /// them.
    pub(crate) fn leased(capacity: u64) -> Self {
        Self::from_scheduler(Scheduler::new(capacity).with_leases(), capacity)
    }

    /// Creates a pool of leases in which a single owner may take everything while no other
    /// competes. Its units return within moments, so none are reserved for absent owners.
    pub(crate) fn leased_while(capacity: u64, is_contended: fn() -> bool) -> Self {
        let scheduler = Scheduler::new(capacity).with_leases().shared_while(is_contended);
        Self::from_scheduler(scheduler, capacity)
    }

    fn from_scheduler(scheduler: Scheduler<Share>, capacity: u64) -> Self {
        Self { scheduler: Arc::new(Mutex::new(scheduler)), capacity, beside: Arc::default() }
    }

    /// Returns the share of an owner that belongs to no group, the same one while it is referenced.
    pub fn share(&self, owner: Digest) -> Arc<Share> {
        self.share_of(&Owner::new(owner, Groups::NONE))
    }

    /// Returns the share of an owner, the same one while it is referenced.
    pub(crate) fn share_of(&self, owner: &Owner) -> Arc<Share> {
        let mut scheduler = self.scheduler();
        if let Some(known) = scheduler.known(&owner.name) {
            return known;
        }
        let index = scheduler.enter(owner.groups.clone());
        let share = Arc::new(Share {
            pool: self.clone(),
            owner: owner.clone(),
            index,
            waiting: AtomicUsize::new(0),
        });
        scheduler.name(owner.name, &share);
        share
    }

    /// Returns the number of units.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Takes one of the slots beside the units, without a lock, if one is free now. There are as
    /// many as units.
    pub(crate) fn beside(&self) -> Option<Beside<'_>> {
        let place = Beside(&self.beside);
        (self.beside.fetch_add(1, Ordering::Relaxed) < self.capacity).then_some(place)
    }

    /// Returns the number of held units.
    pub(crate) fn held(&self) -> u64 {
        self.scheduler().held()
    }

    /// Abandons a lease whose holder does not return it, so that its units can be granted again.
    /// Returns false if the lease has ended.
    pub(crate) fn abandon(&self, lease: u64) -> bool {
        let mut scheduler = self.scheduler();
        let is_abandoned = scheduler.abandon(lease);
        let woken = scheduler.serve();
        drop(scheduler);
        wake(woken);
        is_abandoned
    }

    /// Abandons all leases older than `age`.
    pub(crate) fn abandon_older_than(&self, age: Duration) {
        let woken = {
            let mut scheduler = self.scheduler();
            scheduler.abandon_older_than(age);
            scheduler.serve()
        };
        wake(woken);
    }

    pub(super) fn scheduler(&self) -> MutexGuard<'_, Scheduler<Share>> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Takes units if they are free for this owner now. It does not overtake the owner's queued
    /// requests.
    ///
    /// # Errors
    ///
    /// [`Full`] if the owner or one of its groups is at its threshold, or the pool is empty.
    pub fn try_take(self: &Arc<Self>, units: u64) -> Result<Grant, Full> {
        let lease = self.pool.scheduler().take(self.index, units)?;
        Ok(Grant { share: self.clone(), units, lease })
    }

    /// Takes one unit without a [`Grant`], of a pool without leases. The caller returns it by
    /// [`return_unit`](Self::return_unit), and references the share until then.
    ///
    /// # Errors
    ///
    /// As [`try_take`](Self::try_take).
    pub(crate) fn take_unit(&self) -> Result<(), Full> {
        self.pool.scheduler().take(self.index, 1).map(|_| ())
    }

    /// Returns a unit that [`take_unit`](Self::take_unit) has taken.
    pub(crate) fn return_unit(&self) {
        self.release(1, None);
    }

    /// Returns the owner.
    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns the number of this owner's queued requests.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the owner's number, from 1. It may be reused after the share is dropped.
    pub(crate) fn number(&self) -> u64 {
        self.index as u64 + 1
    }

    /// Returns the pool of this share.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    fn release(&self, units: u64, lease: Option<u64>) {
        let woken = {
            let mut scheduler = self.pool.scheduler();
            scheduler.release(self.index, units, lease);
            scheduler.serve()
        };
        wake(woken);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.scheduler().leave(&self.owner.name, self.index);
    }
}

impl Grant {
    /// Returns the lease, in a pool of leases.
    pub(crate) fn lease(&self) -> Option<u64> {
        self.lease
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.share.release(self.units, self.lease);
    }
}

/// Wakes tasks. The pool must be unlocked, because a waker may run code that locks it again.
pub(super) fn wake(woken: Vec<Waker>) {
    woken.into_iter().for_each(Waker::wake);
}
