//! Hides caches from tools: in each workspace, the caches that are on record when a call begins.

mod probe;

use super::records::{CacheRecords, Stamp};
use super::{CacheMode, default_cache, usual_location};
use crate::dispatch::LateRules;
use crate::sandbox::Cache;
use crate::workspace::{HardLinks, Protection, Workspace};
use arc_swap::ArcSwap;
use probe::CacheProbe;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The known caches. All paths are kept, but only directories inside a workspace are held open.
pub(in crate::host) struct HiddenCaches {
    records: Vec<CacheRecords>,
    /// The paths that are hidden without a record: the cache in use, the default locations, the
    /// records themselves.
    always: Vec<PathBuf>,
    hard_links: HardLinks,
    done: ArcSwap<Done>,
    probe: Arc<CacheProbe>,
    /// Serialises scans, because concurrent calls would repeat the same work.
    turn: Mutex<()>,
}

/// The workspaces with all rules in place as of these stamps of the records.
#[derive(Default)]
struct Done {
    stamps: Vec<Option<Stamp>>,
    workspaces: Vec<Weak<Workspace>>,
}

impl HiddenCaches {
    pub(in crate::host) fn new(mode: &CacheMode, used: &Cache, hard_links: HardLinks) -> Self {
        let records = CacheRecords::for_user();
        let named = match mode {
            CacheMode::Directory(directory) => Some(directory.clone()),
            CacheMode::Default | CacheMode::Off => None,
        };
        let used = used.dir().map(Path::to_owned).into_iter().chain(named);
        let always = used
            .chain(default_cache())
            .chain(usual_location())
            .chain(records.iter().map(|it| it.dir().to_owned()));
        let always = always.filter_map(|path| std::path::absolute(path).ok()).collect();
        Self::with_records(records, always, hard_links)
    }

    fn with_records(
        records: Vec<CacheRecords>,
        always: Vec<PathBuf>,
        hard_links: HardLinks,
    ) -> Self {
        let done = ArcSwap::default();
        let probe = Arc::default();
        let turn = Mutex::default();
        Self { records, always, hard_links, done, probe, turn }
    }

    fn stamps(&self) -> Vec<Option<Stamp>> {
        self.records.iter().map(CacheRecords::stamp).collect()
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

impl LateRules for HiddenCaches {
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
        let mut paths: Vec<PathBuf> = self
            .always
            .iter()
            .cloned()
            .chain(self.records.iter().flat_map(CacheRecords::all))
            .collect();
        paths.sort_unstable();
        paths.dedup();
        let rules = workspace.rules();
        paths.retain(|path| !rules.hide(path));
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
        let records = CacheRecords::at(at("records"));
        let hidden = HiddenCaches::with_records(
            vec![CacheRecords::at(at("records"))],
            Vec::new(),
            HardLinks::Refuse,
        );
        let workspace = Arc::new(Workspace::open(&at("ws")).unwrap());
        let reads = || workspace.files().read("cache/key").is_ok();
        hidden.apply_to(&workspace).unwrap();
        assert!(reads() && hidden.are_current_in(&workspace));
        records.add(&at("ws/cache")).unwrap();
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
