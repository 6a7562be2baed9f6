//! Scans again and registers new, changed and removed plugins in one step. The result is that of a
//! fresh start, except that a broken file keeps its previous plugin.

use super::background::Deferred;
use super::claims::check_offer;
use super::cores;
use super::file_update::FileUpdate;
use super::latest::{Found, Job, Treatment, Uncompiled, failed};
use super::slot::{Latest, Slot};
use super::slot_changes::note_changes;
use super::work::{Work, lock};
use crate::plugins::candidate::Candidate;
use crate::plugins::changes::Rescan;
use crate::plugins::plugin::{Plugin, is_same_code};
use crate::plugins::rejected::{Cause, RegistrationError, Rejected};
use crate::plugins::{reserved, scan};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, TryLockError};

/// The files of one scan.
struct Jobs {
    /// The current files, in order.
    jobs: Vec<Job>,
    /// The directories that cannot be read.
    lost: Vec<Rejected>,
}

/// The previous state of files, removed one by one. A file that is listed twice has two slots.
#[derive(Default)]
struct Before(HashMap<PathBuf, VecDeque<Slot>>);

impl Before {
    fn take(&mut self, path: &Path) -> Option<Slot> {
        self.0.get_mut(path)?.pop_front()
    }

    /// Returns the files of a directory in order.
    fn files_in(&self, directory: &Path) -> Vec<PathBuf> {
        let mut paths: Vec<_> =
            self.0.keys().filter(|path| path.parent() == Some(directory)).cloned().collect();
        paths.sort_by(|one, other| {
            one.as_os_str().as_encoded_bytes().cmp(other.as_os_str().as_encoded_bytes())
        });
        paths
    }
}

impl Work {
    /// Scans again. It blocks and must not run on a thread that drives futures.
    pub(super) fn rescan(&self) -> Rescan {
        let _turn = lock(&self.turn);
        self.scan(Uncompiled::Compile)
    }

