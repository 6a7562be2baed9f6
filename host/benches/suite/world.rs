//! Where a run takes place: a workspace, a cache of its own, and what `cargo xtask interpreters` has built.

use palisade::{CacheMode, Host, HostBuilder, Shipped};
use palisade_tests::caches;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A workspace with a file of 1 KiB and one of 1 MiB in it, and the directories of the run.
pub(crate) struct World {
    workspace: TempDir,
    target: PathBuf,
    cache: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let workspace = tempfile::tempdir().expect("a temporary directory");
        fs::write(workspace.path().join("small.txt"), line(1 << 10)).expect("a file of 1 KiB");
        fs::write(workspace.path().join("large.txt"), line(1 << 20)).expect("a file of 1 MiB");
        let own = std::env::current_exe().expect("a program knows where it lies");
        // `<target>/<profile>/deps/<this>`.
        let target = own.ancestors().nth(3).expect("cargo has built it").to_owned();
        let cache = caches::of_this_build(&target.join("bench"));
        Self { workspace, target, cache }
    }

    /// The directory that calls see.
    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// Where Palisade keeps compiled code from run to run of this build: what is measured is a call, unless a group says that it starts cold.
    pub(crate) fn cache(&self) -> PathBuf {
        self.cache.join("cache")
    }

    /// Where the hand-written host keeps its own.
    pub(crate) fn floor_cache(&self) -> PathBuf {
        self.cache.join("floor")
    }

    /// A host without the shipped plugins, its cache warm from the second run on.
    pub(crate) fn host(&self) -> HostBuilder {
        Host::builder().workspace(self.workspace()).shipped(Shipped::LeftOut).cache(CacheMode::Directory(self.cache()))
    }

    /// The guest in this language, or why there is none.
    pub(crate) fn interpreted(&self, language: &str) -> Result<PathBuf, String> {
        let directory = self.target.join("interpreters");
        let guest = directory.join(format!("{language}.wasm"));
        if guest.is_file() {
            return Ok(guest);
        }
        let reason = fs::read_to_string(directory.join(format!("{language}.skipped")));
        Err(reason.unwrap_or_else(|_| "it is not built; `cargo xtask interpreters` builds it".to_owned()))
    }
}

/// Lines of text of so many bytes in all.
fn line(bytes: usize) -> String {
    "sixty-four bytes of text, as a line of a source file often has.\n".repeat(bytes / 64)
}
