//! Loading: cached plugins at once, then the others compiled on all cores, each registered when
//! ready. If two files claim a name, the first has it, and takes it over if it is ready later.

mod background;
mod claims;
mod compile;
mod cores;
mod deferred;
mod file_update;
mod latest;
mod optimize;
mod optimizer;
mod progress;
mod rescan;
mod retract;
mod settle;
mod slot;
mod slot_changes;
mod unapproved;
mod wanted;
mod work;

pub use progress::LoadProgress;
pub(crate) use unapproved::Unapproved;
pub(crate) use work::Task;

use super::changes::{Rescan, ScanCause};
use super::loaded::{Compiling, LoadError, Loaded};
use super::pinned_dirs::PinnedDirs;
use super::plugin::Plugin;
use super::sources::Sources;
use super::{reserved, scan};
use crate::execution::Factory;
use crate::registry::{ListingPosition, RegisterError, Registered};
use crate::tool::Digest;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use work::{Work, lock};

/// The loading of plugins. Dropping it cancels the compilations.
pub(crate) struct Loading(Arc<Work>);

impl Loading {
    /// Finds the plugins, and registers the native tools and the cached plugins.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if a directory cannot be read or a native tool cannot be registered. A bad file
    /// is not an error but is listed as rejected.
    pub(crate) fn begin(task: Task, native: &[Factory]) -> Result<Self, LoadError> {
        task.approvals.scan_begins();
        // Recorded before the scan, so that a later replacement is detected.
        let pinned_dirs = PinnedDirs::open(&task.sources, task.hard_links);
        let found = scan::scan(&task.sources, &task.sandbox)?;
        for factory in native {
            let tool = Registered::native(factory.clone())?;
            reserved::check_native(task.sources.shipped, tool.definition(), &task.registry)
                .and_then(|()| task.registry.register_all(ListingPosition::Native, &[tool]))
                .map_err(RegisterError::from)?;
        }
        let work = Arc::new(Work::new(task, found, pinned_dirs));
        work.prepare_known();
        Ok(Self(work))
    }

    /// Compiles the remaining plugins and waits for them.
    pub(crate) fn finish(&self) {
        self.0.compile();
        self.0.optimize_in_background();
    }

    /// Compiles remaining plugins that may have these tools, until the tools' owners are known.
    pub(crate) fn finish_for(&self, tools: &[&str]) {
        self.0.compile_for(tools);
        self.0.optimize_in_background();
    }

    /// Returns the uncompiled files that precede the owner of this tool and may claim it.
    pub(crate) fn undecided_before(&self, tool: &str) -> Vec<Compiling> {
        self.0.undecided_before(tool)
    }

    /// Compiles the remaining plugins on separate threads.
    pub(crate) fn go_on(&self) {
        if self.progress().borrow().is_complete() {
            return self.finish();
        }
        let work = self.0.clone();
        work.progress.send_modify(|progress| progress.goes_on = true);
        let spawned = Builder::new().name("palisade-load".to_owned()).spawn(move || {
            work.compile();
            work.optimize_in_background();
        });
        if let Err(error) = spawned {
            tracing::error!("no thread to load plugins in the background: {error}");
            self.finish();
        }
    }

    /// Returns the plugins that are not compiled, in the order of discovery.
    pub(crate) fn compiling(&self) -> Vec<Compiling> {
        self.0.compiling()
    }

