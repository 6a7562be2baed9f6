//! The directories of one run: the server's plugins and workspace, and all logs and results.

use anyhow::Context as _;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Display, Path, PathBuf};

/// The directory `target/conformance/<revision>`, created for each run.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    root: PathBuf,
    cache: PathBuf,
    visitor: OsString,
}

impl Stage {
    /// Creates the directories, with both plugins in place.
    pub(super) fn make(
        home: &Path,
        revision: &str,
        fixture: &Path,
        visitor: &Path,
    ) -> anyhow::Result<Self> {
        let name = |path: &Path| {
            path.file_name().map(OsStr::to_owned).context("a plugin's path has no file name")
        };
        let stage = Self {
            root: home.join(revision),
            // A new cache per run: plugins accepted by an earlier build are validated again.
            cache: home.join(revision).join("cache"),
            visitor: name(visitor)?,
        };
        if stage.root.exists() {
            fs::remove_dir_all(&stage.root)
                .with_context(|| format!("removing {}", stage.place()))?;
        }
        for folder in
            [stage.plugins(), stage.aside(), stage.workspace(), stage.home(), stage.results()]
        {
            fs::create_dir_all(&folder)
                .with_context(|| format!("creating {}", folder.display()))?;
        }
        for plugin in [fixture, visitor] {
            let copy = stage.plugins().join(name(plugin)?);
            fs::copy(plugin, copy).with_context(|| format!("copying {}", plugin.display()))?;
        }
        Ok(stage)
    }

    /// Moves the visitor out of the plugin directory, or into it, atomically by a rename.
    pub(super) fn move_visitor(&self) -> anyhow::Result<()> {
        let (inside, outside) =
            (self.plugins().join(&self.visitor), self.aside().join(&self.visitor));
        let (from, to) = if inside.exists() { (inside, outside) } else { (outside, inside) };
        fs::rename(&from, &to)
            .with_context(|| format!("moving {} to {}", from.display(), to.display()))
    }

    /// Returns the directory that the server watches.
    pub(super) fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    /// The directory of the visitor while it is removed.
    fn aside(&self) -> PathBuf {
        self.root.join("aside")
    }

    /// Returns the workspace of the tools, which is empty.
    pub(super) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// Returns a home directory without configuration.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the cache of compiled code.
    pub(super) fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns the file of the server's events, one per line.
    pub(super) fn events(&self) -> PathBuf {
        self.root.join("events.jsonl")
    }

    /// Returns the directory of the suite's results.
    pub(super) fn results(&self) -> PathBuf {
        self.root.join("results")
    }

    /// Returns the log file of a process.
    pub(super) fn log(&self, whose: &str) -> PathBuf {
        self.root.join(format!("{whose}.log"))
    }

    /// Returns the root directory, for messages.
    pub(super) fn place(&self) -> Display<'_> {
        self.root.display()
    }
}
