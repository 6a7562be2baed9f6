//! The loop of `palisade dev`: waits for changes of a project's files. The build and the replay of
//! the cases are those of `build` and `check`.

use crate::build::OUTPUT;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval between two looks at the files. A look at a project takes some milliseconds.
const POLL: Duration = Duration::from_millis(200);
/// Maximum number of files of a project.
const MOST: usize = 20_000;
/// Directories that builds and tests write, and that hold no source. So do those whose name begins
/// with a dot.
const LEFT_OUT: [&str; 5] = [OUTPUT, "target", "node_modules", "build", "__pycache__"];
/// Files that builds write.
const LOCKS: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// The part of a project that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Something that the plugin is built from.
    Sources,
    /// Recorded cases only: the plugin is still the same.
    Cases,
}

/// A watch of a project's files.
#[derive(Debug)]
pub struct Watch {
    project: PathBuf,
    seen: Snapshot,
}

impl Watch {
    /// Begins to watch a project, before its first build.
    ///
    /// # Errors
    ///
    /// If its files cannot be listed, or are more than 20,000.
    pub fn begin(project: &Path) -> io::Result<Self> {
        let seen = Snapshot::of(project)?;
        Ok(Self { project: project.to_owned(), seen })
    }

    /// Waits for a change since the last one, also one that came meanwhile, and until no more
    /// follow. `pause` waits between two looks.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn wait(&mut self, mut pause: impl FnMut(Duration)) -> io::Result<Change> {
        loop {
            let mut now = Snapshot::of(&self.project)?;
            if let Some(change) = self.seen.change_to(&now) {
                // Editors write in several steps.
                while std::mem::replace(&mut self.seen, now) != self.seen {
                    pause(POLL);
                    now = Snapshot::of(&self.project)?;
                }
                return Ok(change);
            }
            pause(POLL);
        }
    }
}

/// The state of a project's files. A look at the sizes and times opens no file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snapshot {
    sources: BTreeMap<PathBuf, Stamp>,
    cases: BTreeMap<PathBuf, Stamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    /// The time of modification, in seconds and nanoseconds.
    modified: (i64, i64),
}

fn is_root(directory: &Path) -> bool {
    directory.as_os_str().is_empty()
}

impl Snapshot {
    fn of(project: &Path) -> io::Result<Self> {
        let mut snapshot = Self { sources: BTreeMap::new(), cases: BTreeMap::new() };
        let mut waiting = vec![PathBuf::new()];
        while let Some(directory) = waiting.pop() {
            let entries = match fs::read_dir(project.join(&directory)) {
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !is_root(&directory) => {
                    continue;
                }
                entries => entries?,
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let Ok(about) = entry.metadata() else { continue };
                let path = directory.join(&*name);
                match about.is_dir() {
                    true if name.starts_with('.') || LEFT_OUT.contains(&&*name) => {}
                    true => waiting.push(path),
                    false if LOCKS.contains(&&*name) => {}
                    false => snapshot.insert(path, &about)?,
                }
            }
        }
        Ok(snapshot)
    }

    fn insert(&mut self, path: PathBuf, about: &fs::Metadata) -> io::Result<()> {
        if self.sources.len() + self.cases.len() == MOST {
            return Err(io::Error::other(format!(
                "the project has more than {MOST} files; leave out of it what is not its source"
            )));
        }
        let stamp = Stamp { bytes: about.len(), modified: (about.mtime(), about.mtime_nsec()) };
        let is_case = path.parent() == Some(Path::new("tests"))
            && path.extension().is_some_and(|extension| extension == "json");
        let files = if is_case { &mut self.cases } else { &mut self.sources };
        files.insert(path, stamp);
        Ok(())
    }

    fn change_to(&self, later: &Self) -> Option<Change> {
        match () {
            () if self.sources != later.sources => Some(Change::Sources),
            () if self.cases != later.cases => Some(Change::Cases),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests;
