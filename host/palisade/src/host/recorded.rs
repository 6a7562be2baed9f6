//! Protects the paths that runs record for the runs in other workspaces: caches, configuration files
//! and plugin directories. Each workspace gets those that are on record when a call begins.

mod probe;
mod records;

use crate::dispatch::LateRules;
use crate::workspace::{HardLinks, Protection, Reading, Workspace};
use arc_swap::ArcSwap;
use probe::PathProbe;
pub use records::Recorded;
use records::{PathRecords, Stamp};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Records a path for all other runs of the user. Without a record, the tools of a run in a
/// workspace around the path can reach it, and the log warns about that.
///
/// # Errors
///
/// `QuotaExceeded` if there is no room for the record of a cache, whose key must stay secret.
pub fn remember(what: Recorded, path: &Path) -> io::Result<()> {
    for records in PathRecords::for_user() {
        match records.add(what, path) {
            Err(error) if error.kind() == ErrorKind::QuotaExceeded && what == Recorded::Cache => {
                return Err(error);
            }
            Err(error) => tracing::warn!(
                "{} is not remembered: a run in a workspace around it has to name it, or its tools can reach it: {error}",
                path.display()
            ),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Returns the recorded configuration files.
pub fn recorded_settings() -> Vec<PathBuf> {
    let all = PathRecords::for_user().into_iter().flat_map(|records| records.all());
    all.filter_map(|(what, path)| (what == Recorded::Settings).then_some(path)).collect()
}

/// The known paths. All are kept, but only files and directories inside a workspace are held open.
pub(super) struct RecordedPaths {
    records: Vec<PathRecords>,
    /// The paths that are hidden without a record, such as the records themselves.
    always: Vec<PathBuf>,
    hard_links: HardLinks,
    done: ArcSwap<Done>,
    probe: Arc<PathProbe>,
    /// Serialises scans, because concurrent calls would repeat the same work.
    turn: Mutex<()>,
}

/// The workspaces with all rules in place as of these stamps of the records.
#[derive(Default)]
struct Done {
    stamps: Vec<Option<Stamp>>,
    workspaces: Vec<Weak<Workspace>>,
}

impl RecordedPaths {
    /// Knows the user's records, and hides these paths as well.
    pub(super) fn new(hidden: Vec<PathBuf>, hard_links: HardLinks) -> Self {
        let records = PathRecords::for_user();
        let always = hidden.into_iter().chain(records.iter().map(|it| it.dir().to_owned()));
        let always = always.filter_map(|path| std::path::absolute(path).ok()).collect();
        Self::with_records(records, always, hard_links)
    }

    fn with_records(
        records: Vec<PathRecords>,
        always: Vec<PathBuf>,
        hard_links: HardLinks,
    ) -> Self {
        let done = ArcSwap::default();
        let probe = Arc::default();
        let turn = Mutex::default();
        Self { records, always, hard_links, done, probe, turn }
    }

    fn stamps(&self) -> Vec<Option<Stamp>> {
        self.records.iter().map(PathRecords::stamp).collect()
    }

    /// Marks a workspace as done with these stamps, which were taken before the scan.
    fn settle(&self, stamps: Vec<Option<Stamp>>, workspace: &Arc<Workspace>) {
        if !stamps.iter().flatten().all(Stamp::is_settled) {
            return;
        }
        let done = self.done.load();
        let others = done
            .workspaces
            .iter()
            .filter(|other| done.stamps == stamps && other.strong_count() > 0);
        let workspaces = others.cloned().chain([Arc::downgrade(workspace)]).collect();
        self.done.store(Arc::new(Done { stamps, workspaces }));
    }
}

impl LateRules for RecordedPaths {
    fn are_current_in(&self, workspace: &Arc<Workspace>) -> bool {
        let done = self.done.load();
        done.workspaces.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(workspace)))
            && !self.probe.has_news()
            && self
                .records
                .iter()
                .zip(&done.stamps)
                .all(|(records, stamp)| records.stamp() == *stamp)
    }

    fn apply_to(&self, workspace: &Arc<Workspace>) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.are_current_in(workspace) {
            return Ok(());
        }
        // Both are taken before the paths are read, so that the next call detects a concurrent
        // change.
        let stamps = self.stamps();
        self.probe.take_news();
        let recorded = self.records.iter().flat_map(PathRecords::all);
        let recorded = recorded.map(|(what, path)| (path, what.reading()));
        let always = self.always.iter().map(|path| (path.clone(), Reading::Refused));
        let mut paths: Vec<_> = always.chain(recorded).collect();
        paths.sort_unstable();
        paths.dedup();
        let rules = workspace.rules();
        paths.retain(|(path, reading)| !rules.cover(path, *reading));
        let trees = self.probe.open_all(paths, workspace)?;
        if !trees.is_empty() {
            workspace.keep_rules_of(&Arc::new(Protection::new(self.hard_links, trees)));
        }
        self.settle(stamps, workspace);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;
    use std::fs;

    fn open_files() -> usize {
        fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
    }

    #[test]
    fn cache_is_held_open_only_inside_a_workspace() {
        let outer = tempfile::tempdir().unwrap();
        let at = |path: &str| outer.path().join(path);
        fs::create_dir_all(at("ws/cache")).unwrap();
        fs::write(at("ws/cache/key"), "secret").unwrap();
        let records = PathRecords::at(at("records"));
        let hidden = RecordedPaths::with_records(
            vec![PathRecords::at(at("records"))],
            Vec::new(),
            HardLinks::Refuse,
        );
        let workspace = Arc::new(Workspace::open(&at("ws")).unwrap());
        let reads = || workspace.files().read("cache/key").is_ok();
        hidden.apply_to(&workspace).unwrap();
        assert!(reads() && hidden.are_current_in(&workspace));
        records.add(Recorded::Cache, &at("ws/cache")).unwrap();
        for number in 0..300 {
            let cache = at(&format!("elsewhere/{number}"));
            fs::create_dir_all(&cache).unwrap();
            fs::write(at(&format!("records/{number}")), cache.to_str().unwrap()).unwrap();
        }
        assert!(!hidden.are_current_in(&workspace));
        let before = open_files();
        for _ in 0..2 {
            hidden.apply_to(&workspace).unwrap();
        }
        // Other tests in this process open files as well.
        assert!(open_files() < before + 100, "{before} {}", open_files());
        assert!(!reads());
        let other = Arc::new(Workspace::open(&at("ws")).unwrap());
        assert!(!hidden.are_current_in(&other), "each workspace is looked at by itself");
    }
}
