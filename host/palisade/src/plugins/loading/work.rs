//! The state that the threads of loading share.

use super::background::Background;
use super::optimizer::Optimizer;
use super::progress::LoadProgress;
use super::slot::Slot;
use crate::execution::account::{DescriptionPart, DescriptionTerms};
use crate::plugins::approval::PluginApproval;
use crate::plugins::approvals::{Approvals, PluginBytes};
use crate::plugins::candidate::{Candidate, CandidateError, Lacks};
use crate::plugins::changes::PluginChange;
use crate::plugins::observer::{LoadObserver, LoadStep};
use crate::plugins::pinned_dirs::PinnedDirs;
use crate::plugins::plugin::Plugin;
use crate::plugins::rejected::Rejected;
use crate::plugins::scan::{self, Found};
use crate::plugins::sources::Sources;
use crate::registry::{Callees, Naming, Registered, Registry, Source};
use crate::sandbox::{Limits, PluginSettings, Prepared, Sandbox};
use crate::tool::Digest;
use crate::workspace::HardLinks;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The inputs and callbacks of loading.
pub(crate) struct Task {
    pub(crate) sources: Sources,
    pub(crate) sandbox: Sandbox,
    pub(crate) limits: Limits,
    /// The settings of plugins by their names.
    pub(crate) settings: BTreeMap<String, Arc<PluginSettings>>,
    pub(crate) registry: Registry,
    pub(crate) observer: LoadObserver,
    pub(crate) approvals: Arc<dyn Approvals>,
    /// The treatment of files with several hard links.
    pub(crate) hard_links: HardLinks,
    /// Called for every plugin when it is registered or rejected, and for later changes.
    pub(crate) on_change: Box<dyn Fn(PluginChange<'_>) + Send + Sync>,
}

impl Task {
    /// Returns the settings of a plugin. A configuration was written for one plugin, so a name that
    /// several have gives none.
    fn settings_of(&self, plugin: &str, naming: Naming) -> Option<Arc<PluginSettings>> {
        let settings = self.settings.get(plugin)?;
        match naming {
            Naming::Unclear if settings.has_config() => Some(Arc::new(settings.without_config())),
            Naming::Unclear | Naming::ByTool | Naming::ByPlugin | Naming::OnlyToTighten => {
                Some(settings.clone())
            }
        }
    }

    /// Returns the approval of a plugin.
    pub(super) fn approval(&self, plugin: &Plugin) -> PluginApproval {
        match plugin.path {
            None => PluginApproval::Approved,
            Some(_) => self.approvals.of(plugin),
        }
    }

    /// Returns an error if bytes of this digest may not describe themselves.
    pub(super) fn check_bytes(
        &self,
        candidate: &Candidate,
        digest: Digest,
    ) -> Result<(), CandidateError> {
        let Some(path) = candidate.path() else { return Ok(()) };
        let bytes = PluginBytes { name: &candidate.name(), path, digest };
        let checked = self.approvals.check_bytes(&bytes);
        checked.map_err(|why| CandidateError::not_approved(&why, digest))
    }
}

impl Task {
    /// Returns the terms on which a file's description of these bytes counts, beside the earlier
    /// state of the file.
    ///
    /// # Errors
    ///
    /// If the bytes may not describe themselves.
    pub(super) fn description_terms(
        &self,
        candidate: &Candidate,
        digest: Digest,
        before: Option<&Slot>,
    ) -> Result<DescriptionTerms, CandidateError> {
        self.check_bytes(candidate, digest)?;
        let Some(path) = candidate.path() else { return Ok(DescriptionTerms::of_approved()) };
        let bytes = PluginBytes { name: &candidate.name(), path, digest };
        let part = match self.approvals.refusal_of_bytes(&bytes) {
            Some(_) => DescriptionPart::Unapproved,
            None => DescriptionPart::Approved,
        };
        let replaced = before.map_or(0, |slot| slot.description_memory(part));
        Ok(DescriptionTerms { part, replaced })
    }

