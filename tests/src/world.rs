//! A workspace for one run of a case, beside a canary that must never change.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A temporary directory with a workspace, and beside it files that no tool may read, change or
/// learn about.
#[derive(Debug)]
pub struct World {
    outer: TempDir,
}

/// The contents of the canary's files, which no result may contain.
pub const SECRET: &str = "canary-that-no-tool-may-read";

/// An upper bound for the time until a file appears, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The entries below a directory: the path, the kind and the contents of each.
pub type Snapshot = BTreeMap<PathBuf, String>;

impl World {
    /// Creates a new world.
    ///
    /// # Panics
    ///
    /// If the directory cannot be prepared.
    #[must_use]
    pub fn new() -> Self {
        let made = Self { outer: tempfile::tempdir().expect("a temporary directory can be made") };
        for folder in ["workspace", "outside", "outside/folder", "plugins", "home"] {
            fs::create_dir(made.outer().join(folder)).expect("a directory can be made");
        }
        for file in ["secret.txt", "outside/secret.txt", "outside/folder/secret.txt"] {
            fs::write(made.outer().join(file), SECRET).expect("a file can be written");
        }
        made
    }

    /// Returns the path of the workspace.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.outer().join("workspace")
    }

    /// Returns the path of the directory that contains the workspace.
    #[must_use]
    pub fn outer(&self) -> &Path {
        self.outer.path()
    }

    /// Returns a directory for plugins, outside of the workspace.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.outer().join("plugins")
    }

    /// Installs a plugin, and returns the path of its file. The file appears or changes atomically,
    /// since a watcher may read the directory at any moment.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn install(&self, name: &str, plugin: &[u8]) -> PathBuf {
        let (made, file) = (
            self.outer().join(format!("{name}.made")),
            self.plugins().join(format!("{name}.wasm")),
        );
        fs::write(&made, plugin).expect("a plugin can be written");
        fs::rename(made, &file).expect("a plugin can be moved");
        file
    }

    /// Returns a home directory without any configuration.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.outer().join("home")
    }

    /// Writes a file in the workspace, and creates its parent directories.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn file(&self, path: &str, contents: impl AsRef<[u8]>) -> &Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("it is in the workspace"))
            .expect("a directory can be made");
        fs::write(path, contents).expect("a file can be written");
        self
    }

    /// Creates a directory in the workspace.
    ///
    /// # Panics
    ///
    /// If the directory cannot be created.
    pub fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.root().join(path)).expect("a directory can be made");
        self
    }

    /// Creates a symlink in the workspace. The prefix `@/` of `to` stands for the absolute path of
    /// the directory that contains the workspace.
    ///
    /// # Panics
    ///
    /// If the symlink cannot be created.
    pub fn link(&self, path: &str, to: &str) -> &Self {
        let to = match to.strip_prefix("@/") {
            Some(rest) => self.outer().join(rest),
            None => PathBuf::from(to),
        };
        symlink(to, self.root().join(path)).expect("a link can be made");
        self
    }

    /// Returns the contents of a file in the workspace, or `None` if it cannot be read.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read(self.root().join(path))
            .ok()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until another process has created a file in the workspace, and returns its contents.
    ///
    /// # Panics
    ///
    /// If the file does not exist after a minute.
    #[track_caller]
    pub fn wait_for(&self, path: &str) -> String {
        let start = Instant::now();
        loop {
            if let Some(text) = self.read(path) {
                return text;
            }
            assert!(start.elapsed() < PATIENCE, "`{path}` never comes");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Removes every entry of the workspace.
    ///
    /// # Panics
    ///
    /// If an entry cannot be removed.
    pub(crate) fn empty_workspace(&self) {
        for entry in fs::read_dir(self.root()).expect("the workspace is there").flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = match is_directory {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            };
            removed.expect("an entry can be removed");
        }
    }

    /// Returns the current entries of the workspace.
    #[must_use]
    pub fn inside(&self) -> Snapshot {
        snapshot(&self.root())
    }

    /// Returns the current entries beside the workspace. The directories for plugins and home are
    /// recorded without their contents.
    #[must_use]
    pub fn outside(&self) -> Snapshot {
        let mut found = snapshot(&self.outer().join("outside"));
        let own = self.outer().join("secret.txt");
        found.insert(own.clone(), describe(&own));
        let entries = fs::read_dir(self.outer()).into_iter().flatten().flatten();
        for entry in entries {
            found.entry(entry.path()).or_insert_with(|| "entry".to_owned());
        }
        found
    }

    /// Replaces this world's directory in a text by `<outer>`, so that the texts of two worlds can
    /// be compared.
    #[must_use]
    pub fn anonymous(&self, text: &str) -> String {
        let real = self.outer().canonicalize().unwrap_or_else(|_| self.outer().to_owned());
        text.replace(&*real.to_string_lossy(), "<outer>")
            .replace(&*self.outer().to_string_lossy(), "<outer>")
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Describes every entry, without following symlinks and without opening special files, which could
/// block.
fn snapshot(root: &Path) -> Snapshot {
    let (mut found, mut open) = (Snapshot::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                open.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap_or(&path).to_owned(), describe(&path));
        }
    }
    found
}

fn describe(path: &Path) -> String {
    let look = || -> io::Result<String> {
        let meta = path.symlink_metadata()?;
        let what = if meta.is_symlink() {
            format!("link to {}", fs::read_link(path)?.display())
        } else if meta.is_file() && meta.len() <= 1 << 20 {
            format!("file {:?}", String::from_utf8_lossy(&fs::read(path)?))
        } else {
            format!(
                "{:?} of {} bytes",
                meta.file_type(),
                if meta.is_dir() { 0 } else { meta.len() }
            )
        };
        // The time of a directory changes with its entries, which are compared separately.
        let time = if meta.is_dir() { 0 } else { meta.mtime_nsec() + meta.mtime() };
        Ok(format!(
            "{what}, mode {:o}, {} links, at {time}",
            meta.mode(),
            if meta.is_dir() { 0 } else { meta.nlink() }
        ))
    };
    look().unwrap_or_else(|error| error.to_string())
}