    /// Returns a function for the names of the compiling plugins that are approved. It holds a weak
    /// reference.
    pub(crate) fn names_of_compiling(&self) -> impl Fn() -> Vec<String> + Send + Sync + 'static {
        let work = Arc::downgrade(&self.0);
        move || {
            let work = work.upgrade().filter(|work| work.progress.borrow().goes_on);
            work.map_or_else(Vec::new, |work| {
                work.compiling().into_iter().filter_map(Compiling::approved_name).collect()
            })
        }
    }

    /// Returns the plugins that are not approved, in the order of discovery.
    pub(crate) fn unapproved(&self) -> Vec<Plugin> {
        self.0.unapproved()
    }

    /// Returns a function for the plugin without approval that has a tool. It holds a weak
    /// reference.
    pub(crate) fn unapproved_with(
        &self,
    ) -> impl Fn(&str) -> Option<Unapproved> + Send + Sync + 'static {
        let work = Arc::downgrade(&self.0);
        move |tool| work.upgrade()?.unapproved_with(tool)
    }

    /// Returns a function that asks again for the approval of loaded bytes. It holds a weak
    /// reference.
    pub(crate) fn revoked_since(&self) -> Arc<dyn Fn(Digest) -> Option<Unapproved> + Send + Sync> {
        let work = Arc::downgrade(&self.0);
        Arc::new(move |digest| work.upgrade()?.revoked_since(digest))
    }

    /// Returns the files that hold the approvals.
    pub(super) fn approval_files(&self) -> Vec<PathBuf> {
        self.0.task.approvals.files()
    }

    /// Returns the result so far, in the order of discovery.
    pub(crate) fn loaded(&self) -> Loaded {
        let mut loaded = Loaded::default();
        for slot in lock(&self.0.decided).values() {
            loaded.plugins.extend(slot.standing.clone());
            loaded.rejected.extend(slot.rejected.clone());
        }
        loaded.rejected.extend(lock(&self.0.lost).iter().cloned());
        loaded
    }

    /// Returns the first match among the loaded plugins, without copying them.
    pub(crate) fn find<T>(&self, what: impl FnMut(&Plugin) -> Option<T>) -> Option<T> {
        lock(&self.0.decided).values().filter_map(|slot| slot.standing.as_ref()).find_map(what)
    }

    /// Scans again once all plugins are decided. It uses a separate thread, because the caller's
    /// may drive futures.
    pub(crate) fn rescan(&self) -> Rescan {
        std::thread::scope(|scope| {
            let look = Builder::new()
                .name("palisade-load".to_owned())
                .spawn_scoped(scope, || self.0.rescan_and_optimize());
            let look = look.inspect_err(|error| {
                tracing::error!("no thread to look for plugins again: {error}");
            });
            look.ok().and_then(|look| look.join().ok()).unwrap_or_default()
        })
    }

    /// Returns a function that scans on its caller's thread while this value lives, and leaves the
    /// compilation of changed files to other threads. It holds a weak reference.
    pub(super) fn weak_rescan(&self) -> impl Fn(ScanCause) -> Option<Rescan> + Send + 'static {
        let work = Arc::downgrade(&self.0);
        move |cause| {
            let work = work.upgrade().filter(|work| !work.cancel.is_cancelled())?;
            let scan = AssertUnwindSafe(|| work.rescan_ready_and_compile(cause));
            Some(catch_unwind(scan).unwrap_or_default())
        }
    }

    /// Returns a function that tells whether a scan would find something new without a change of a
    /// file, as [`weak_rescan`](Self::weak_rescan).
    pub(super) fn weak_scan_due(&self) -> impl Fn() -> bool + Send + 'static {
        let work = Arc::downgrade(&self.0);
        move || work.upgrade().is_some_and(|work| lock(&work.background).is_scan_due())
    }

    /// Returns a function that asks for the approvals again, as [`weak_rescan`](Self::weak_rescan).
    pub(super) fn weak_judge(&self) -> impl Fn(ScanCause) -> Option<Rescan> + Send + 'static {
        let work = Arc::downgrade(&self.0);
        move |_| {
            let work = work.upgrade().filter(|work| !work.cancel.is_cancelled())?;
            Some(catch_unwind(AssertUnwindSafe(|| work.judge_again())).unwrap_or_default())
        }
    }

    /// Returns a function that takes out the plugins whose approval is gone, without a wait for a
    /// scan, as [`weak_rescan`](Self::weak_rescan).
    pub(super) fn weak_retract(&self) -> impl Fn(ScanCause) -> Option<Rescan> + Send + 'static {
        let work = Arc::downgrade(&self.0);
        move |_| {
            let work = work.upgrade().filter(|work| !work.cancel.is_cancelled())?;
            Some(catch_unwind(AssertUnwindSafe(|| work.retract())).unwrap_or_default())
        }
    }

    /// Returns a token that is cancelled when this value is dropped.
    pub(super) fn closed(&self) -> CancellationToken {
        self.0.cancel.clone()
    }

    /// Returns true if a plugin of this name was found at startup.
    pub(crate) fn has_found(&self, plugin: &str) -> bool {
        self.0.candidates.iter().any(|candidate| candidate.name() == plugin)
    }

    /// Returns the directories without plugins at startup.
    pub(crate) fn empty_directories(&self) -> &[PathBuf] {
        &self.0.empty
    }

    /// Returns the sources of plugins.
    pub(super) fn sources(&self) -> &Sources {
        &self.0.task.sources
    }

    /// Returns a receiver of the progress.
    pub(crate) fn progress(&self) -> watch::Receiver<LoadProgress> {
        self.0.progress.subscribe()
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.0.cancel.cancel();
    }
}
