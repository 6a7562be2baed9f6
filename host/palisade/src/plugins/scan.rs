//! Finds plugins: the shipped ones, then those of the directories in order, sorted by the bytes of
//! their names.

use super::candidate::Candidate;
use super::sources::{AdaptedFile, Shipped, Sources};
use crate::sandbox::Sandbox;
use crate::tool::Digest;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most plugins of one directory, because each holds compiled code in memory.
const MAX_PLUGINS: usize = 10_000;

/// The error of reading a plugin directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The directory cannot be read.
    #[error("cannot read the plugin directory `{}`: {source}", path.display())]
    Unreadable {
        /// The path of the directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path leads to a file.
    #[error("cannot read the plugin directory `{}`: this is a file; give its directory, `{}`", path.display(), parent(path).display())]
    File {
        /// The path of the file.
        path: PathBuf,
    },
}

impl DirectoryError {
    fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if path.is_file() { Self::File { path } } else { Self::Unreadable { path, source } }
    }
}

/// Returns the directory of a file.
fn parent(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The candidates to load.
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    /// The directories without plugins.
    pub(super) empty: Vec<PathBuf>,
}

/// Finds the plugins. A shipped plugin that needs a grant is a candidate if the sandbox has it.
pub(super) fn scan(sources: &Sources, sandbox: &Sandbox) -> Result<Found, DirectoryError> {
    let mut candidates: Vec<Candidate> = match sources.shipped {
        Shipped::Included => palisade_plugins::all()
            .iter()
            .filter(|plugin| {
                plugin.requires.is_none_or(|interface| {
                    sandbox.grants(Digest::from_bytes(plugin.digest), interface)
                })
            })
            .map(Candidate::Shipped)
            .collect(),
        Shipped::LeftOut | Shipped::Reserved => Vec::new(),
    };
    let mut empty = Vec::new();
    for directory in directories(sources) {
        let files = files(directory).map_err(|source| DirectoryError::new(directory, source))?;
        if files.is_empty() {
            empty.push(directory.to_owned());
        }
        candidates.extend(sources.without_adapted(files).into_iter().map(Candidate::plugin));
    }
    candidates.extend(single_files(sources));
    Ok(Found { candidates, empty })
}

/// Returns the candidates of the single files, in order.
pub(super) fn single_files(sources: &Sources) -> impl Iterator<Item = Candidate> {
    let adapted = |adapted: &AdaptedFile| Candidate::File(adapted.path.clone(), adapted.world());
    let plugins = sources.files.iter().cloned().map(Candidate::plugin);
    plugins.chain(sources.adapted.iter().map(adapted))
}

/// Returns the directories without duplicates.
pub(super) fn directories(sources: &Sources) -> impl Iterator<Item = &Path> {
    let mut seen = HashSet::new();
    // A setting and a flag may name the same directory.
    let is_new = move |directory: &&PathBuf| {
        seen.insert(directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf()))
    };
    sources.directories.iter().filter(is_new).map(PathBuf::as_path)
}

/// Returns the names that several files have: in two directories, or in one if a name is long or
/// not UTF-8 and was shortened.
pub(super) fn namesakes<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> HashSet<String> {
    let mut once = HashSet::new();
    let names = candidates.filter(|candidate| !candidate.is_shipped()).map(Candidate::name);
    names.filter(|name| !once.insert(name.clone())).collect()
}

impl Sources {
    /// Returns the files whose content is also reachable outside their plugin directory, so that
    /// protecting the directory is not enough: symlinks, and files with several hard links.
    pub(crate) fn elsewhere(&self) -> Vec<PathBuf> {
        // Loading reports a directory that cannot be read.
        let files = self.directories.iter().filter_map(|directory| files(directory).ok()).flatten();
        files
            .filter(|file| {
                file.symlink_metadata().is_ok_and(|meta| meta.is_symlink() || has_names(&meta))
            })
            .collect()
    }
}

fn has_names(meta: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(meta) > 1
}

/// Returns the plugin files of one directory.
pub(super) fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
        if files.len() > MAX_PLUGINS {
            return Err(io::Error::other(format!("it holds more than {MAX_PLUGINS} plugins")));
        }
    }
    files.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    Ok(files)
}
