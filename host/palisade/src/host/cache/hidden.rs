//! Hides caches from tools: in each workspace, the caches that are on record when a call begins.

mod look;

use super::known::{Known, Stamp};
use super::{CacheMode, default_cache, usual_place};
use crate::dispatch::LateRules;
use crate::sandbox::Cache;
use crate::workspace::{HardLinks, Protection, Workspace};
use arc_swap::ArcSwap;
use look::Looks;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The known caches. All paths are kept, but only directories inside a workspace are held open.
pub(in crate::host) struct Hidden {
    known: Vec<Known>,
    /// The paths that are hidden without a record: the cache in use, the default locations, the
    /// records themselves.
    always: Vec<PathBuf>,
    hard_links: HardLinks,
    done: ArcSwap<Done>,
    looks: Arc<Looks>,
    /// Serialises scans, because concurrent calls would repeat the same work.
    turn: Mutex<()>,
}

/// The workspaces with all rules in place as of these stamps of the records.
#[derive(Default)]
struct Done {
    stamps: Vec<Option<Stamp>>,
    workspaces: Vec<Weak<Workspace>>,
}

impl Hidden {
    pub(in crate::host) fn new(mode: &CacheMode, used: &Cache, hard_links: HardLinks) -> Self {
        let known = Known::of_user();
        let named = match mode {
            CacheMode::Directory(directory) => Some(directory.clone()),
            CacheMode::Default | CacheMode::Off => None,
        };
        let used = used.dir().map(Path::to_owned).into_iter().chain(named);
        let always = used
            .chain(default_cache())
            .chain(usual_place())
            .chain(known.iter().map(|it| it.dir().to_owned()));
        let always = always.filter_map(|path| std::path::absolute(path).ok()).collect();
        Self::of(known, always, hard_links)
    }

    fn of(known: Vec<Known>, always: Vec<PathBuf>, hard_links: HardLinks) -> Self {
        let done = ArcSwap::default();
        let looks = Arc::default();
        let turn = Mutex::default();
        Self { known, always, hard_links, done, looks, turn }
    }

    fn stamps(&self) -> Vec<Option<Stamp>> {
        self.known.iter().map(Known::stamp).collect()
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

impl LateRules for Hidden {
    fn hold_in(&self, workspace: &Arc<Workspace>) -> bool {
        let done = self.done.load();
        done.workspaces.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(workspace)))
            && !self.looks.has_news()
            && self.known.iter().zip(&done.stamps).all(|(known, stamp)| known.stamp() == *stamp)
    }

    fn add_to(&self, workspace: &Arc<Workspace>) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.hold_in(workspace) {
            return Ok(());
        }
        // Both are taken before the paths are read, so that the next call detects a concurrent
        // change.
        let stamps = self.stamps();
        self.looks.take_news();
        let mut paths: Vec<PathBuf> =
            self.always.iter().cloned().chain(self.known.iter().flat_map(Known::all)).collect();
        paths.sort_unstable();
        paths.dedup();
        let rules = workspace.rules();
        paths.retain(|path| !rules.hide(path));
        let trees = self.looks.at(paths, workspace)?;
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
    fn a_cache_is_held_open_only_where_a_workspace_holds_it_and_looked_for_once() {
        let outer = tempfile::tempdir().unwrap();
        let at = |path: &str| outer.path().join(path);
        fs::create_dir_all(at("ws/cache")).unwrap();
        fs::write(at("ws/cache/key"), "secret").unwrap();
        let known = Known::at(at("records"));
        let hidden = Hidden::of(vec![Known::at(at("records"))], Vec::new(), HardLinks::Refuse);
        let workspace = Arc::new(Workspace::open(&at("ws")).unwrap());
        let reads = || workspace.files().read("cache/key").is_ok();
        hidden.add_to(&workspace).unwrap();
        assert!(reads() && hidden.hold_in(&workspace));
        known.add(&at("ws/cache")).unwrap();
        for number in 0..300 {
            let cache = at(&format!("elsewhere/{number}"));
            fs::create_dir_all(&cache).unwrap();
            fs::write(at(&format!("records/{number}")), cache.to_str().unwrap()).unwrap();
        }
        assert!(!hidden.hold_in(&workspace));
        let before = open_files();
        for _ in 0..2 {
            hidden.add_to(&workspace).unwrap();
        }
        // Other tests in this process open files as well.
        assert!(open_files() < before + 100, "{before} {}", open_files());
        assert!(!reads());
        let other = Arc::new(Workspace::open(&at("ws")).unwrap());
        assert!(!hidden.hold_in(&other), "each workspace is looked at by itself");
    }
}
