//! Watches the plugin locations on a separate thread. A poll compares metadata and opens no file; a
//! difference starts a scan, and the scan decides what has changed.

mod snapshot;
#[cfg(test)]
mod tests;

use super::changes::{Rescan, ScanCause};
use super::loading::Loading;
use snapshot::Snapshot;
use std::convert::Infallible;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// The polling interval. A poll of a few directories takes microseconds, and needs no notification
/// from the kernel, which network mounts and the targets of symlinks do not have.
const POLL: Duration = Duration::from_millis(500);
/// The quiet period before a scan, because files are often written in several steps.
const QUIET: Duration = Duration::from_millis(100);
/// The most quiet periods before a scan while changes continue.
const MAX_QUIET_PERIODS: u32 = 10;

/// A watch of the plugin locations. It ends when it or its host is dropped; a scan in progress is
/// cancelled only by the host.
#[derive(Debug)]
pub struct Watch(#[allow(dead_code, reason = "its drop stops the threads")] Vec<StopHandle>);

/// The reason why plugins cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The system provides no thread.
    #[error("cannot watch the plugin directories: {0}")]
    System(#[from] io::Error),
}

/// A callback for each scan that has found changes.
pub(crate) type OnRescan = Box<dyn Fn(&Rescan) + Send>;

impl Watch {
    /// Watches the plugin locations of this host.
    pub(crate) fn begin(loading: &Loading, on_rescan: OnRescan) -> Result<Self, WatchError> {
        let sources = loading.sources().clone();
        let approvals = loading.approval_files();
        let take = move || Snapshot::take(&sources, &approvals);
        let scan = Scan { run: loading.weak_rescan(), is_due: loading.weak_scan_due() };
        Self::start(loading, take, scan, on_rescan)
    }

    /// Watches the approvals of this host alone.
    pub(crate) fn of_approvals(loading: &Loading, on_rescan: OnRescan) -> Result<Self, WatchError> {
        let approvals = loading.approval_files();
        let take = move || Snapshot::of_files(&approvals);
        let scan = Scan { run: loading.weak_judge(), is_due: || false };
        Self::start(loading, take, scan, on_rescan)
    }

    fn start(
        loading: &Loading,
        take: impl Fn() -> Snapshot + Send + 'static,
        scan: Scan<
            impl Fn(ScanCause) -> Option<Rescan> + Send + 'static,
            impl Fn() -> bool + Send + 'static,
        >,
        on_rescan: OnRescan,
    ) -> Result<Self, WatchError> {
        let on_rescan = Arc::new(Mutex::new(on_rescan));
        let mut threads = vec![start(loading, take, scan, on_rescan.clone())?];
        let approvals = loading.approval_files();
        if !approvals.is_empty() {
            // A scan waits for the plugins of the start, and a revocation does not.
            let take = move || Snapshot::of_files(&approvals);
            let scan = Scan { run: loading.weak_retract(), is_due: || false };
            threads.push(start(loading, take, scan, on_rescan)?);
        }
        Ok(Self(threads))
    }
}

/// A scan, and whether it is due without a change of a file.
struct Scan<R, D> {
    run: R,
    is_due: D,
}

/// Starts a thread that scans after every difference of two snapshots, and when a scan is due.
fn start(
    loading: &Loading,
    take: impl Fn() -> Snapshot + Send + 'static,
    scan: Scan<
        impl Fn(ScanCause) -> Option<Rescan> + Send + 'static,
        impl Fn() -> bool + Send + 'static,
    >,
    on_rescan: Arc<Mutex<OnRescan>>,
) -> Result<StopHandle, WatchError> {
    let (stop_handle, stop_signal) = stop_channel();
    let closed = loading.closed();
    let wait = move |time| {
        if closed.is_cancelled() { ControlFlow::Break(()) } else { stop_signal.wait(time) }
    };
    let Scan { run, is_due } = scan;
    let scan = move |cause| {
        if let Some(rescan) = run(cause).filter(|rescan| !rescan.is_empty()) {
            notify(&on_rescan.lock().unwrap_or_else(PoisonError::into_inner), &rescan);
        }
    };
    Builder::new().name("palisade-watch".to_owned()).spawn(move || {
        let _ = watch(take, wait, scan, is_due);
    })?;
    Ok(stop_handle)
}

/// Calls the callback. A panic in it costs only this notification.
fn notify(on_rescan: &OnRescan, rescan: &Rescan) {
    if catch_unwind(AssertUnwindSafe(|| on_rescan(rescan))).is_err() {
        tracing::error!("the callback for changed plugins panicked");
    }
}

/// Stops the thread when it is dropped, also in the middle of a wait.
#[derive(Debug)]
struct StopHandle(#[allow(dead_code, reason = "its drop closes the channel")] Sender<Infallible>);

/// The receiving end of a [`StopHandle`].
struct StopSignal(Receiver<Infallible>);

fn stop_channel() -> (StopHandle, StopSignal) {
    let (sender, receiver) = channel();
    (StopHandle(sender), StopSignal(receiver))
}

impl StopSignal {
    /// Waits for this long, or until the handle is dropped.
    fn wait(&self, time: Duration) -> ControlFlow<()> {
        match self.0.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => ControlFlow::Continue(()),
            Err(RecvTimeoutError::Disconnected) => ControlFlow::Break(()),
            Ok(never) => match never {},
        }
    }
}

/// Scans after every change, and once at the start, because changes may have occurred since
/// loading. Returns when `wait` breaks.
fn watch(
    take: impl Fn() -> Snapshot,
    wait: impl Fn(Duration) -> ControlFlow<()>,
    scan: impl Fn(ScanCause),
    is_due: impl Fn() -> bool,
) -> ControlFlow<()> {
    let mut last = take();
    scan(ScanCause::Change);
    loop {
        wait(POLL)?;
        // Taken before the scan, so that a change during the scan starts the next one.
        let mut now = take();
        if now != last {
            now = after_quiet(now, &take, &wait)?;
        }
        if last.may_differ(&now) {
            scan(ScanCause::Change);
        } else if is_due() {
            scan(ScanCause::Due);
        }
        last = now;
    }
}

/// Takes snapshots until two in a row are equal, within [`MAX_QUIET_PERIODS`].
fn after_quiet<S: PartialEq>(
    mut last: S,
    take: impl Fn() -> S,
    wait: impl Fn(Duration) -> ControlFlow<()>,
) -> ControlFlow<(), S> {
    for _ in 0..MAX_QUIET_PERIODS {
        wait(QUIET)?;
        let now = take();
        let is_quiet = now == last;
        last = now;
        if is_quiet {
            break;
        }
    }
    ControlFlow::Continue(last)
}
