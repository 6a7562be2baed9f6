//! The directories of one run: where the server finds plugins and a workspace, and where everybody leaves what there is to read afterwards.

use anyhow::Context as _;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Display, Path, PathBuf};

/// Below `target/conformance/<revision>`, made anew for each run.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    root: PathBuf,
    cache: PathBuf,
    visitor: OsString,
}

impl Stage {
    /// Makes it, with both plugins in their directory.
    pub(super) fn make(home: &Path, revision: &str, fixture: &Path, visitor: &Path) -> anyhow::Result<Self> {
        let name = |path: &Path| path.file_name().map(OsStr::to_owned).context("a plugin's path ends in no name");
        let stage = Self {
            root: home.join(revision),
            // Of this run: a plugin that an earlier build accepted is judged anew.
            cache: home.join(revision).join("cache"),
            visitor: name(visitor)?,
        };
        if stage.root.exists() {
            fs::remove_dir_all(&stage.root).with_context(|| format!("removing {}", stage.place()))?;
        }
        for folder in [stage.plugins(), stage.aside(), stage.workspace(), stage.home(), stage.results()] {
            fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        for plugin in [fixture, visitor] {
            let copy = stage.plugins().join(name(plugin)?);
            fs::copy(plugin, copy).with_context(|| format!("copying {}", plugin.display()))?;
        }
        Ok(stage)
    }

    /// Moves the visitor out of the plugins if it is among them, and in if it is not: whole or not at all, as a rename does.
    pub(super) fn move_visitor(&self) -> anyhow::Result<()> {
        let (inside, outside) = (self.plugins().join(&self.visitor), self.aside().join(&self.visitor));
        let (from, to) = if inside.exists() { (inside, outside) } else { (outside, inside) };
        fs::rename(&from, &to).with_context(|| format!("moving {} to {}", from.display(), to.display()))
    }

    /// The directory that the server watches.
    pub(super) fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    /// Where the visitor is while it is away.
    fn aside(&self) -> PathBuf {
        self.root.join("aside")
    }

    /// What tools see: nothing.
    pub(super) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// A home without configuration.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Where compiled code is kept.
    pub(super) fn cache(&self) -> &Path {
        &self.cache
    }

    /// What happens in the server, one event a line.
    pub(super) fn events(&self) -> PathBuf {
        self.root.join("events.jsonl")
    }

    /// What the suite leaves.
    pub(super) fn results(&self) -> PathBuf {
        self.root.join("results")
    }

    /// What somebody says while it runs.
    pub(super) fn log(&self, whose: &str) -> PathBuf {
        self.root.join(format!("{whose}.log"))
    }

    /// Where all of it lies.
    pub(super) fn place(&self) -> Display<'_> {
        self.root.display()
    }
}