    /// Scans again without a wait for changed files that have to be compiled.
    pub(super) fn rescan_ready(&self, uncompiled: Uncompiled) -> Rescan {
        let turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                lock(&self.background).note_missed();
                return Rescan::default();
            }
        };
        lock(&self.background).note_scan();
        let rescan = self.scan(uncompiled);
        drop(turn);
        rescan
    }

    fn scan(&self, uncompiled: Uncompiled) -> Rescan {
        if !lock(&self.uncompiled).is_empty() {
            self.compile_left();
        }
        self.task.approvals.scan_begins();
        let sources = &self.task.sources;
        if sources.is_without_files() {
            // The registry may have plugins of another host, which this one knows nothing of.
            return Rescan::default();
        }
        self.register_files(self.jobs(), uncompiled)
    }

    /// Asks for the approvals of the known files again, without a look at the files.
    pub(super) fn judge_again(&self) -> Rescan {
        let _turn = lock(&self.turn);
        if !lock(&self.uncompiled).is_empty() {
            self.compile_left();
        }
        self.task.approvals.scan_begins();
        if self.task.sources.is_without_files() {
            return Rescan::default();
        }
        let known: Vec<Slot> = lock(&self.decided).values().cloned().collect();
        let files = known.into_iter().filter(|slot| !slot.candidate.is_shipped());
        let jobs = files.map(|slot| Job {
            candidate: slot.candidate.clone(),
            before: Some(slot),
            treatment: Treatment::Judge,
        });
        let lost = lock(&self.lost).clone();
        self.register_files(Jobs { jobs: jobs.collect(), lost }, Uncompiled::Compile)
    }

    /// Registers the state of the files in one step.
    fn register_files(&self, jobs: Jobs, uncompiled: Uncompiled) -> Rescan {
        let Jobs { jobs, lost } = jobs;
        *lock(&self.namesakes) = scan::namesakes(jobs.iter().map(|job| &job.candidate));
        let found = self.all_latest(&jobs, uncompiled);
        if self.cancel.is_cancelled() {
            return Rescan::default();
        }
        let (jobs, latest, deferred) = without_deferred(jobs, found);
        if uncompiled != Uncompiled::Compile {
            lock(&self.background).replace(deferred);
        }
        let _settling = lock(&self.settling);
        let (jobs, gone) = self.with_present_slots(jobs);
        let latest = self.with_present_approvals(&jobs, latest);
        let slots = self.exchange(jobs, latest, &gone);
        let mut rescan = Rescan::default();
        for (before, after) in &slots {
            note_changes(&mut rescan, before.as_ref(), Some(after));
        }
        gone.iter().for_each(|gone| note_changes(&mut rescan, Some(gone), None));
        let known = std::mem::replace(&mut *lock(&self.lost), lost.clone());
        rescan.rejected.extend(lost.into_iter().filter(|lost| !known.contains(lost)));
        self.keep(slots.into_iter().map(|(_, after)| after).collect(), &rescan);
        rescan.plugin_changes().for_each(|change| (self.task.on_change)(change));
        rescan
    }

    fn jobs(&self) -> Jobs {
        let mut before = self.before();
        let mut jobs = Vec::new();
        let mut lost = Vec::new();
        for directory in scan::directories(&self.task.sources) {
            let found = self.pinned_dirs.check_directory(directory).and_then(|()| {
                scan::files(directory).map_err(|error| format!("it cannot be read: {error}"))
            });
            match found {
                Ok(files) => {
                    let files = self.task.sources.without_adapted(files);
                    jobs.extend(files.into_iter().map(|path| {
                        let treatment = self
                            .pinned_dirs
                            .check_file(&path)
                            .map_or_else(Treatment::Refuse, |()| Treatment::Scan);
                        let before = before.take(&path);
                        Job { before, candidate: Candidate::plugin(path), treatment }
                    }));
                }
                Err(reason) => {
                    let file = crate::tool::text::elided(&directory.to_string_lossy(), 512);
                    let reason = format!("{reason}; the plugins loaded from it before stay");
                    lost.push(Rejected { file, reason, cause: Cause::File });
                    let kept = self.task.sources.without_adapted(before.files_in(directory));
                    jobs.extend(kept.into_iter().map(|path| Job {
                        before: before.take(&path),
                        candidate: Candidate::plugin(path),
                        treatment: Treatment::Keep,
                    }));
                }
            }
        }
        jobs.extend(scan::single_files(&self.task.sources).map(|candidate| Job {
            before: candidate.path().and_then(|path| before.take(path)),
            candidate,
            treatment: Treatment::Scan,
        }));
        Jobs { jobs, lost }
    }

    fn before(&self) -> Before {
        let mut before = Before::default();
        for slot in lock(&self.decided).values() {
            if let Candidate::File(path, _) = &slot.candidate {
                before.0.entry(path.clone()).or_default().push_back(slot.clone());
            }
        }
        before
    }

    /// Updates the previous state of the files, since approvals may have been revoked while files
    /// were compiled. Returns that of removed files as well.
    fn with_present_slots(&self, mut jobs: Vec<Job>) -> (Vec<Job>, Vec<Slot>) {
        let mut before = self.before();
        for job in &mut jobs {
            job.before = job.candidate.path().and_then(|path| before.take(path));
        }
        (jobs, before.0.into_values().flatten().collect())
    }

    /// Asks for the approvals again: those of before the compilation may have been revoked since.
    fn with_present_approvals(&self, jobs: &[Job], latest: Vec<Latest>) -> Vec<Latest> {
        self.task.approvals.scan_begins();
        let jobs = jobs.iter().zip(latest);
        let renewed = jobs.map(|(job, latest)| self.renewed(&job.candidate, latest));
        renewed.collect()
    }

    fn all_latest(&self, jobs: &[Job], uncompiled: Uncompiled) -> Vec<Found> {
        let found: Vec<OnceLock<Found>> = jobs.iter().map(|_| OnceLock::new()).collect();
        cores::on_every_core(jobs, |index, job| {
            if let Some(cell) = found.get(index).filter(|_| !self.cancel.is_cancelled()) {
                let found = self.latest(job, uncompiled);
                let _ = cell.set(found.map(|latest| self.renewed(&job.candidate, latest)));
            }
        });
        let cancelled = || Ok(failed(None, None, "it was given up".to_owned()));
        found.into_iter().map(|cell| cell.into_inner().unwrap_or_else(cancelled)).collect()
    }

    /// Updates the source and the approval of the plugin.
    pub(super) fn renewed(&self, candidate: &Candidate, latest: Latest) -> Latest {
        let plugin = latest.plugin.map(|plugin| self.with_source(candidate, plugin));
        Latest { plugin, ..latest }
    }

    /// Updates a plugin's source and approval: another file may have gained or lost the same name,
    /// and the approvals may have changed.
    pub(super) fn with_source(&self, candidate: &Candidate, plugin: Plugin) -> Plugin {
        let approval = self.task.approval(&plugin);
        let source = self.source(candidate, &approval);
        match plugin.source == source && plugin.approval == approval {
            true => plugin,
            false => self.plugin(candidate, plugin.prepared),
        }
    }

    /// Replaces the registered plugins.
    fn exchange(
        &self,
        jobs: Vec<Job>,
        latest: Vec<Latest>,
        gone: &[Slot],
    ) -> Vec<(Option<Slot>, Slot)> {
        // These plugins can no longer be read from their files, but calls in flight may still need
        // their code.
        let kept = jobs
            .iter()
            .filter(|job| matches!(job.treatment, Treatment::Keep))
            .filter_map(|job| job.before.as_ref());
        for plugin in gone.iter().chain(kept).filter_map(|slot| slot.standing.as_ref()) {
            if let Err(reason) = plugin.prepared.hold() {
                tracing::warn!("calls of {} will fail: {reason}", plugin.file);
            }
        }
        let mut updates = Vec::<FileUpdate>::with_capacity(jobs.len());
        let shipped = self.shipped();
        for (job, latest) in jobs.into_iter().zip(latest) {
            let mut update = self.update_of(job, latest);
            // Documents and prompts of earlier plugins take precedence.
            let others = shipped.iter().chain(updates.iter().flat_map(FileUpdate::plugins));
            update.new =
                update.new.and_then(|plugin| check_offer(&plugin, others).map(|()| plugin));
            updates.push(update);
        }
        let claims: Vec<_> = updates.iter().map(FileUpdate::claims).collect();
        let outcomes = self.task.registry.set_files(&claims);
        drop(claims);
        updates.into_iter().zip(outcomes).map(|(update, outcome)| update.end(&outcome)).collect()
    }

    /// Returns the shipped plugins.
    fn shipped(&self) -> Vec<Plugin> {
        let decided = lock(&self.decided);
        let shipped = decided.values().filter(|slot| slot.candidate.is_shipped());
        shipped.filter_map(|slot| slot.standing.clone()).collect()
    }

    fn update_of(&self, job: Job, latest: Latest) -> FileUpdate {
        let Job { candidate, before, .. } = job;
        let shipped = self.task.sources.shipped;
        let new = latest.plugin.clone().map_err(RegistrationError::from).and_then(|plugin| {
            plugin.check_offered()?;
            reserved::check(shipped, plugin.tools(), &self.task.registry).map(|()| plugin)
        });
        let mut lost = None;
        let standing = before.as_ref().and_then(|slot| slot.standing.clone());
        let standing = standing
            .map(|standing| self.with_source(&candidate, standing))
            .filter(|standing| standing.check_offered().is_ok())
            .filter(|standing| {
                if new.as_ref().is_ok_and(|new| is_same_code(new, standing)) {
                    return true;
                }
                lost = standing.prepared.hold().err();
                lost.is_none()
            });
        FileUpdate { candidate, before, latest, new, standing, lost }
    }

    /// Stores the new state of the files next to that of the shipped plugins.
    fn keep(&self, files: Vec<Slot>, rescan: &Rescan) {
        let shipped = self.candidates.iter().take_while(|candidate| candidate.is_shipped()).count();
        let mut decided = lock(&self.decided);
        let mut slots: BTreeMap<usize, Slot> = std::mem::take(&mut *decided);
        slots.retain(|index, _| *index < shipped);
        slots.extend(files.into_iter().enumerate().map(|(index, slot)| (shipped + index, slot)));
        *decided = slots;
        let of = decided.len();
        drop(decided);
        self.progress.send_if_modified(|progress| {
            progress.decided = of;
            progress.of = of;
            !rescan.is_empty()
        });
    }
}

/// Takes the deferred files apart. Until they are compiled, a known file keeps its state, and a new
/// one is not there yet.
fn without_deferred(jobs: Vec<Job>, found: Vec<Found>) -> (Vec<Job>, Vec<Latest>, Vec<Deferred>) {
    let mut deferred = Vec::new();
    let mut present = Vec::new();
    for (job, found) in jobs.into_iter().zip(found) {
        match found {
            Ok(latest) => present.push((job, latest)),
            Err(file) => {
                let known = job.before.as_ref().map(|slot| slot.latest.clone());
                let kept = |latest| (Job { treatment: Treatment::Keep, ..job }, latest);
                present.extend(known.map(kept));
                deferred.push(*file);
            }
        }
    }
    let (jobs, latest) = present.into_iter().unzip();
    (jobs, latest, deferred)
}
