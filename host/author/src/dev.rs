//! The loop of `palisade dev`: waits for changes of a project's files. The build and the replay of
//! the cases are those of `build` and `check`.

use crate::files::{Differs, Snapshot};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval between two looks at the files. A look at a project takes some milliseconds.
const POLL: Duration = Duration::from_millis(200);

/// The most looks for a change that follows another. A file that grows all the time, such as a log,
/// delays a build by two seconds.
const LOOKS: usize = 10;

/// The part of a project that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file that the plugin is built from, relative to the project. There may be others.
    Source(PathBuf),
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
    /// follow, for at most two seconds. `pause` waits between two looks.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn wait(&mut self, mut pause: impl FnMut(Duration)) -> io::Result<Change> {
        loop {
            let mut now = Snapshot::of(&self.project)?;
            if let Some(differs) = self.seen.difference(&now) {
                // Editors write in several steps.
                let mut looks = 0..LOOKS;
                while std::mem::replace(&mut self.seen, now) != self.seen && looks.next().is_some()
                {
                    pause(POLL);
                    now = Snapshot::of(&self.project)?;
                }
                return Ok(match differs {
                    Differs::Source(path) => Change::Source(path),
                    Differs::Case => Change::Cases,
                });
            }
            pause(POLL);
        }
    }
}

#[cfg(test)]
mod tests;
