//! The threads themselves: started when there is work, reused, ended when idle; and the book of those that are lost.

use crate::sandbox::limits;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How long a thread without work waits for more before it ends.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Detached threads: neither a runtime that shuts down nor a process that ends waits for one.
pub(super) struct Pool {
    /// One permit for each thread that may work; one that is lost keeps its own until it is replaced.
    pub(super) places: Arc<Semaphore>,
    /// Told when as many threads are lost as may be.
    pub(super) full: Notify,
    may_be_lost: usize,
    book: Mutex<Book>,
    work: Condvar,
}

#[derive(Default)]
struct Book {
    next: u64,
    running: HashSet<u64>,
    lost: HashMap<u64, Replaced>,
    left: HashMap<u64, Left>,
    jobs: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

/// Whether another thread was let in for one that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaced {
    Yes,
    No,
}

/// Work whose caller has gone: nobody waits for it, so it is looked at when somebody asks for a place.
struct Left {
    pulse: Pulse,
    seen: u64,
    since: Instant,
}

/// Counts where a piece of work begins to run and where it waits: odd while it runs, and from its end on, since what it leaves is dropped then.
#[derive(Debug, Clone, Default)]
pub(super) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the work has been in one poll since this was counted.
    pub(super) fn stands_still(&self, seen: u64) -> bool {
        !seen.is_multiple_of(2) && self.count() == seen
    }
}

/// A thread's place for one piece of work, given back wherever that ends.
pub(super) struct Seat {
    pool: Arc<Pool>,
    pub(super) number: u64,
    permit: Option<OwnedSemaphorePermit>,
}

impl Seat {
    pub(super) fn pool(&self) -> Arc<Pool> {
        self.pool.clone()
    }
}

impl Drop for Seat {
    /// A place that was filled anew meanwhile is not given back twice.
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        if self.pool.end(self.number) == Some(Replaced::Yes) {
            permit.forget();
        }
    }
}

impl Pool {
    pub(super) fn new(threads: u32, may_be_lost: u32) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(threads as usize)),
            full: Notify::new(),
            may_be_lost: may_be_lost as usize,
            book: Mutex::default(),
            work: Condvar::new(),
        })
    }

    /// Threads that are lost at this moment.
    pub(super) fn lost(&self) -> usize {
        self.look_after_those_left();
        self.book().lost.len()
    }

    /// How many may be, if they are.
    pub(super) fn exhausted(&self) -> Option<usize> {
        (self.lost() >= self.may_be_lost).then_some(self.may_be_lost)
    }

    /// From now on nobody waits for this work.
    pub(super) fn leave(&self, number: u64, pulse: Pulse) {
        let mut book = self.book();
        if book.running.contains(&number) {
            let left = Left { seen: pulse.count(), pulse, since: Instant::now() };
            book.left.insert(number, left);
        }
    }

    fn look_after_those_left(&self) {
        let (mut stuck, now) = (Vec::new(), Instant::now());
        for (number, left) in &mut self.book().left {
            if !left.pulse.stands_still(left.seen) {
                (left.seen, left.since) = (left.pulse.count(), now);
            } else if now.duration_since(left.since) >= limits::THREAD_GRACE {
                stuck.push(*number);
            }
        }
        for number in stuck {
            self.write_off(number);
        }
    }

    pub(super) fn seat(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Seat {
        let mut book = self.book();
        let number = book.next;
        book.next += 1;
        book.running.insert(number);
        Seat { pool: self.clone(), number, permit: Some(permit) }
    }

    /// Gives work to an idle thread, or to a new one.
    pub(super) fn start(self: &Arc<Self>, job: Job) -> io::Result<()> {
        let mut book = self.book();
        if book.idle > book.jobs.len() {
            book.jobs.push_back(job);
            self.work.notify_one();
            return Ok(());
        }
        drop(book);
        let pool = self.clone();
        thread::Builder::new().name("palisade-call".to_owned()).spawn(move || pool.serve(job)).map(drop)
    }

    /// Writes a thread off that still works on this, and lets another in for it, up to the cap. False where it has ended.
    pub(super) fn write_off(&self, number: u64) -> bool {
        let mut book = self.book();
        if !book.running.remove(&number) {
            return book.lost.contains_key(&number);
        }
        book.left.remove(&number);
        let replaced = if book.lost.len() < self.may_be_lost { Replaced::Yes } else { Replaced::No };
        book.lost.insert(number, replaced);
        let (lost, is_full) = (book.lost.len(), book.lost.len() >= self.may_be_lost);
        drop(book);
        tracing::warn!(lost, "the thread of a call hangs and was given up");
        if replaced == Replaced::Yes {
            self.places.add_permits(1);
        }
        if is_full {
            self.full.notify_waiters();
        }
        true
    }

    /// Lets idle threads end now. Those that work end when they have come back.
    pub(super) fn close(&self) {
        self.book().is_closed = true;
        self.work.notify_all();
    }

    /// The work is over, and whether it had been written off.
    fn end(&self, number: u64) -> Option<Replaced> {
        let mut book = self.book();
        book.running.remove(&number);
        book.left.remove(&number);
        let lost = book.lost.remove(&number);
        drop(book);
        if lost.is_some() {
            tracing::warn!("a thread that was given up has come back");
        }
        lost
    }

    fn serve(&self, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next {
            // A panic is caught where the work is polled; this one would be of whatever is dropped after it.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a call panicked at its very end");
            }
            next = self.next_job();
        }
    }

    fn next_job(&self) -> Option<Job> {
        let mut book = self.book();
        book.idle += 1;
        let mut waits = true;
        while book.jobs.is_empty() && !book.is_closed && waits {
            let (back, timeout) = self.work.wait_timeout(book, IDLE).unwrap_or_else(PoisonError::into_inner);
            (book, waits) = (back, !timeout.timed_out());
        }
        book.idle -= 1;
        book.jobs.pop_front()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
