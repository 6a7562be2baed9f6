//! Plugins that are loaded under the oracle.

use std::path::PathBuf;
use std::time::Duration;

use palisade::{CacheMode, Host, Shipped, ToolResult};

use super::{Oracle, Results};
use crate::guest::cache;
use crate::world::World;

/// What came of loading a directory of plugins.
#[derive(Debug)]
pub struct Loaded {
    /// The tools there are.
    pub tools: Vec<String>,
    /// What was refused, by file, and why.
    pub rejected: Vec<(String, String)>,
}

impl Loaded {
    /// Why the one file that was refused was refused.
    ///
    /// # Panics
    ///
    /// Where another number of files was refused.
    #[must_use]
    #[track_caller]
    pub fn reason(&self) -> &str {
        assert_eq!(self.rejected.len(), 1, "{self:?}");
        &self.rejected[0].1
    }
}

impl Results for Loaded {
    fn results(&self) -> Vec<&ToolResult> {
        Vec::new()
    }
}

/// Loads the plugins of a world that is arranged like this, and checks every point.
///
/// # Panics
///
/// Where a point does not hold, or no host comes of it.
#[track_caller]
pub fn loading(within: Duration, arrange: impl Fn(&World)) -> Loaded {
    let oracle = Oracle::new(|world, builder| {
        arrange(world);
        builder
    });
    oracle.watch(within, |stage| {
        let (root, plugins) = (stage.world.root(), stage.world.plugins());
        // Loading blocks, and must not do so on a thread of a runtime.
        let loaded = std::thread::spawn(move || load(root, plugins)).join();
        async { loaded.unwrap_or_else(|_| Loaded { tools: Vec::new(), rejected: Vec::new() }) }
    })
}

/// Loads one plugin of these bytes, and checks every point.
///
/// # Panics
///
/// As [`loading`].
#[track_caller]
pub fn loading_bytes(within: Duration, bytes: &[u8]) -> Loaded {
    loading(within, |world| std::fs::write(world.plugins().join("a-bad.wasm"), bytes).expect("it can be written"))
}

fn load(root: PathBuf, plugins: PathBuf) -> Loaded {
    let builder = Host::builder().workspace(root).shipped(Shipped::LeftOut).plugins(plugins);
    let host = builder.cache(CacheMode::Directory(cache())).build().expect("a host comes of it");
    let name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    Loaded {
        tools: host.registry().tool_names(),
        rejected: host.rejected().iter().map(|refused| (name(&refused.file), refused.reason.clone())).collect(),
    }
}
