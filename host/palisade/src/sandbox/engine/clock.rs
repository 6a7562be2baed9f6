//! The epoch clock, which interrupts guests.

use crate::execution::owner;
use crate::sandbox::limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;
use wasmtime::EngineWeak;

/// The time without a running guest after which the clock parks until the next call.
const IDLE: Duration = Duration::from_secs(1);
/// The number of ticks without a computing guest after which the clock slows down: guests that wait
/// need no ticks.
const QUIET_TICKS: u32 = 25;
/// The period of the clock while no guest computes. It bounds the delay of the first tick of the
/// next guest.
const SLOW_TICK: Duration = Duration::from_millis(10);

/// A guard that counts one running guest for the clock.
pub(crate) struct Running<'a>(&'a Clock);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) struct Clock {
    running: Arc<AtomicUsize>,
    asleep: Arc<AtomicBool>,
    thread: Thread,
}

impl Clock {
    /// Starts the clock on an OS thread: a task of the async runtime would not run while guests
    /// keep every worker thread busy.
    pub(crate) fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let running = Arc::new(AtomicUsize::new(0));
        let asleep = Arc::new(AtomicBool::new(false));
        let run = running.clone();
        let sleep = asleep.clone();
        let handle = thread::Builder::new()
            .name("palisade-clock".into())
            .spawn(move || tick(&engine, &run, &sleep))?;
        Ok(Self { running, asleep, thread: handle.thread().clone() })
    }

    /// Keeps the clock ticking while the guard is alive.
    pub(crate) fn running(&self) -> Running<'_> {
        // SeqCst here and in `tick`: either this thread sees `asleep`, or the clock sees `running`.
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(self)
    }
}

fn tick(engine: &EngineWeak, running: &AtomicUsize, asleep: &AtomicBool) {
    let mut idle = Duration::ZERO;
    let mut quiet = 0;
    loop {
        let period = if quiet < QUIET_TICKS { limits::TICK } else { SLOW_TICK };
        thread::sleep(period);
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
        owner::tick(limits::TURN);
        quiet = if owner::has_computed() { 0 } else { quiet.saturating_add(1) };
        idle = if running.load(Ordering::SeqCst) == 0 { idle + period } else { Duration::ZERO };
        if idle > IDLE {
            asleep.store(true, Ordering::SeqCst);
            while running.load(Ordering::SeqCst) == 0 {
                thread::park();
            }
            asleep.store(false, Ordering::SeqCst);
            idle = Duration::ZERO;
            quiet = 0;
        }
    }
}
