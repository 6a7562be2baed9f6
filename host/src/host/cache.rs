//! Where compiled code is kept, and where not: a tool that reads the key of a cache could write code that is then run as it is. So every cache that is known of is
//! hidden from tools, whether or not this host uses it.

mod hidden;
mod known;

use super::{BuildError, CacheMode};
use crate::sandbox::Cache;
use crate::workspace::Workspace;
pub(super) use hidden::Hidden;
use known::Known;
use std::io;
use std::path::{Path, PathBuf};

/// A cache that cannot be written is done without, whoever named it: every start compiles, and the log says so. The default directory is a convenience, and done
/// without in any case; one that somebody named is refused where it is no private directory outside of the workspace.
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

/// Whether a directory that somebody named is done without and not refused.
pub(crate) fn is_unwritable(error: &BuildError) -> bool {
    matches!(error, BuildError::Cache(error) if error.is_unwritable())
}

/// Opens a cache that lies outside of the workspace, if one is named, and remembers it before it has a key.
pub(crate) fn open_cache(directory: &Path, workspace: Option<&Workspace>) -> Result<Cache, BuildError> {
    let opened = Cache::open_and(directory, workspace, |real| remember(directory, real));
    opened.map_err(|error| match error.is_inside() {
        true => BuildError::CacheInWorkspace { cache: directory.to_owned() },
        false => BuildError::Cache(error),
    })
}

/// Remembers a cache by the path that somebody wrote and by the one without links: a link may lead elsewhere later.
fn remember(written: &Path, real: &Path) -> io::Result<()> {
    let usual = usual_place();
    // The usual place is hidden without being remembered.
    for cache in [written, real].into_iter().filter(|cache| usual.as_deref() != Some(cache)) {
        for known in Known::of_user() {
            match known.add(cache) {
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => return Err(error),
                Err(error) => tracing::warn!(
                    "the cache {} is not remembered: a run in a workspace around it has to name it, or its tools can read it: {error}",
                    cache.display()
                ),
                Ok(()) => {}
            }
        }
    }
    Ok(())
}

/// The default cache of a run whose environment names no other directory for caches.
fn usual_place() -> Option<PathBuf> {
    let home = etcetera::home_dir().ok().filter(|home| home.is_absolute());
    home.map(|home| below(&home.join(".cache")))
}

fn below(base: &Path) -> PathBuf {
    base.join("palisade").join("compiled")
}

/// Where compiled code is kept unless somebody says otherwise.
pub(crate) fn default_cache() -> Option<PathBuf> {
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
    fn a_cache_that_tools_could_reach_is_refused_before_anything_is_written_there() {
        let outer = tempfile::tempdir().unwrap();
        let at = |path: &str| outer.path().join(path);
        fs::create_dir_all(at("ws/there")).unwrap();
        let build = |cache: PathBuf| {
            let host = Host::builder().workspace(at("ws")).shipped(Shipped::LeftOut);
            host.cache(CacheMode::Directory(cache)).build().map(drop)
        };
        for inside in ["ws", "ws/there", "ws/cache", "ws/new/cache", "ws/../ws/cache", "ws/new/../../cache"] {
            assert!(matches!(build(at(inside)), Err(BuildError::CacheInWorkspace { .. })), "{inside}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("ws"), at("link")).unwrap();
            assert!(matches!(build(at("link/cache")), Err(BuildError::CacheInWorkspace { .. })));
        }
        let left: Vec<_> = fs::read_dir(at("ws")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!((left, fs::read_dir(at("ws/there")).unwrap().count()), (vec!["there".into()], 0));
        assert!(build(at("beside/cache")).is_ok() && at("beside/cache/key").exists());
    }
}
