//! A recorded case: a call with the files before it, its result, and the files that it changed.

mod compared;

pub use compared::{difference, kept};

use crate::bounded;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use palisade::tool::text::visible;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Maximum size of the file of a case, in bytes.
pub(crate) const LARGEST: u64 = 16 << 20;
/// Maximum number of cases of a plugin.
const MOST: usize = 1_000;

/// Files by their paths in the workspace. A directory is kept if it is empty.
pub type Files = BTreeMap<String, Content>;

/// Changed files by their paths in the workspace, with `None` for a removed one.
pub type Changes = BTreeMap<String, Option<Content>>;

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Text, in UTF-8.
    Text(String),
    /// Any other bytes.
    Bytes {
        /// The bytes, in Base64.
        base64: String,
    },
    /// An empty directory: `{"entries": []}`.
    EmptyDirectory {
        /// Nothing.
        entries: [(); 0],
    },
}

/// A case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// The files before the call.
    #[serde(default)]
    pub workspace: Files,
    /// The members that the result of the call must have. Other members are not compared.
    pub result: Value,
    /// The files that the call must have changed, with `null` for a removed one.
    #[serde(default)]
    pub changes: Changes,
}

/// A case that can be replayed, with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// The name of the file.
    pub name: String,
    /// The case, or why its file cannot be read.
    pub case: Result<Case, String>,
}

impl Content {
    /// Returns the content for these bytes.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(
            |error| Self::Bytes { base64: BASE64.encode(error.as_bytes()) },
            Self::Text,
        )
    }

    /// Makes the file, or the directory, at this place.
    fn write(&self, place: &Path) -> io::Result<()> {
        match self {
            Self::Text(text) => fs::write(place, text),
            Self::Bytes { base64 } => {
                let bytes = BASE64.decode(base64);
                fs::write(place, bytes.map_err(|error| io::Error::other(error.to_string()))?)
            }
            Self::EmptyDirectory { .. } => fs::create_dir_all(place),
        }
    }
}

/// Writes files below a directory.
///
/// # Errors
///
/// If a path leaves the directory, or a file cannot be written.
pub fn write_files(root: &Path, files: &Files) -> io::Result<()> {
    for (path, content) in files {
        let place = root.join(inside(path)?);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        content.write(&place)?;
    }
    Ok(())
}

/// Returns the path if it stays below the directory that it is relative to: the cases of a plugin
/// are not trusted more than the plugin.
fn inside(path: &str) -> io::Result<&Path> {
    let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    let path = Path::new(path);
    // One file has one name.
    let is_plain = path.components().collect::<PathBuf>().as_os_str() == path.as_os_str();
    if path.as_os_str().is_empty() || !is_plain || !path.components().all(normal) {
        let shown = visible(&path.display().to_string());
        return Err(io::Error::other(format!(
            "`{shown}` is not a path inside of the workspace; a relative one without `.`, `..` and `//` is accepted"
        )));
    }
    Ok(path)
}

/// The treatment of links, pipes and devices below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherEntries {
    /// They are left out.
    LeftOut,
    /// They are refused, since a case cannot have them.
    Refused,
}

/// Reads all files below a directory, of at most this many bytes together.
///
/// # Errors
///
/// If a file or a directory cannot be read, or if the files are larger.
pub fn read_files(root: &Path, most: u64, others: OtherEntries) -> io::Result<Files> {
    let mut files = Files::new();
    let mut left = most;
    let too_large = |path: &Path| {
        let path = visible(&path.display().to_string());
        io::Error::other(format!("its files have more than {most} bytes together, with `{path}`"))
    };
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        let mut is_empty = !directory.as_os_str().is_empty();
        for entry in fs::read_dir(root.join(&directory))? {
            is_empty = false;
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, directory.join(entry.file_name()));
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() {
                // A sparse file is large without taking space.
                if entry.metadata()?.len() > left {
                    return Err(too_large(&path));
                }
                let bytes = bounded::read(&entry.path(), left)?;
                left -= bytes.len() as u64;
                files.insert(name_of(&path, others)?, Content::of(bytes));
            } else if others == OtherEntries::Refused {
                let path = visible(&path.display().to_string());
                return Err(io::Error::other(format!(
                    "`{path}` is neither a file nor a directory, and a case has no others"
                )));
            }
        }
        if is_empty {
            let entries = Content::EmptyDirectory { entries: [] };
            files.insert(name_of(&directory, others)?, entries);
        }
    }
    Ok(files)
}

/// Returns the name of a file in a case, which is text.
fn name_of(path: &Path, others: OtherEntries) -> io::Result<String> {
    match (path.to_str(), others) {
        (Some(name), _) => Ok(name.to_owned()),
        (None, OtherEntries::LeftOut) => Ok(path.to_string_lossy().into_owned()),
        (None, OtherEntries::Refused) => {
            let path = visible(&path.display().to_string());
            Err(io::Error::other(format!("the name `{path}` is not UTF-8, as a case needs it")))
        }
    }
}

