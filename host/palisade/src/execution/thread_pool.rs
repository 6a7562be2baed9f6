//! A thread pool of detached threads, started on demand, reused, and ended when idle. Neither the
//! runtime's shutdown nor the exit of the process waits for them.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);

/// A piece of work for one thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads of one name. Its users bound the number of threads.
pub(crate) struct ThreadPool {
    name: &'static str,
    queue: Mutex<JobQueue>,
    work: Condvar,
}

/// A job for which the system could not start a thread.
pub(crate) struct Unstarted {
    /// The job, unchanged.
    pub(crate) job: Job,
    /// The system's error.
    pub(crate) error: io::Error,
}

/// Runs a job on the pool of the host's own work, or here if the system cannot start a thread.
pub(crate) fn run_on_shared_pool(job: Job) {
    static POOL: OnceLock<Arc<ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| ThreadPool::new("palisade-work"));
    if let Err(Unstarted { job, .. }) = pool.start(job) {
        job();
    }
}

#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

impl ThreadPool {
    /// Creates an empty pool whose threads will have this name.
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, queue: Mutex::default(), work: Condvar::new() })
    }

    /// Runs a job on an idle thread or on a new one.
    ///
    /// # Errors
    ///
    /// [`Unstarted`] if no thread is idle and the system cannot start one.
    pub(crate) fn start(self: &Arc<Self>, job: Job) -> Result<(), Unstarted> {
        let mut queue = self.queue();
        // Every queued job has an idle thread of its own, so only a surplus is free for this one.
        if queue.idle > queue.jobs.len() {
            queue.jobs.push_back(job);
            self.work.notify_one();
            return Ok(());
        }
        drop(queue);
        // A failed spawn drops its closure, so the job is shared with it rather than moved into it.
        let first = Arc::new(Mutex::new(Some(job)));
        let pool = self.clone();
        let own = first.clone();
        let started = thread::Builder::new()
            .name(self.name.to_owned())
            .spawn(move || pool.serve(take_job(&own)));
        let Err(error) = started else { return Ok(()) };
        take_job(&first).map_or(Ok(()), |job| Err(Unstarted { job, error }))
    }

    /// Ends idle threads now, and busy ones after their job.
    pub(crate) fn close(&self) {
        self.queue().is_closed = true;
        self.work.notify_all();
    }

    fn serve(&self, mut next: Option<Job>) {
        while let Some(job) = next {
            // Jobs catch their own panics; this one comes from a destructor that runs after the
            // job.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a call panicked at its very end");
            }
            next = self.next_job();
        }
    }

    fn next_job(&self) -> Option<Job> {
        let mut queue = self.queue();
        queue.idle += 1;
        let mut is_waiting = true;
        while queue.jobs.is_empty() && !queue.is_closed && is_waiting {
            let (back, timeout) =
                self.work.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
            queue = back;
            is_waiting = !timeout.timed_out();
        }
        queue.idle -= 1;
        queue.jobs.pop_front()
    }

    fn queue(&self) -> MutexGuard<'_, JobQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take_job(job: &Mutex<Option<Job>>) -> Option<Job> {
    job.lock().unwrap_or_else(PoisonError::into_inner).take()
}
