//! Loading of hostile plugins under the oracle.

use std::path::PathBuf;
use std::time::Duration;

use palisade::{CacheMode, ToolResult, plugins::Shipped};

use super::{Oracle, Results};
use crate::guest::cache;
use crate::world::World;

/// The result of loading a directory of plugins.
#[derive(Debug)]
pub struct Loaded {
    /// The names of the loaded tools.
    pub tools: Vec<String>,
    /// The rejected files with the reasons.
    pub rejected: Vec<(String, String)>,
}

impl Loaded {
    /// Returns the reason why the only rejected file was rejected.
    ///
    /// # Panics
    ///
    /// If the number of rejected files is not one.
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

/// Loads the plugins of a world that `arrange` prepares, and checks every invariant.
///
/// # Panics
///
/// If an invariant is violated, or the host cannot be built.
#[track_caller]
pub fn loading(within: Duration, arrange: impl Fn(&World)) -> Loaded {
    let oracle = Oracle::new(|world, builder| {
        arrange(world);
        builder
    });
    oracle.watch(within, |stage| {
        let (root, plugins) = (stage.world.root(), stage.world.plugins());
        // Loading blocks, and must not run on a thread of a runtime.
        let loaded = std::thread::spawn(move || load(root, plugins)).join();
        async { loaded.unwrap_or_else(|_| Loaded { tools: Vec::new(), rejected: Vec::new() }) }
    })
}

/// Loads a plugin with these bytes, and checks every invariant.
///
/// # Panics
///
/// As [`loading`].
#[track_caller]
pub fn loading_bytes(within: Duration, bytes: &[u8]) -> Loaded {
    loading(within, |world| {
        std::fs::write(world.plugins().join("a-bad.wasm"), bytes).expect("it can be written");
    })
}

fn load(root: PathBuf, plugins: PathBuf) -> Loaded {
    let builder = crate::host_builder().workspace(root).shipped(Shipped::LeftOut).plugins(plugins);
    let host = builder.cache(CacheMode::Directory(cache())).build().expect("a host is built");
    let name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    Loaded {
        tools: host.registry().tool_names(),
        rejected: host
            .rejected()
            .iter()
            .map(|refused| (name(&refused.file), refused.reason.clone()))
            .collect(),
    }
}
