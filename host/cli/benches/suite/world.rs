//! The environment of a run: a workspace, a cache, and the guests of `cargo xtask interpreters`.

use palisade::sandbox::CompileStrategy;
use palisade::{CacheMode, Host, HostBuilder, plugins::Shipped};
use palisade_tests::caches;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A workspace with a file of 1 KiB and one of 1 MiB, and the directories of the run.
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
        // The program is at `<target>/<profile>/deps/<program>`.
        let target = own.ancestors().nth(3).expect("cargo has built it").to_owned();
        let cache = caches::of_this_build(&target.join("bench"));
        Self { workspace, target, cache }
    }

    /// Returns the workspace.
    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// Returns the directory for compiled code of this build, which is kept between runs: unless a
    /// group measures cold starts, it measures calls.
    pub(crate) fn cache(&self) -> PathBuf {
        self.cache.join("cache")
    }

    /// Returns the cache directory of the hand-written host.
    pub(crate) fn floor_cache(&self) -> PathBuf {
        self.cache.join("floor")
    }

    /// Returns the directory of standard libraries for WebAssembly that builds of plugins make.
    pub(crate) fn toolchains(&self) -> PathBuf {
        self.target.join("toolchains")
    }

    /// Returns the builder of a host without the shipped plugins; its cache is warm from the
    /// second run on.
    pub(crate) fn host(&self) -> HostBuilder {
        Host::builder()
            .workspace(self.workspace())
            .shipped(Shipped::LeftOut)
            .cache(CacheMode::Directory(self.cache()))
            .compile_strategy(CompileStrategy::OptimizedOnly)
    }

    /// Returns the guest in this language, or the reason why it is missing.
    pub(crate) fn interpreted(&self, language: &str) -> Result<PathBuf, String> {
        let directory = self.target.join("interpreters");
        let guest = directory.join(format!("{language}.wasm"));
        if guest.is_file() {
            return Ok(guest);
        }
        let reason = fs::read_to_string(directory.join(format!("{language}.skipped")));
        Err(reason
            .unwrap_or_else(|_| "it is not built; `cargo xtask interpreters` builds it".to_owned()))
    }
}

/// Returns lines of text of this size, in bytes.
fn line(bytes: usize) -> String {
    "sixty-four bytes of text, as a line of a source file often has.\n".repeat(bytes / 64)
}
