//! A workspace for one run of a case, and around it a canary that must never change.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A directory with a workspace in it. Beside the workspace lie files that no tool may read, change or learn of.
#[derive(Debug)]
pub struct World {
    outer: TempDir,
}

/// What the canary's files say. No result may ever hold it.
pub const SECRET: &str = "canary-that-no-tool-may-read";

/// What no file takes to appear, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything below a directory: path, kind and contents of each entry.
pub type Snapshot = BTreeMap<PathBuf, String>;

impl World {
    /// A fresh world.
    ///
    /// # Panics
    ///
    /// Where the directory cannot be prepared.
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

    /// The workspace.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.outer().join("workspace")
    }

    /// The directory around it.
    #[must_use]
    pub fn outer(&self) -> &Path {
        self.outer.path()
    }

    /// A directory for plugins, outside of the workspace.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.outer().join("plugins")
    }

    /// A directory in which nobody has ever configured anything.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.outer().join("home")
    }

    /// Writes a file of the workspace, making its directories.
    ///
    /// # Panics
    ///
    /// Where it cannot be written.
    pub fn file(&self, path: &str, contents: impl AsRef<[u8]>) -> &Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("it lies in the workspace")).expect("a directory can be made");
        fs::write(path, contents).expect("a file can be written");
        self
    }

    /// Makes a directory of the workspace.
    ///
    /// # Panics
    ///
    /// Where it cannot be made.
    pub fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.root().join(path)).expect("a directory can be made");
        self
    }

    /// Makes a symbolic link in the workspace. `to` may start with `@/`, which stands for the directory around the workspace, absolute.
    ///
    /// # Panics
    ///
    /// Where it cannot be made.
    pub fn link(&self, path: &str, to: &str) -> &Self {
        let to = match to.strip_prefix("@/") {
            Some(rest) => self.outer().join(rest),
            None => PathBuf::from(to),
        };
        symlink(to, self.root().join(path)).expect("a link can be made");
        self
    }

    /// Reads a file of the workspace, if it is there.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read(self.root().join(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until something in another process has made a file of the workspace, and reads it.
    ///
    /// # Panics
    ///
    /// Where it is not there after a minute.
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

    /// The workspace as it is now.
    #[must_use]
    pub fn inside(&self) -> Snapshot {
        snapshot(&self.root())
    }

    /// Everything around the workspace as it is now.
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

    /// Writes this world's own directory in a text as `<outer>`, so that texts of two worlds can be compared.
    #[must_use]
    pub fn anonymous(&self, text: &str) -> String {
        let real = self.outer().canonicalize().unwrap_or_else(|_| self.outer().to_owned());
        text.replace(&*real.to_string_lossy(), "<outer>").replace(&*self.outer().to_string_lossy(), "<outer>")
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Looks at every entry without following links and without opening what is no file.
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
            format!("{:?} of {} bytes", meta.file_type(), if meta.is_dir() { 0 } else { meta.len() })
        };
        // A directory's time changes with its entries, which are looked at by themselves.
        let time = if meta.is_dir() { 0 } else { meta.mtime_nsec() + meta.mtime() };
        Ok(format!("{what}, mode {:o}, {} links, at {time}", meta.mode(), if meta.is_dir() { 0 } else { meta.nlink() }))
    };
    look().unwrap_or_else(|error| error.to_string())
}