/// Returns what changed from `before` to `after`.
#[must_use]
pub fn changes(before: &Files, after: &Files) -> Changes {
    // A directory that got its first file, or lost its last one, is still there.
    let is_still_there = |path: &str, content: &Content, then: &Files| {
        matches!(content, Content::EmptyDirectory { .. }) && has_entries(then, path)
    };
    let removed = before.iter().filter(|(path, content)| {
        !after.contains_key(*path) && !is_still_there(path, content, after)
    });
    let removed = removed.map(|(path, _)| path.clone());
    let is_gone = |path: &String| !after.contains_key(path) && !has_entries(after, path);
    // A directory that had entries has no line of its own.
    let directories = before.keys().flat_map(|path| parents(path)).filter(is_gone);
    let removed = removed.chain(directories).map(|path| (path, None));
    let written = after.iter().filter(|(path, content)| {
        before.get(*path) != Some(content) && !is_still_there(path, content, before)
    });
    removed.chain(written.map(|(path, content)| (path.clone(), Some(content.clone())))).collect()
}

/// Returns whether the directory at this path has an entry.
fn has_entries(files: &Files, directory: &str) -> bool {
    let below = format!("{directory}/");
    files.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
}

/// Returns the paths of the directories around a file.
fn parents(path: &str) -> impl Iterator<Item = String> {
    path.match_indices('/').map(|(at, _)| path[..at].to_owned())
}

/// Returns the cases of a directory, sorted by name, and reads each when it is its turn: together
/// they may be larger than memory. A missing directory has none.
///
/// # Errors
///
/// If the directory cannot be listed.
pub fn read_all(directory: &Path) -> io::Result<impl Iterator<Item = Named> + use<>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        entries => Some(entries?),
    };
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    paths.sort();
    paths.truncate(MOST);
    let named = |path: PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Named { name: visible(&stem), case: read(&path) }
    };
    Ok(paths.into_iter().map(named))
}

fn read(path: &Path) -> Result<Case, String> {
    let text = bounded::read_text(path, LARGEST).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => format!(
            "it is no case: {error}; a case has `tool`, `input`, `workspace`, `result` and `changes`, and a file is a text, {{\"base64\": …}} or, for an empty directory, {{\"entries\": []}}"
        ),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn files_survive_writing_and_reading() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::from([
            ("a/b.txt".to_owned(), Content::of(b"text".to_vec())),
            ("bytes".to_owned(), Content::of(vec![0, 159, 146, 150])),
            ("empty".to_owned(), Content::EmptyDirectory { entries: [] }),
        ]);
        write_files(root.path(), &files).unwrap();
        let read = |most| read_files(root.path(), most, OtherEntries::Refused);
        assert_eq!(read(8).unwrap(), files);
        assert!(read(7).unwrap_err().to_string().contains("more than 7 bytes together"));
        assert!(matches!(files["bytes"], Content::Bytes { .. }));
    }

    #[test]
    fn entries_that_a_case_cannot_have_are_refused() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("link")).unwrap();
        let read = |others| read_files(root.path(), 8, others);
        assert!(read(OtherEntries::Refused).unwrap_err().to_string().contains("`link`"));
        assert_eq!(read(OtherEntries::LeftOut).unwrap(), Files::new());
    }

    #[test]
    fn path_outside_of_the_workspace_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("inner");
        for path in ["../x", "/x", "", "a/../../x", ".", "a//x", "a/./x", "a/"] {
            let files = Files::from([(path.to_owned(), Content::of(Vec::new()))]);
            assert!(write_files(&inner, &files).is_err(), "{path}");
        }
        assert!(!root.path().join("x").exists());
    }

    #[test]
    fn changes_name_written_and_removed_files() {
        let text = |text: &str| Content::Text(text.to_owned());
        let before = Files::from([("a".to_owned(), text("1")), ("b".to_owned(), text("2"))]);
        let after = Files::from([("b".to_owned(), text("3")), ("c".to_owned(), text("4"))]);
        let found = changes(&before, &after);
        let expected = [("a", None), ("b", Some(text("3"))), ("c", Some(text("4")))];
        assert_eq!(found, expected.map(|(path, it)| (path.to_owned(), it)).into());
    }

    #[test]
    fn directories_are_changes_if_they_come_or_go() {
        let empty = || Content::EmptyDirectory { entries: [] };
        let of = |paths: &[&str]| -> Files {
            let content = |path: &str| match path.ends_with('a') {
                true => Content::Text(String::new()),
                false => empty(),
            };
            paths.iter().map(|path| ((*path).to_owned(), content(path))).collect()
        };
        let changed = |before: &[&str], after: &[&str]| {
            changes(&of(before), &of(after)).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(changed(&[], &["d"]), ["d"]);
        assert_eq!(changed(&["d"], &[]), ["d"]);
        assert_eq!(changed(&["d"], &["d/a"]), ["d/a"]);
        // A directory goes with its last entry, or stays.
        assert_eq!(changed(&["d/a"], &["d"]), ["d/a"]);
        assert_eq!(changed(&["d/a"], &[]), ["d", "d/a"]);
        assert_eq!(changed(&["d/e/a"], &["d/e"]), ["d/e/a"]);
        assert_eq!(changed(&["d/e/a"], &["d"]), ["d/e", "d/e/a"]);
        assert_eq!(changed(&["d/e/a"], &[]), ["d", "d/e", "d/e/a"]);
        assert_eq!(changed(&["d/e/a", "d/a"], &["d/a"]), ["d/e", "d/e/a"]);
    }
}
