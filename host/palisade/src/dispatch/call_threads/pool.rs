//! The worker threads of calls, with the records of those that hang.

use crate::execution::share::{Grant, Owner, Pool, Share};
use crate::execution::thread_pool::{Job, ThreadPool};
use crate::sandbox::limits;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The threads of one host, with a slot for each.
pub(super) struct WorkerPool {
    /// One leased slot per concurrent thread. A hanging thread keeps its slot until it is replaced.
    pub(super) permits: Pool,
    /// Notified when a thread hangs, which may reach a limit.
    pub(super) hung: Notify,
    /// One slot for each hanging thread that was replaced, so that the calls of one owner do not
    /// take those of all others.
    lost: Pool,
    state: Mutex<PoolState>,
    threads: Arc<ThreadPool>,
}

#[derive(Default)]
struct PoolState {
    next: u64,
    running: HashMap<u64, Running>,
    /// The hanging threads, each with its slot if it was replaced.
    lost: HashMap<u64, Option<Grant>>,
    orphans: HashMap<u64, Orphan>,
}

/// Work in flight.
struct Running {
    lease: Option<u64>,
    /// Its owner's share of the slots for hanging threads.
    lost: Arc<Share>,
}

/// Work without a caller. Nothing polls it, so it is checked when a slot is requested.
struct Orphan {
    heartbeat: Heartbeat,
    seen: u64,
    since: Instant,
}

/// Counts the polls of a piece of work, as a heartbeat. The count is odd while the work runs, and
/// also after its end, while its state is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the work has been in a single poll since `seen`.
    pub(super) fn is_unchanged_in_poll(&self, seen: u64) -> bool {
        !seen.is_multiple_of(2) && self.count() == seen
    }
}

/// A thread's slot for one piece of work, released on drop.
pub(in crate::dispatch) struct Permit {
    pool: Arc<WorkerPool>,
    pub(super) number: u64,
    _grant: Grant,
}

impl Permit {
    pub(super) fn pool(&self) -> Arc<WorkerPool> {
        self.pool.clone()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.pool.end(self.number);
    }
}

impl WorkerPool {
    pub(super) fn new(threads: u32, max_lost: u32) -> Arc<Self> {
        Arc::new(Self {
            permits: Pool::leased(u64::from(threads)),
            hung: Notify::new(),
            lost: Pool::new(u64::from(max_lost)),
            state: Mutex::default(),
            threads: ThreadPool::new("palisade-call"),
        })
    }

    /// Returns the number of threads that hang now.
    pub(super) fn lost(&self) -> usize {
        self.check_orphans();
        self.state().lost.len()
    }

    /// Returns the limit on hanging threads if it is reached, or this owner has its share of it.
    pub(super) fn exhausted(&self, owner: &Owner) -> Option<u64> {
        self.check_orphans();
        let free = self.lost.share_of(owner).try_take(1);
        free.err().map(|_| self.lost.capacity())
    }

    /// Records that the work has lost its caller.
    pub(super) fn orphan(&self, number: u64, heartbeat: Heartbeat) {
        let mut state = self.state();
        if state.running.contains_key(&number) {
            let orphan = Orphan { seen: heartbeat.count(), heartbeat, since: Instant::now() };
            state.orphans.insert(number, orphan);
        }
    }

    fn check_orphans(&self) {
        let mut stuck = Vec::new();
        let now = Instant::now();
        for (number, orphan) in &mut self.state().orphans {
            if !orphan.heartbeat.is_unchanged_in_poll(orphan.seen) {
                orphan.seen = orphan.heartbeat.count();
                orphan.since = now;
            } else if now.duration_since(orphan.since) >= limits::THREAD_GRACE {
                stuck.push(*number);
            }
        }
        for number in stuck {
            self.abandon(number);
        }
    }

    pub(super) fn permit(self: &Arc<Self>, grant: Grant, owner: &Owner) -> Permit {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let running = Running { lease: grant.lease(), lost: self.lost.share_of(owner) };
        state.running.insert(number, running);
        Permit { pool: self.clone(), number, _grant: grant }
    }

    /// Runs a job on an idle thread or on a new one.
    pub(super) fn start(&self, job: Job) -> io::Result<()> {
        self.threads.start(job).map_err(|unstarted| unstarted.error)
    }

    /// Abandons the thread of this work and, up to the limit, lets another take its slot. Returns
    /// false if the work has ended.
    pub(super) fn abandon(&self, number: u64) -> bool {
        let mut state = self.state();
        let Some(running) = state.running.remove(&number) else {
            return state.lost.contains_key(&number);
        };
        state.orphans.remove(&number);
        let slot = running.lost.try_take(1).ok();
        let replaced = running.lease.filter(|_| slot.is_some());
        state.lost.insert(number, slot);
        let lost = state.lost.len();
        drop(state);
        tracing::warn!(lost, "the thread of a call hangs and was given up");
        // The slot passes to a new thread; the hanging thread does not return it a second time.
        if let Some(lease) = replaced {
            self.permits.abandon(lease);
        }
        self.hung.notify_waiters();
        true
    }

    /// Ends idle threads now, and busy ones after their work.
    pub(super) fn close(&self) {
        self.threads.close();
    }

    /// Records the end of the work.
    fn end(&self, number: u64) {
        let mut state = self.state();
        state.running.remove(&number);
        state.orphans.remove(&number);
        let was_lost = state.lost.remove(&number).is_some();
        drop(state);
        if was_lost {
            tracing::warn!("a thread that was given up has come back");
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
