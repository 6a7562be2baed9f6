//! The location of compiled code. A tool that can read a cache's key could plant code that the host
//! runs, so every known cache is hidden from tools, in use by this host or not.

use super::recorded::{Recorded, remember};
use super::{BuildError, CacheMode};
use crate::sandbox::Cache;
use crate::workspace::Workspace;
use std::io;
use std::path::{Path, PathBuf};

/// Opens the cache. A cache that cannot be written is replaced by none with a warning, and so is a
/// default cache that fails in any way. A configured directory is refused if it is not private or
/// lies inside the workspace.
pub(super) fn open(mode: &CacheMode, workspace: &Workspace) -> Result<Cache, BuildError> {
    match mode {
        CacheMode::Off => Ok(Cache::off()),
        CacheMode::Directory(directory) => match open_cache(directory, Some(workspace)) {
            Err(error) if is_unwritable(&error) => Ok(without(&error)),
            opened => opened,
        },
        CacheMode::Default => Ok(default_cache().map_or_else(Cache::off, |directory| {
            open_cache(&directory, Some(workspace)).unwrap_or_else(|error| without(&error))
        })),
    }
}

fn without(error: &BuildError) -> Cache {
    tracing::warn!("every start compiles: {error}");
    Cache::off()
}

/// Returns true if the error of a configured directory only disables the cache.
pub fn is_unwritable(error: &BuildError) -> bool {
    matches!(error, BuildError::Cache(error) if error.is_unwritable())
}

/// Opens a cache outside the workspace, if one is given, and records the cache before its key
/// exists.
pub fn open_cache(directory: &Path, workspace: Option<&Workspace>) -> Result<Cache, BuildError> {
    let opened = Cache::open_and(directory, workspace, |real| remember_cache(directory, real));
    opened.map_err(|error| match error.is_inside() {
        true => BuildError::CacheInWorkspace { cache: directory.to_owned() },
        false => BuildError::Cache(error),
    })
}

/// Records a cache by its path as written and by its real path, because a symlink may be redirected
/// later.
fn remember_cache(written: &Path, real: &Path) -> io::Result<()> {
    let usual = usual_location();
    // The default location is always hidden.
    let mut others = [written, real].into_iter().filter(|cache| usual.as_deref() != Some(cache));
    others.try_for_each(|cache| remember(Recorded::Cache, cache))
}

/// Returns the caches that are hidden without a record: the one in use and the default locations.
pub(super) fn always_hidden(mode: &CacheMode, used: &Cache) -> Vec<PathBuf> {
    let named = match mode {
        CacheMode::Directory(directory) => Some(directory.clone()),
        CacheMode::Default | CacheMode::Off => None,
    };
    let used = used.dir().map(Path::to_owned).into_iter().chain(named);
    used.chain(default_cache()).chain(usual_location()).collect()
}

/// Returns the default cache for an environment that does not override the cache directory.
fn usual_location() -> Option<PathBuf> {
    let home = etcetera::home_dir().ok().filter(|home| home.is_absolute());
    home.map(|home| below(&home.join(".cache")))
}

fn below(base: &Path) -> PathBuf {
    base.join("palisade").join("compiled")
}

/// Returns the default location of compiled code.
pub fn default_cache() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    let base = etcetera::choose_base_strategy().ok()?.cache_dir();
    base.is_absolute().then(|| below(&base))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;
    use crate::host::Host;
    use crate::plugins::Shipped;
    use std::fs;

    #[test]
    fn cache_reachable_by_tools_is_refused_before_writing() {
        let outer = tempfile::tempdir().unwrap();
        let at = |path: &str| outer.path().join(path);
        fs::create_dir_all(at("ws/there")).unwrap();
        let build = |cache: PathBuf| {
            let host = Host::builder().workspace(at("ws")).shipped(Shipped::LeftOut);
            host.cache(CacheMode::Directory(cache)).build().map(drop)
        };
        for inside in
            ["ws", "ws/there", "ws/cache", "ws/new/cache", "ws/../ws/cache", "ws/new/../../cache"]
        {
            assert!(
                matches!(build(at(inside)), Err(BuildError::CacheInWorkspace { .. })),
                "{inside}"
            );
        }
        std::os::unix::fs::symlink(at("ws"), at("link")).unwrap();
        assert!(matches!(build(at("link/cache")), Err(BuildError::CacheInWorkspace { .. })));
        let left: Vec<_> =
            fs::read_dir(at("ws")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(
            (left, fs::read_dir(at("ws/there")).unwrap().count()),
            (vec!["there".into()], 0)
        );
        assert!(build(at("beside/cache")).is_ok() && at("beside/cache/key").exists());
    }
}
