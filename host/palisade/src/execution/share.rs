//! A pool of a limited resource with a fair share for each owner: no owner can take all of it.
//!
//! The rule is the dynamic threshold of shared-buffer switches (Choudhury and Hahne, 1998): an
//! owner may take more only while its total does not exceed the free units. A single owner gets
//! half of the pool. `k` greedy owners that start together leave `1 / (k + 1)` of it free. Each
//! later owner gets half of the rest, so it always finds some.

mod book;
mod taking;
#[cfg(test)]
mod tests;

use crate::tool::Digest;
use book::Book;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use taking::Awaited;
pub(crate) use taking::Taking;

/// Returns the most that an owner may hold while this much is free; at least `floor`.
pub(crate) fn threshold(free: u64, floor: u64) -> u64 {
    free.max(floor)
}

/// A pool of units of one resource. Clones share it.
#[derive(Debug, Clone)]
pub struct Pool {
    book: Arc<Mutex<Book>>,
    capacity: u64,
}

/// One owner's share of a pool. Each owner has a single share while it is referenced.
#[derive(Debug)]
pub struct Share {
    pool: Pool,
    owner: Digest,
    index: usize,
    /// The number of this owner's queued requests.
    waiting: AtomicUsize,
}

/// Units held by an owner, released on drop.
#[derive(Debug)]
pub struct Grant {
    share: Arc<Share>,
    units: u64,
    lease: Option<u64>,
}

/// The error of a pool without units for this owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bound} are held, and no more is free")]
pub struct Full {
    /// The units that the owner holds if it reached its threshold, or the pool's capacity if the
    /// pool is empty.
    pub(crate) bound: u64,
}

impl Pool {
    /// Creates a pool of this many units. Each owner may hold one free unit regardless of its
    /// threshold.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self::with(Book::new(capacity), capacity)
    }

    /// Creates a pool whose grants are leases, which can be abandoned if the holder never returns
    /// them.
    pub(crate) fn leased(capacity: u64) -> Self {
        Self::with(Book::new(capacity).leasing(), capacity)
    }

    /// Creates a pool of leases in which a single owner may take everything while no other
    /// competes. Its units return within moments, so none are reserved for absent owners.
    pub(crate) fn leased_while(capacity: u64, is_contended: fn() -> bool) -> Self {
        Self::with(Book::new(capacity).leasing().shared_while(is_contended), capacity)
    }

    fn with(book: Book, capacity: u64) -> Self {
        Self { book: Arc::new(Mutex::new(book)), capacity }
    }

    /// Returns the share of an owner, the same one while it is referenced.
    pub fn share(&self, owner: Digest) -> Arc<Share> {
        let mut book = self.book();
        if let Some(known) = book.known(&owner) {
            return known;
        }
        let index = book.enter();
        let share =
            Arc::new(Share { pool: self.clone(), owner, index, waiting: AtomicUsize::new(0) });
        book.name(owner, &share);
        share
    }

    /// Returns the number of units.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the number of held units.
    pub(crate) fn held(&self) -> u64 {
        self.book().held()
    }

    /// Abandons a lease whose holder does not return it, so that its units can be granted again.
    /// Returns false if the lease has ended.
    pub(crate) fn write_off(&self, lease: u64) -> bool {
        let (is_written_off, woken) = {
            let mut book = self.book();
            (book.write_off(lease), book.serve())
        };
        wake(woken);
        is_written_off
    }

    /// Abandons all leases older than `age`.
    pub(crate) fn write_off_older_than(&self, age: Duration) {
        let woken = {
            let mut book = self.book();
            book.write_off_older_than(age);
            book.serve()
        };
        wake(woken);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Takes units if they are free for this owner now. It does not overtake the owner's queued
    /// requests.
    ///
    /// # Errors
    ///
    /// [`Full`] if the owner is at its threshold or the pool is empty.
    pub fn try_take(self: &Arc<Self>, units: u64) -> Result<Grant, Full> {
        let lease = self.pool.book().take(self.index, units)?;
        Ok(Grant { share: self.clone(), units, lease })
    }

    /// Takes one unit without a [`Grant`], of a pool without leases. The caller returns it by
    /// [`return_unit`](Self::return_unit), and references the share until then.
    ///
    /// # Errors
    ///
    /// As [`try_take`](Self::try_take).
    pub(crate) fn take_unit(&self) -> Result<(), Full> {
        self.pool.book().take(self.index, 1).map(|_| ())
    }

    /// Returns a unit that [`take_unit`](Self::take_unit) has taken.
    pub(crate) fn return_unit(&self) {
        self.give_back(1, None);
    }

    /// Waits for units. The requests of one owner are served in order, the owners round-robin.
    pub(crate) fn take(self: &Arc<Self>, units: u64) -> Taking {
        Taking::new(self.clone(), units)
    }

    /// Like [`take`](Self::take), but runs a callback with the units: at once, or on the thread
    /// that releases them. The callback must be short.
    pub(crate) fn take_then(
        self: &Arc<Self>,
        units: u64,
        then: impl FnOnce(Grant) + Send + 'static,
    ) {
        Awaited::begin(self.take(units), Box::new(then));
    }

    /// Returns the owner.
    pub(crate) fn owner(&self) -> Digest {
        self.owner
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

    fn give_back(&self, units: u64, lease: Option<u64>) {
        let woken = {
            let mut book = self.pool.book();
            book.give_back(self.index, units, lease);
            book.serve()
        };
        wake(woken);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.book().leave(&self.owner, self.index);
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
        self.share.give_back(self.units, self.lease);
    }
}

/// Wakes tasks. The pool must be unlocked, because a waker may run code that locks it again.
fn wake(woken: Vec<Waker>) {
    woken.into_iter().for_each(Waker::wake);
}
