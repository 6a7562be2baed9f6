//! The worker threads of calls, with the records of those that hang.

use crate::execution::share::{Grant, Pool};
use crate::execution::thread_pool::{Job, ThreadPool};
use crate::sandbox::limits;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The threads of one host, with a slot for each.
pub(super) struct WorkerPool {
    /// One leased slot per concurrent thread. A hanging thread keeps its slot until it is replaced.
    pub(super) permits: Pool,
    /// Notified when the number of hanging threads reaches its limit.
    pub(super) full: Notify,
    max_lost: usize,
    state: Mutex<PoolState>,
    threads: Arc<ThreadPool>,
}

#[derive(Default)]
struct PoolState {
    next: u64,
    /// The work in flight, each with its lease.
    running: HashMap<u64, Option<u64>>,
    lost: HashSet<u64>,
    orphans: HashMap<u64, Orphan>,
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
            full: Notify::new(),
            max_lost: max_lost as usize,
            state: Mutex::default(),
            threads: ThreadPool::new("palisade-call"),
        })
    }

    /// Returns the number of threads that hang now.
    pub(super) fn lost(&self) -> usize {
        self.check_orphans();
        self.state().lost.len()
    }

    /// Returns the limit on hanging threads if it is reached.
    pub(super) fn exhausted(&self) -> Option<usize> {
        (self.lost() >= self.max_lost).then_some(self.max_lost)
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

    pub(super) fn permit(self: &Arc<Self>, grant: Grant) -> Permit {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.running.insert(number, grant.lease());
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
        let Some(lease) = state.running.remove(&number) else {
            return state.lost.contains(&number);
        };
        state.orphans.remove(&number);
        let replaced = lease.filter(|_| state.lost.len() < self.max_lost);
        state.lost.insert(number);
        let lost = state.lost.len();
        let is_full = lost >= self.max_lost;
        drop(state);
        tracing::warn!(lost, "the thread of a call hangs and was given up");
        // The slot passes to a new thread; the hanging thread does not return it a second time.
        if let Some(lease) = replaced {
            self.permits.abandon(lease);
        }
        if is_full {
            self.full.notify_waiters();
        }
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
        let was_lost = state.lost.remove(&number);
        drop(state);
        if was_lost {
            tracing::warn!("a thread that was given up has come back");
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
