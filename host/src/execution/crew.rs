//! Detached threads: started when there is work, reused, ended when idle. Neither a runtime that
//! shuts down nor a process that ends waits for one.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread without work waits for more before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// A piece of work for one thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Threads of one name. How many there are is up to those who bring work.
pub(crate) struct Crew {
    name: &'static str,
    book: Mutex<Book>,
    work: Condvar,
}

/// A job that the system has no thread for.
pub(crate) struct Unstarted {
    /// The job, unchanged.
    pub(crate) job: Job,
    /// What the system says.
    pub(crate) error: io::Error,
}

#[derive(Default)]
struct Book {
    jobs: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

impl Crew {
    /// No thread yet; each is going to have this name.
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, book: Mutex::default(), work: Condvar::new() })
    }

    /// Gives work to an idle thread, or to a new one.
    ///
    /// # Errors
    ///
    /// [`Unstarted`] where no thread is idle and the system has no new one.
    pub(crate) fn start(self: &Arc<Self>, job: Job) -> Result<(), Unstarted> {
        let mut book = self.book();
        if book.idle > book.jobs.len() {
            book.jobs.push_back(job);
            self.work.notify_one();
            return Ok(());
        }
        drop(book);
        // A thread that does not start drops what it was given, which must not be the job.
        let first = Arc::new(Mutex::new(Some(job)));
        let (crew, own) = (self.clone(), first.clone());
        let started = thread::Builder::new().name(self.name.to_owned()).spawn(move || crew.serve(taken(&own)));
        let Err(error) = started else { return Ok(()) };
        taken(&first).map_or(Ok(()), |job| Err(Unstarted { job, error }))
    }

    /// Lets idle threads end now. Those that work end when they are done.
    pub(crate) fn close(&self) {
        self.book().is_closed = true;
        self.work.notify_all();
    }

    fn serve(&self, mut next: Option<Job>) {
        while let Some(job) = next {
            // A panic is caught where the work is done; this one would be of what is dropped after it.
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

fn taken(job: &Mutex<Option<Job>>) -> Option<Job> {
    job.lock().unwrap_or_else(PoisonError::into_inner).take()
}
