//! Finding plugins: shipped ones first, then directories in the order given, their files by the bytes of their names.

use super::{Shipped, Sources};
use crate::sandbox::{Trust, limits};
use crate::tool::text::elided;
use crate::workspace::{LastLink, open_regular};
use std::borrow::Cow;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The most plugins of one directory: each holds compiled code in memory.
const MAX_PLUGINS: usize = 10_000;

/// A directory of plugins that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the plugin directory `{}`: {source}; give an existing directory with --plugins", path.display())]
pub struct DirectoryError {
    path: PathBuf,
    source: io::Error,
}

/// Something that may be a plugin.
pub(super) enum Candidate {
    Shipped(&'static palisade_plugins::Plugin),
    File(PathBuf),
}

impl Candidate {
    /// The plugin's name.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Shipped(plugin) => plugin.name.to_owned(),
            Self::File(path) => elided(&path.file_stem().unwrap_or_default().to_string_lossy(), 128),
        }
    }

    /// Where it lies.
    pub(super) fn file(&self) -> String {
        match self {
            Self::Shipped(plugin) => format!("shipped:{}", plugin.file),
            Self::File(path) => elided(&path.to_string_lossy(), 512),
        }
    }

    /// Whose word there is for its bytes.
    pub(super) fn trust(&self) -> Trust {
        match self {
            Self::Shipped(_) => Trust::Embedded,
            Self::File(_) => Trust::Nobody,
        }
    }

    /// Its bytes, read once: what is hashed is what is compiled.
    pub(super) fn bytes(&self) -> Result<Cow<'static, [u8]>, String> {
        match self {
            Self::Shipped(plugin) => Ok(Cow::Borrowed(plugin.bytes)),
            Self::File(path) => read(path).map(Cow::Owned),
        }
    }
}

pub(super) fn candidates(sources: &Sources) -> Result<Vec<Candidate>, DirectoryError> {
    let mut found: Vec<Candidate> = match sources.shipped {
        Shipped::Included => palisade_plugins::all().iter().map(Candidate::Shipped).collect(),
        Shipped::LeftOut => Vec::new(),
    };
    for directory in &sources.directories {
        let files = files(directory).map_err(|source| DirectoryError { path: directory.clone(), source })?;
        found.extend(files.into_iter().map(Candidate::File));
    }
    found.extend(sources.files.iter().cloned().map(Candidate::File));
    Ok(found)
}

fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
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

/// Reads a file that may be anything: never waits on a pipe, never reads more than a component may have.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let file = open_regular(path, LastLink::Follow).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    if size > limits::COMPONENT {
        return Err(format!("it is {size} bytes large; at most {} are accepted", limits::COMPONENT));
    }
    let mut bytes = Vec::new();
    file.take(limits::COMPONENT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}
