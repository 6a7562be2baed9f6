//! The files of a project: the sources that its plugin is built from, and its recorded cases.

use crate::build::OUTPUT;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Maximum number of files of a project.
const MOST: usize = 20_000;
/// Directories that builds and tests write, and that hold no source. So do those whose name begins
/// with a dot.
const LEFT_OUT: [&str; 5] = [OUTPUT, "target", "node_modules", "build", "__pycache__"];
/// Files that builds write.
const LOCKS: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// The extensions of sources in each language, and of manifests.
const EXTENSIONS: [&str; 12] =
    ["rs", "toml", "py", "js", "mjs", "cjs", "ts", "mts", "tsx", "c", "h", "wit"];
/// Manifests with other extensions.
const MANIFESTS: [&str; 2] = ["package.json", "compile_flags.txt"];

/// Returns true for a file that a plugin is built from, as its name and place tell: no test, no
/// document, and no file that a recorded case reads. `dev` builds after a change of any file but
/// those of the tests, since a build may read it.
fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let is_manifest = MANIFESTS.iter().any(|name| path == Path::new(name));
    is_manifest || EXTENSIONS.contains(&extension)
}

/// Returns a source of a project that was changed after its plugin was built, relative to the
/// project.
///
/// # Errors
///
/// If the files cannot be listed, or are more than 20,000.
pub fn source_newer_than(plugin: &Path, project: &Path) -> io::Result<Option<PathBuf>> {
    let built = Stamp::of(&fs::metadata(plugin)?).modified;
    let mut sources = Snapshot::of(project)?.sources.into_iter();
    let is_newer = |(path, stamp): &(PathBuf, Stamp)| stamp.modified > built && is_source(path);
    Ok(sources.find(is_newer).map(|(path, _)| path))
}

/// A difference between two states of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Differs {
    /// In this source, relative to the project, and perhaps in others.
    Source(PathBuf),
    /// In recorded cases only.
    Case,
}

/// The state of a project's files. A look at the sizes and times opens no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    sources: BTreeMap<PathBuf, Stamp>,
    cases: BTreeMap<PathBuf, Stamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    /// The time of modification, in seconds and nanoseconds.
    modified: (i64, i64),
}

impl Stamp {
    fn of(about: &fs::Metadata) -> Self {
        Self { bytes: about.len(), modified: (about.mtime(), about.mtime_nsec()) }
    }
}

fn is_root(directory: &Path) -> bool {
    directory.as_os_str().is_empty()
}

impl Snapshot {
    /// Looks at the files of a project.
    ///
    /// # Errors
    ///
    /// If they cannot be listed, or are more than 20,000.
    pub(crate) fn of(project: &Path) -> io::Result<Self> {
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
                "the project has more than {MOST} files; move other files out of it"
            )));
        }
        let stamp = Stamp::of(about);
        let is_case = path.parent() == Some(Path::new("tests"))
            && path.extension().is_some_and(|extension| extension == "json");
        if is_case {
            self.cases.insert(path, stamp);
        } else if !path.starts_with("tests") {
            self.sources.insert(path, stamp);
        }
        Ok(())
    }

    /// Returns the difference to a later state. A source counts before a case.
    pub(crate) fn difference(&self, later: &Self) -> Option<Differs> {
        if let Some(path) = first_difference(&self.sources, &later.sources) {
            return Some(Differs::Source(path));
        }
        (self.cases != later.cases).then_some(Differs::Case)
    }
}

/// Returns the first path that only one of the states has, or both with other stamps.
fn first_difference(
    earlier: &BTreeMap<PathBuf, Stamp>,
    later: &BTreeMap<PathBuf, Stamp>,
) -> Option<PathBuf> {
    let changed = later.iter().find(|(path, stamp)| earlier.get(*path) != Some(stamp));
    let removed = || earlier.iter().find(|(path, _)| !later.contains_key(*path));
    changed.or_else(removed).map(|(path, _)| path.clone())
}
