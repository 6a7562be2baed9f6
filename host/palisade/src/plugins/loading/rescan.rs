//! Scans again and registers new, changed and removed plugins in one step. The result is that of a
//! fresh start, except that a broken file keeps its previous plugin.

use super::claims::check_offer;
use super::cores;
use super::file_update::FileUpdate;
use super::slot::{Latest, Slot};
use super::slot_changes::note_changes;
use super::work::{Work, catch_panic, lock};
use crate::plugins::candidate::{Candidate, FileDigest};
use crate::plugins::changes::Rescan;
use crate::plugins::plugin::{Plugin, is_same_code};
use crate::plugins::rejected::{Cause, RegistrationError, Rejected};
use crate::plugins::{reserved, scan};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A file with its previous state.
struct Job {
    candidate: Candidate,
    before: Option<Slot>,
    treatment: Treatment,
}

/// The files of one scan.
struct Jobs {
    /// The current files, in order.
    jobs: Vec<Job>,
    /// The directories that cannot be read.
    lost: Vec<Rejected>,
}

/// The treatment of a file.
enum Treatment {
    Scan,
    Refuse(String),
    /// Its directory cannot be read, so its state is kept.
    Keep,
    /// Only its approval is asked for again.
    Judge,
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
        if !lock(&self.uncompiled).is_empty() {
            self.compile_left();
        }
        self.task.approvals.scan_begins();
        let sources = &self.task.sources;
        if sources.is_without_files() {
            // The registry may have plugins of another host, which this one knows nothing of.
            return Rescan::default();
        }
        self.register_files(self.jobs())
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
        self.register_files(Jobs { jobs: jobs.collect(), lost })
    }

    /// Registers the state of the files in one step.
    fn register_files(&self, jobs: Jobs) -> Rescan {
        let Jobs { jobs, lost } = jobs;
        *lock(&self.namesakes) = scan::namesakes(jobs.iter().map(|job| &job.candidate));
        let latest = self.all_latest(&jobs);
        if self.cancel.is_cancelled() {
            return Rescan::default();
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

    fn all_latest(&self, jobs: &[Job]) -> Vec<Latest> {
        let found: Vec<OnceLock<Latest>> = jobs.iter().map(|_| OnceLock::new()).collect();
        cores::on_every_core(jobs, |index, job| {
            if let Some(cell) = found.get(index).filter(|_| !self.cancel.is_cancelled()) {
                let latest = self.latest(job);
                let plugin = latest.plugin.map(|plugin| self.with_source(&job.candidate, plugin));
                let _ = cell.set(Latest { plugin, ..latest });
            }
        });
        let cancelled = || Latest {
            file_digest: None,
            digest: None,
            plugin: Err("it was given up".to_owned()),
        };
        found.into_iter().map(|cell| cell.into_inner().unwrap_or_else(cancelled)).collect()
    }

    /// Returns the current state of a file's bytes.
    fn latest(&self, job: &Job) -> Latest {
        let known = job.before.as_ref().map(|slot| &slot.latest);
        let file_digest = match (&job.treatment, known) {
            (Treatment::Keep | Treatment::Judge, Some(known)) => return known.clone(),
            (Treatment::Refuse(reason), _) => Err(reason.clone()),
            _ => job.candidate.file_digest(
                self.task.sandbox.cache(),
                known.and_then(|known| known.file_digest.as_ref()),
            ),
        };
        let file_digest = match file_digest {
            Ok(file_digest) => file_digest,
            Err(reason) => return Latest { file_digest: None, digest: None, plugin: Err(reason) },
        };
        if let Some(known) = known.filter(|known| {
            known.digest == Some(file_digest.digest) && !is_touched(known, &file_digest)
        }) {
            return Latest { file_digest: Some(file_digest), ..known.clone() };
        }
        let standing = job.before.as_ref().and_then(|slot| slot.standing.as_ref());
        if let Some(back) = standing.filter(|standing| standing.digest() == file_digest.digest) {
            return Latest {
                file_digest: Some(file_digest),
                digest: Some(back.digest()),
                plugin: Ok(back.clone()),
            };
        }
        let check =
            |digest| self.task.description_terms(&job.candidate, digest, job.before.as_ref());
        let prepared = catch_panic(|| {
            let terms = check(file_digest.digest)?;
            match job.candidate.prepare_cached(file_digest.digest, terms, &self.task.sandbox) {
                Some(prepared) => Ok(prepared),
                None => job.candidate.prepare(&self.task.sandbox, &self.cancel, &check),
            }
        });
        match prepared {
            Ok(prepared) => Latest {
                file_digest: Some(file_digest),
                ..Latest::from_plugin(self.plugin(&job.candidate, prepared))
            },
            Err(error) => {
                let reason = self.task.rejection(&job.candidate, &error);
                let digest = error.lasting_digest(Some(file_digest.digest));
                Latest { file_digest: Some(file_digest), digest, plugin: Err(reason) }
            }
        }
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

/// Returns true if a rejected file has been written again, in which case it is tried again.
fn is_touched(known: &Latest, now: &FileDigest) -> bool {
    let identities = known
        .file_digest
        .as_ref()
        .and_then(|file_digest| file_digest.identity.as_ref())
        .zip(now.identity.as_ref());
    known.plugin.is_err() && identities.is_some_and(|(then, now)| !then.is_still(now))
}