    /// Returns the reason of a rejection, behind the words that the file is not approved, or that
    /// it has changed.
    pub(super) fn rejection(&self, candidate: &Candidate, error: &CandidateError) -> String {
        let CandidateError { reason, digest, lacks } = error;
        let Some(path) = candidate.path() else { return reason.clone() };
        if let (Lacks::Grant, Some(digest)) = (lacks, *digest) {
            // Only an approved plugin is worth a grant.
            let bytes = PluginBytes { name: &candidate.name(), path, digest };
            return match self.approvals.refusal_of_bytes(&bytes) {
                Some(why) => format!("{why}; besides, {reason}"),
                None => reason.clone(),
            };
        }
        // A missing approval says itself how the file has changed.
        if digest.is_some_and(|digest| self.check_bytes(candidate, digest).is_err()) {
            return reason.clone();
        }
        match self.approvals.change_of(&candidate.name(), path, *digest) {
            Some(change) => format!("{change}, and {reason}"),
            None => reason.clone(),
        }
    }
}

/// The outcome of preparing a candidate.
pub(super) type Outcome = Result<Arc<Prepared>, CandidateError>;

/// The state that the threads share.
pub(super) struct Work {
    pub(super) task: Task,
    pub(super) candidates: Vec<Candidate>,
    /// The directories without plugins.
    pub(super) empty: Vec<PathBuf>,
    /// The candidates without code, in compilation order. Those with an embedded description are
    /// decided already.
    pub(super) uncompiled: Mutex<Vec<usize>>,
    /// The candidates whose bytes were approved at the start.
    pub(super) approved: Mutex<HashSet<usize>>,
    /// The candidates in `uncompiled` that go last.
    pub(super) last: Mutex<HashSet<usize>>,
    pub(super) decided: Mutex<BTreeMap<usize, Slot>>,
    /// Held while a plugin's names are registered or removed.
    pub(super) settling: Mutex<()>,
    /// The directories that a later scan could not read.
    pub(super) lost: Mutex<Vec<Rejected>>,
    pub(super) pinned_dirs: PinnedDirs,
    /// The names that several files have.
    pub(super) namesakes: Mutex<HashSet<String>>,
    /// Locked within `decided`, never around it.
    pub(super) optimizer: Mutex<Optimizer>,
    /// The files that are compiled behind the scans.
    pub(super) background: Mutex<Background>,
    /// Serialises scans and the compilations of the start.
    pub(super) turn: Mutex<()>,
    pub(super) progress: watch::Sender<LoadProgress>,
    pub(super) cancel: CancellationToken,
}

impl Work {
    pub(super) fn new(task: Task, found: Found, pinned_dirs: PinnedDirs) -> Self {
        let Found { candidates, empty } = found;
        let namesakes = Mutex::new(scan::namesakes(candidates.iter()));
        let (progress, _) = watch::channel(LoadProgress {
            decided: 0,
            of: candidates.len(),
            last: 0,
            goes_on: false,
        });
        Self {
            task,
            candidates,
            empty,
            uncompiled: Mutex::default(),
            approved: Mutex::default(),
            last: Mutex::default(),
            decided: Mutex::default(),
            settling: Mutex::default(),
            lost: Mutex::default(),
            pinned_dirs,
            namesakes,
            optimizer: Mutex::default(),
            background: Mutex::default(),
            turn: Mutex::default(),
            progress,
            cancel: CancellationToken::new(),
        }
    }

    pub(super) fn plugin(&self, candidate: &Candidate, prepared: Arc<Prepared>) -> Plugin {
        let mut plugin = Plugin {
            name: candidate.name().into(),
            file: candidate.file(),
            path: candidate.path().map(Path::to_owned),
            source: Source::Shipped,
            prepared,
            tools: Vec::new(),
            names: Ok(()),
            approval: PluginApproval::Approved,
            settings: None,
        };
        plugin.approval = self.task.approval(&plugin);
        plugin.source = self.source(candidate, &plugin.approval);
        let origin = plugin.origin();
        plugin.settings = self.task.settings_of(&plugin.name, origin.naming());
        let settings = plugin.settings.as_ref();
        match plugin.prepared.factories(self.task.limits, settings) {
            Ok(tools) => {
                let grants = plugin.prepared.grants();
                let callees = Callees::of(&plugin.prepared);
                let callees = callees.as_ref();
                plugin.tools = Registered::from_plugin(&origin, tools, &grants, callees, settings);
            }
            Err(unusable) => plugin.names = Err(unusable),
        }
        plugin
    }

    pub(super) fn source(&self, candidate: &Candidate, approval: &PluginApproval) -> Source {
        match candidate {
            Candidate::Shipped(_) => Source::Shipped,
            Candidate::File(..) if lock(&self.namesakes).contains(&candidate.name()) => {
                Source::Namesake(candidate.file().into())
            }
            Candidate::File(..) => match approval {
                PluginApproval::ThisRun => Source::ThisRun(candidate.file().into()),
                PluginApproval::Approved | PluginApproval::Missing(_) => {
                    Source::File(candidate.file().into())
                }
            },
        }
    }

    /// Calls the observer. A panic in it costs only this step.
    pub(super) fn tell(&self, step: LoadStep<'_>) {
        if catch_unwind(AssertUnwindSafe(|| (self.task.observer)(step))).is_err() {
            tracing::error!("the observer of loading panicked");
        }
    }
}

/// Catches a compiler's panic on hostile input, which then costs only that plugin.
pub(super) fn catch_panic<T>(
    work: impl FnOnce() -> Result<T, CandidateError>,
) -> Result<T, CandidateError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err("the compiler failed on it; the log has the details".to_owned().into())
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
