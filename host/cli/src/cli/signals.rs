//! Handles termination signals: calls in flight are cancelled and end in order.

use super::exit::Exit;
use super::output;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The listener for termination signals.
pub(super) struct Signals {
    /// Cancelled by the first signal.
    pub(super) told: CancellationToken,
    /// Cancelled by the second signal, which ends what the first one has begun to drain.
    pub(super) insisted: CancellationToken,
    is_done: Arc<AtomicBool>,
    watched: Arc<OnceLock<Handle>>,
}

/// The time that cancelled work may stay unresponsive before the program ends.
const SIGN_OF_LIFE: Duration = Duration::from_millis(1200);
/// The interval between checks of the work.
const BETWEEN_SIGNS: Duration = Duration::from_millis(100);

impl Signals {
    /// Starts a listener thread that lives as long as the program, so that a signal still ends the
    /// program while output is blocked.
    ///
    /// Returns once the handlers are installed: before that, a signal would end the program without
    /// a report of the call.
    pub(super) fn watch() -> io::Result<Self> {
        let signals = Self {
            told: CancellationToken::new(),
            insisted: CancellationToken::new(),
            is_done: Arc::new(AtomicBool::new(true)),
            watched: Arc::default(),
        };
        let told = [signals.told.clone(), signals.insisted.clone()];
        let is_done = signals.is_done.clone();
        let watched = signals.watched.clone();
        let (ready, is_ready) = sync_channel(1);
        std::thread::Builder::new().name("palisade-signals".to_owned()).spawn(move || {
            if let Err(error) = listen(&told, &is_done, &watched, &ready) {
                let _ = ready.send(Err(error));
            }
        })?;
        is_ready.recv().unwrap_or_else(|_| {
            Err(io::Error::other("the thread that listens to signals ended"))
        })?;
        Ok(signals)
    }

    /// Registers the runtime of work that must end in order. If that runtime blocks in the kernel,
    /// the listener ends the program without it.
    pub(super) fn work_begins(&self, runtime: Handle) {
        let _ = self.watched.set(runtime);
        self.is_done.store(false, Ordering::Release);
    }

    /// Marks the work as done: the next signal ends the program at once.
    pub(super) fn work_is_done(&self) {
        self.is_done.store(true, Ordering::Release);
    }
}

fn listen(
    [told, insisted]: &[CancellationToken; 2],
    is_done: &Arc<AtomicBool>,
    watched: &OnceLock<Handle>,
    ready: &SyncSender<io::Result<()>>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut wishes = Wishes::new()?;
        let _ = ready.send(Ok(()));
        loop {
            wishes.next().await;
            if is_done.load(Ordering::Acquire) {
                std::process::exit(Exit::Interrupted as i32);
            }
            if let (false, Some(work)) = (told.is_cancelled(), watched.get()) {
                tokio::spawn(end_if_it_hangs(work.clone(), is_done.clone()));
            }
            if told.is_cancelled() {
                insisted.cancel();
            }
            told.cancel();
        }
    })
}

/// Ends the program once its work is unresponsive. Repeats the check until the work is done,
/// because the work may block later.
async fn end_if_it_hangs(work: Handle, is_done: Arc<AtomicBool>) {
    while !is_done.load(Ordering::Acquire) {
        if !lives(&work).await && !is_done.load(Ordering::Acquire) {
            output::problem(
                "cancelled:",
                "the call was cancelled; it hangs in a file operation and was left behind",
            );
            std::process::exit(Exit::Interrupted as i32);
        }
        tokio::time::sleep(BETWEEN_SIGNS).await;
    }
}

/// Returns true if a runtime still runs new tasks.
async fn lives(work: &Handle) -> bool {
    tokio::time::timeout(SIGN_OF_LIFE, work.spawn(async {})).await.is_ok()
}

/// The termination signals.
struct Wishes {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Wishes {
    fn new() -> io::Result<Self> {
        survive(rustix::process::Signal::XFSZ, "a limit on file sizes will end the program");
        // If the parent process ignores SIGCHLD, the kernel reaps children automatically and their
        // exit status is lost.
        survive(rustix::process::Signal::CHILD, "it will not be known how commands end");
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Installs a handler that does nothing: at a file size limit (`ulimit -f`), a write fails with an
/// error and does not end the program.
fn survive(number: rustix::process::Signal, otherwise: &str) {
    if let Err(error) = signal(SignalKind::from_raw(number.as_raw())) {
        tracing::warn!("{otherwise}: {error}");
    }
}

/// Returns true if SIGHUP is ignored, as under `nohup`.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}
