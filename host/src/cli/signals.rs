//! Signals, from the first call to the end of the program: each is a wish to end, and calls end in order.

use super::exit::Exit;
use super::output;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Who listens to the signals that ask the program to end.
pub(super) struct Signals {
    /// Cancelled by the first of them.
    pub(super) told: CancellationToken,
    is_done: Arc<AtomicBool>,
    watched: Arc<OnceLock<Handle>>,
}

/// How long work that was told to end may leave the program without a sign of life.
const SIGN_OF_LIFE: Duration = Duration::from_millis(1200);
/// How often it is looked for.
const BETWEEN_SIGNS: Duration = Duration::from_millis(100);

impl Signals {
    /// Listens on a thread of its own, for as long as the program lives: a signal that comes while the output is stuck still ends it.
    ///
    /// Comes back once the handlers are there: without them, a signal would end the program and nobody would learn how the call ended.
    pub(super) fn watch() -> io::Result<Self> {
        let signals =
            Self { told: CancellationToken::new(), is_done: Arc::new(AtomicBool::new(true)), watched: Arc::default() };
        let (told, is_done, watched) = (signals.told.clone(), signals.is_done.clone(), signals.watched.clone());
        let (ready, is_ready) = sync_channel(1);
        std::thread::Builder::new().name("palisade-signals".to_owned()).spawn(move || {
            if let Err(error) = listen(&told, &is_done, &watched, &ready) {
                let _ = ready.send(Err(error));
            }
        })?;
        is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that listens to signals ended")))?;
        Ok(signals)
    }

    /// From now on there is work to end in order, driven by this runtime. Where that hangs in the kernel, a wish to end is answered without it.
    pub(super) fn work_begins(&self, runtime: Handle) {
        let _ = self.watched.set(runtime);
        self.is_done.store(false, Ordering::Release);
    }

    /// From now on there is nothing left to end in order.
    pub(super) fn work_is_done(&self) {
        self.is_done.store(true, Ordering::Release);
    }
}

fn listen(
    told: &CancellationToken,
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
            told.cancel();
        }
    })
}

/// Ends the program as soon as its work gives no sign of life. It may give one and hang after it, so it is asked until it is done.
async fn end_if_it_hangs(work: Handle, is_done: Arc<AtomicBool>) {
    while !is_done.load(Ordering::Acquire) {
        if !lives(&work).await && !is_done.load(Ordering::Acquire) {
            output::problem("cancelled:", "the call was cancelled; it hangs in a file operation and was left behind");
            std::process::exit(Exit::Interrupted as i32);
        }
        tokio::time::sleep(BETWEEN_SIGNS).await;
    }
}

/// Whether a runtime still does what it is given.
async fn lives(work: &Handle) -> bool {
    tokio::time::timeout(SIGN_OF_LIFE, work.spawn(async {})).await.is_ok()
}

/// The signals that are a wish to end.
#[cfg(unix)]
struct Wishes {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

#[cfg(unix)]
impl Wishes {
    fn new() -> io::Result<Self> {
        survive(rustix::process::Signal::XFSZ, "a limit on file sizes will end the program");
        // Where whoever started the program ignores the ends of children, the system would hide those of commands from it.
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

/// Handles a signal by nothing: where files may not grow any further (`ulimit -f`), a write is to fail like any other, in place of ending the program.
#[cfg(unix)]
fn survive(number: rustix::process::Signal, otherwise: &str) {
    if let Err(error) = signal(SignalKind::from_raw(number.as_raw())) {
        tracing::warn!("{otherwise}: {error}");
    }
}

/// Whether the program was started to outlive its terminal, as `nohup` does.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

#[cfg(windows)]
struct Wishes(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Wishes {
    fn new() -> io::Result<Self> {
        Ok(Self(tokio::signal::windows::ctrl_c()?))
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
