//! The locations of the repository and of its build on this machine.

use anyhow::Context as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that are not part of a checkout, or are generated in it.
const LEFT_OUT: [&str; 5] = [".git", "target", "prebuilt", "node_modules", ".venv"];

/// A checkout and its target directory.
pub(crate) struct Place {
    /// The directory of the workspace manifest.
    pub(crate) root: PathBuf,
    /// The target directory of cargo.
    pub(crate) target: PathBuf,
}

impl Place {
    /// Returns the checkout that built this program, whose path is `<target>/<profile>/xtask`.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask is not in a workspace")?;
        let own = std::env::current_exe().context("the path of this program")?;
        let target = own.ancestors().nth(2).context("this program was not built by cargo")?;
        Ok(Self { root: root.to_owned(), target: target.to_owned() })
    }

    /// Copies the sources to `to`, for commands that change files. Files that are already identical
    /// keep their modification time, so that builds in the copy are incremental; files that are not
    /// in the sources are removed.
    pub(crate) fn copy_sources(&self, to: &Path) -> anyhow::Result<()> {
        copy_tree(&self.root, to, &[])
    }

    /// The same, but for these files below the root, which are left there as they are.
    pub(crate) fn copy_sources_but(&self, to: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
        let left: Vec<PathBuf> = files.iter().map(|file| self.root.join(file)).collect();
        copy_tree(&self.root, to, &left)
    }
}

fn copy_tree(from: &Path, to: &Path, left: &[PathBuf]) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("listing {}", from.display()))? {
        let entry = entry?;
        if LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_tree(&path, &copy, left)?;
        } else if !left.contains(&path) && fs::read(&copy).ok() != Some(fs::read(&path)?) {
            fs::copy(&path, &copy).with_context(|| format!("copying {}", path.display()))?;
        }
    }
    remove_others(from, to)
}

fn remove_others(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(to).with_context(|| format!("listing {}", to.display()))? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if LEFT_OUT.iter().any(|left| name == *left) || from.join(&name).exists() {
            continue;
        }
        let removed = if entry.file_type()?.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(())
}
