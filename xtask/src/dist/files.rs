//! The files of a package, in memory: sorted by path, without times or owners, so that the same
//! sources make the same bytes.

use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

/// Whether a file is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is read only.
    Data,
    /// It is run.
    Program,
}

impl Mode {
    /// Returns the permissions on a Unix system.
    pub(super) fn permissions(self) -> u32 {
        match self {
            Self::Data => 0o644,
            Self::Program => 0o755,
        }
    }
}

/// A file without its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) mode: Mode,
    /// Shared, because several packages carry the program.
    pub(super) bytes: Rc<[u8]>,
}

/// Files by their relative path, with `/` between its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<String, File>);

impl Files {
    pub(super) fn insert(
        &mut self,
        path: impl Into<String>,
        mode: Mode,
        bytes: impl Into<Rc<[u8]>>,
    ) {
        self.0.insert(path.into(), File { mode, bytes: bytes.into() });
    }

    /// Inserts a file that is only read.
    pub(super) fn data(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.insert(path, Mode::Data, bytes.into());
    }

    /// Inserts a copy of a file on disk.
    pub(super) fn copy(&mut self, path: impl Into<String>, from: &Path) -> anyhow::Result<()> {
        let bytes = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
        self.data(path, bytes);
        Ok(())
    }

    /// Inserts copies of a file or of all files below a directory, except those that an interpreter
    /// has left there.
    pub(super) fn copy_tree(&mut self, path: &str, from: &Path) -> anyhow::Result<()> {
        if !from.is_dir() {
            return self.copy(path, from);
        }
        let listing = || format!("listing {}", from.display());
        for entry in fs::read_dir(from).with_context(listing)? {
            let entry = entry.with_context(listing)?;
            let name = entry.file_name();
            let name = name.to_str().with_context(|| format!("{name:?} is not UTF-8"))?;
            if name != "__pycache__" && !name.starts_with('.') {
                self.copy_tree(&format!("{path}/{name}"), &entry.path())?;
            }
        }
        Ok(())
    }

    /// Inserts the files of `others` below `directory`.
    pub(super) fn add(&mut self, directory: &str, others: &Self) {
        for (path, file) in others.iter() {
            let path =
                if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") };
            self.0.insert(path, file.clone());
        }
    }

    /// Returns the files in the order of their paths.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Writes the files below a directory.
    pub(super) fn write_below(&self, directory: &Path) -> anyhow::Result<()> {
        for (path, file) in self.iter() {
            let path = directory.join(path);
            let folder = path.parent().unwrap_or(directory);
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
            fs::write(&path, &file.bytes).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.0.get(path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]
    use super::*;

    #[test]
    fn leftovers_of_an_interpreter_are_no_part_of_a_package() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a/__pycache__/x.pyc", "a/b.py", "a/.cache/c"] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut files = Files::default();
        files.copy_tree("sdk", &root.path().join("a")).unwrap();
        assert_eq!(files.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["sdk/b.py"]);
    }
}
