//! The threads of calls, with the records of those that hang.

use crate::execution::crew::{Crew, Job};
use crate::execution::share::{Grant, Pool as Places};
use crate::sandbox::limits;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The threads of one host, with a permit for each.
pub(super) struct Pool {
    /// One leased permit per concurrent thread. A hanging thread keeps its permit until it is
    /// replaced.
    pub(super) places: Places,
    /// Notified when the number of hanging threads reaches its limit.
    pub(super) full: Notify,
    may_be_lost: usize,
    book: Mutex<Book>,
    crew: Arc<Crew>,
}

#[derive(Default)]
struct Book {
    next: u64,
    /// The work in flight, each with its lease.
    running: HashMap<u64, Option<u64>>,
    lost: HashSet<u64>,
    left: HashMap<u64, Left>,
}

/// Work without a caller. Nothing polls it, so it is checked when a permit is requested.
struct Left {
    pulse: Pulse,
    seen: u64,
    since: Instant,
}

/// Counts the polls of a piece of work, as a heartbeat. The count is odd while the work runs, and
/// also after its end, while its state is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the work has been in a single poll since `seen`.
    pub(super) fn stands_still(&self, seen: u64) -> bool {
        !seen.is_multiple_of(2) && self.count() == seen
    }
}

/// A thread's permit for one piece of work, released on drop.
pub(super) struct Seat {
    pool: Arc<Pool>,
    pub(super) number: u64,
    _place: Grant,
}

impl Seat {
    pub(super) fn pool(&self) -> Arc<Pool> {
        self.pool.clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.pool.end(self.number);
    }
}

impl Pool {
    pub(super) fn new(threads: u32, may_be_lost: u32) -> Arc<Self> {
        Arc::new(Self {
            places: Places::leased(u64::from(threads)),
            full: Notify::new(),
            may_be_lost: may_be_lost as usize,
            book: Mutex::default(),
            crew: Crew::new("palisade-call"),
        })
    }

    /// Returns the number of threads that hang now.
    pub(super) fn lost(&self) -> usize {
        self.look_after_those_left();
        self.book().lost.len()
    }

    /// Returns the limit on hanging threads if it is reached.
    pub(super) fn exhausted(&self) -> Option<usize> {
        (self.lost() >= self.may_be_lost).then_some(self.may_be_lost)
    }

    /// Records that the work has lost its caller.
    pub(super) fn leave(&self, number: u64, pulse: Pulse) {
        let mut book = self.book();
        if book.running.contains_key(&number) {
            let left = Left { seen: pulse.count(), pulse, since: Instant::now() };
            book.left.insert(number, left);
        }
    }

    fn look_after_those_left(&self) {
        let mut stuck = Vec::new();
        let now = Instant::now();
        for (number, left) in &mut self.book().left {
            if !left.pulse.stands_still(left.seen) {
                left.seen = left.pulse.count();
                left.since = now;
            } else if now.duration_since(left.since) >= limits::THREAD_GRACE {
                stuck.push(*number);
            }
        }
        for number in stuck {
            self.write_off(number);
        }
    }

    pub(super) fn seat(self: &Arc<Self>, place: Grant) -> Seat {
        let mut book = self.book();
        let number = book.next;
        book.next += 1;
        book.running.insert(number, place.lease());
        Seat { pool: self.clone(), number, _place: place }
    }

    /// Runs a job on an idle thread or on a new one.
    pub(super) fn start(&self, job: Job) -> io::Result<()> {
        self.crew.start(job).map_err(|unstarted| unstarted.error)
    }

    /// Abandons the thread of this work and, up to the limit, lets another take its permit. Returns
    /// false if the work has ended.
    pub(super) fn write_off(&self, number: u64) -> bool {
        let mut book = self.book();
        let Some(lease) = book.running.remove(&number) else { return book.lost.contains(&number) };
        book.left.remove(&number);
        let replaced = lease.filter(|_| book.lost.len() < self.may_be_lost);
        book.lost.insert(number);
        let lost = book.lost.len();
        let is_full = lost >= self.may_be_lost;
        drop(book);
        tracing::warn!(lost, "the thread of a call hangs and was given up");
        // The permit passes to a new thread; the hanging thread does not return it a second time.
        if let Some(lease) = replaced {
            self.places.write_off(lease);
        }
        if is_full {
            self.full.notify_waiters();
        }
        true
    }

    /// Ends idle threads now, and busy ones after their work.
    pub(super) fn close(&self) {
        self.crew.close();
    }

    /// Records the end of the work.
    fn end(&self, number: u64) {
        let mut book = self.book();
        book.running.remove(&number);
        book.left.remove(&number);
        let was_lost = book.lost.remove(&number);
        drop(book);
        if was_lost {
            tracing::warn!("a thread that was given up has come back");
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
