//! A pool of what the process has only so much of, and the shares of its owners: no owner can take
//! all of it.
//!
//! The rule is the dynamic threshold of shared-buffer switches (Choudhury and Hahne, 1998): an
//! owner takes more only while it then holds no more than is still free. So one owner gets half of
//! the pool, `k` greedy owners that begin together leave `1 / (k + 1)` of it free, each that comes
//! later gets half of what is left, and always finds some.

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

/// The rule: how much an owner may hold while so much is free beside it. Up to `floor` it may in
/// any case.
pub(crate) fn threshold(free: u64, floor: u64) -> u64 {
    free.max(floor)
}

/// What there is of one thing, in units. Cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    book: Arc<Mutex<Book>>,
    capacity: u64,
}

/// One owner's share of a pool. There is one for each owner, as long as it is referred to.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Pool,
    owner: Digest,
    index: usize,
    /// Requests of this owner that wait.
    waiting: AtomicUsize,
}

/// Units that an owner holds. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Grant {
    share: Arc<Share>,
    units: u64,
    lease: Option<u64>,
}

/// The pool has no units for this owner now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bound} are held, and no more is free")]
pub(crate) struct Full {
    /// What the owner holds where that is its threshold; the capacity of the pool where the pool is
    /// empty.
    pub(crate) bound: u64,
}

impl Pool {
    /// A pool of so many units, of which each owner may hold one whatever the others hold.
    pub(crate) fn new(capacity: u64) -> Self {
        Self::with(Book::new(capacity), capacity)
    }

    /// The same, where each grant is a lease that can be written off: its holder may never give it
    /// back.
    pub(crate) fn leased(capacity: u64) -> Self {
        Self::with(Book::new(capacity).leasing(), capacity)
    }

    /// A pool of leases in which an owner may take everything as long as no other competes: units
    /// that come back within a moment need not be kept free for an owner that may never come.
    pub(crate) fn leased_while(capacity: u64, is_contended: fn() -> bool) -> Self {
        Self::with(Book::new(capacity).leasing().shared_while(is_contended), capacity)
    }

    fn with(book: Book, capacity: u64) -> Self {
        Self { book: Arc::new(Mutex::new(book)), capacity }
    }

    /// The share of an owner, the same for all who ask while it is referred to.
    pub(crate) fn share(&self, owner: Digest) -> Arc<Share> {
        let mut book = self.book();
        if let Some(known) = book.known(&owner) {
            return known;
        }
        let index = book.enter();
        let share = Arc::new(Share { pool: self.clone(), owner, index, waiting: AtomicUsize::new(0) });
        book.name(owner, &share);
        share
    }

    /// How many units there are.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many units are held.
    pub(crate) fn held(&self) -> u64 {
        self.book().held()
    }

    /// Writes off a lease whose holder does not give it back: another may have its units. False
    /// where it has ended.
    pub(crate) fn write_off(&self, lease: u64) -> bool {
        let (is_written_off, woken) = {
            let mut book = self.book();
            (book.write_off(lease), book.serve())
        };
        wake(woken);
        is_written_off
    }

    /// Writes off all leases that are older than this.
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
    /// Takes units that are free for this owner now. Does not overtake those of its requests that
    /// wait.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub(crate) fn try_take(self: &Arc<Self>, units: u64) -> Result<Grant, Full> {
        let lease = self.pool.book().take(self.index, units)?;
        Ok(Grant { share: self.clone(), units, lease })
    }

    /// Takes units once they are free for this owner: the requests of one owner in their order, the
    /// owners in turns.
    pub(crate) fn take(self: &Arc<Self>, units: u64) -> Taking {
        Taking::new(self.clone(), units)
    }

    /// Takes units once they are free for this owner, in their turn as [`take`](Self::take), and does this with them:
    /// at once, or on the thread that frees them. It must not take long.
    pub(crate) fn take_then(self: &Arc<Self>, units: u64, then: impl FnOnce(Grant) + Send + 'static) {
        Awaited::begin(self.take(units), Box::new(then));
    }

    /// Whose share it is.
    pub(crate) fn owner(&self) -> Digest {
        self.owner
    }

    /// How many requests of this owner wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The number of the owner, from 1 on; an owner that comes after it is gone may have the same
    /// one.
    pub(crate) fn number(&self) -> u64 {
        self.index as u64 + 1
    }

    /// The pool that this is a share of.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.book().leave(&self.owner, self.index);
    }
}

impl Grant {
    /// The lease, in a pool of leases.
    pub(crate) fn lease(&self) -> Option<u64> {
        self.lease
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let woken = {
            let mut book = self.share.pool.book();
            book.give_back(self.share.index, self.units, self.lease);
            book.serve()
        };
        wake(woken);
    }
}

/// With the book closed: a waker may run anything, also another look into it.
fn wake(woken: Vec<Waker>) {
    woken.into_iter().for_each(Waker::wake);
}
