//! Compiles the optimised code of plugins in the background, one plugin after the other.

use super::latest::Uncompiled;
use super::work::{Work, lock};
use crate::plugins::changes::{Rescan, ScanCause};
use crate::sandbox::Prepared;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The time from the end of loading to the first optimisation. A process that ends sooner would
/// lose the work, and its calls would share the processor with it.
const DELAY: Duration = Duration::from_secs(1);

impl Work {
    /// Starts the thread, unless it runs or has nothing to do.
    pub(super) fn optimize_in_background(self: &Arc<Self>) {
        if self.task.sandbox.compiles_optimized_only() || self.next_baseline().is_none() {
            return;
        }
        if !lock(&self.optimizer).begin() {
            return;
        }
        // While the thread waits it holds no plugin: a host that is dropped meanwhile frees the
        // code of its plugins itself, before the drop returns.
        let (waiting, cancel) = (Arc::downgrade(self), self.cancel.clone());
        let spawned = Builder::new().name("palisade-optimize".to_owned()).spawn(move || {
            if is_cancelled_during_delay(&cancel) {
                return;
            }
            let Some(work) = waiting.upgrade() else { return };
            work.optimize();
            lock(&work.optimizer).end();
            // For a plugin that was added at the last moment.
            if !work.cancel.is_cancelled() {
                work.optimize_in_background();
            }
        });
        if let Err(error) = spawned {
            tracing::warn!("no thread to optimise the code of plugins: {error}");
            lock(&self.optimizer).end();
        }
    }

    /// Scans again, and optimises the code of new plugins in the background.
    pub(super) fn rescan_and_optimize(self: &Arc<Self>) -> Rescan {
        let rescan = self.rescan();
        self.optimize_in_background();
        rescan
    }

    /// Scans again without a wait for changed files that have to be compiled: they are compiled
    /// behind the scan.
    pub(super) fn rescan_ready_and_compile(self: &Arc<Self>, cause: ScanCause) -> Rescan {
        let rescan = self.rescan_ready(match cause {
            ScanCause::Change => Uncompiled::Defer,
            ScanCause::Due => Uncompiled::DeferNew,
        });
        self.compile_deferred();
        self.optimize_in_background();
        rescan
    }

    /// Compiles the optimised code of every plugin that has none.
    fn optimize(&self) {
        while let Some(plugin) = self.next_baseline().filter(|_| !self.cancel.is_cancelled()) {
            lock(&self.optimizer).note(plugin.digest());
            let Err(error) = plugin.optimize(&self.cancel) else { continue };
            if self.cancel.is_cancelled() {
                return;
            }
            if error.may_pass() {
                lock(&self.optimizer).postpone(plugin.digest(), Instant::now());
            }
            tracing::warn!("plugin {} stays without optimised code: {error}", plugin.digest());
        }
    }

    /// Returns a plugin without optimised code whose optimisation is to be tried.
    fn next_baseline(&self) -> Option<Arc<Prepared>> {
        let decided = lock(&self.decided);
        let plugins = decided.values().filter_map(|slot| slot.standing.as_ref());
        let now = Instant::now();
        let mut due = plugins.map(|plugin| &plugin.prepared).filter(|plugin| {
            lock(&self.optimizer).is_due(plugin.digest(), now) && plugin.is_baseline()
        });
        due.next().cloned()
    }
}

/// Waits for the delay. Returns true if the host was dropped meanwhile.
fn is_cancelled_during_delay(cancel: &CancellationToken) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.is_ok_and(|runtime| {
        runtime.block_on(async { tokio::time::timeout(DELAY, cancel.cancelled()).await.is_ok() })
    })
}
