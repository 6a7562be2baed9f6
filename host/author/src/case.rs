//! A recorded case: a call with the files before it, its result, and the files that it changed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use palisade::ToolResult;
use palisade::tool::text::visible;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// Maximum size of the file of a case, in bytes.
const LARGEST: u64 = 16 << 20;
/// Maximum number of cases of a plugin.
const MOST: usize = 1_000;

/// Files by their paths in the workspace. Empty directories are not kept.
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
    /// What the call must return: the listed members, and no others are compared.
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

    fn bytes(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Bytes { base64 } => {
                BASE64.decode(base64).map_err(|error| io::Error::other(error.to_string()))
            }
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
        fs::write(place, content.bytes()?)?;
    }
    Ok(())
}

/// Returns the path if it stays below the directory that it is relative to: the cases of a plugin
/// are not trusted more than the plugin.
fn inside(path: &str) -> io::Result<&Path> {
    let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    let path = Path::new(path);
    if path.as_os_str().is_empty() || !path.components().all(normal) {
        let shown = visible(&path.display().to_string());
        return Err(io::Error::other(format!(
            "`{shown}` is not a path inside of the workspace; a relative one without `..` is accepted"
        )));
    }
    Ok(path)
}

/// Reads all files below a directory; links are left out.
///
/// # Errors
///
/// If a file or a directory cannot be read.
pub fn read_files(root: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, directory.join(entry.file_name()));
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() {
                let content = Content::of(fs::read(entry.path())?);
                files.insert(path.to_string_lossy().into_owned(), content);
            }
        }
    }
    Ok(files)
}

/// Returns what changed from `before` to `after`.
#[must_use]
pub fn changes(before: &Files, after: &Files) -> Changes {
    let removed = before.keys().filter(|path| !after.contains_key(*path));
    let removed = removed.map(|path| (path.clone(), None));
    let written = after.iter().filter(|(path, content)| before.get(*path) != Some(content));
    removed.chain(written.map(|(path, content)| (path.clone(), Some(content.clone())))).collect()
}

/// Reads the cases of a directory, sorted by name. A missing directory has none.
///
/// # Errors
///
/// If the directory cannot be listed.
pub fn read_all(directory: &Path) -> io::Result<Vec<Named>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    paths.sort();
    paths.truncate(MOST);
    let named = |path: PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Named { name: visible(&stem), case: read(&path) }
    };
    Ok(paths.into_iter().map(named).collect())
}

fn read(path: &Path) -> Result<Case, String> {
    let mut text = String::new();
    let read = fs::File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
        .map_err(|error| error.to_string())?;
    if read as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Returns the members of a result that a case keeps: those that the next run repeats.
#[must_use]
pub fn kept(result: &ToolResult) -> Value {
    let all = result.to_json();
    let Some(error) = result.error() else {
        let is_text = all["content"].as_array().is_some_and(|blocks| blocks.len() == 1)
            && all["content"][0]["type"] == "text";
        return match is_text {
            true => json!({"success": true, "output": all["output"]}),
            false => json!({"success": true, "content": all["content"]}),
        };
    };
    let mut kept = json!({"class": error.class().as_str(), "message": error.reason()});
    if let Some(kind) = all["error"]["detail"].get("kind") {
        kept["kind"] = kind.clone();
    }
    json!({"success": false, "error": kept})
}

/// Compares a result with the one of a case, and returns the first difference.
#[must_use]
pub fn difference(expected: &Value, result: &ToolResult) -> Option<String> {
    let mut actual = result.to_json();
    if let Some(error) = result.error() {
        actual["error"] = json!({
            "class": error.class().as_str(),
            "message": error.reason(),
            "kind": actual["error"]["detail"]["kind"],
        });
    }
    let difference = differs("", expected, &actual)?;
    let unexpected = result.error().filter(|_| expected["error"].is_null());
    Some(match unexpected {
        Some(error) => format!(
            "the call fails with `{}`",
            palisade::tool::text::elided(&error.to_string(), 300)
        ),
        None => difference,
    })
}

fn differs(at: &str, expected: &Value, actual: &Value) -> Option<String> {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            expected.iter().find_map(|(key, value)| {
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                differs(&at, value, actual.get(key).unwrap_or(&Value::Null))
            })
        }
        _ if expected == actual => None,
        _ => Some(format!("`{at}` is {}, and was {}", brief(actual), brief(expected))),
    }
}

fn brief(value: &Value) -> String {
    palisade::tool::text::elided(&value.to_string(), 160)
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
        ]);
        write_files(root.path(), &files).unwrap();
        assert_eq!(read_files(root.path()).unwrap(), files);
        assert!(matches!(files["bytes"], Content::Bytes { .. }));
    }

    #[test]
    fn path_outside_of_the_workspace_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("inner");
        for path in ["../x", "/x", "", "a/../../x", "."] {
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
    fn only_listed_members_are_compared() {
        let expected = json!({"success": true, "output": "x"});
        assert_eq!(differs("", &expected, &json!({"success": true, "output": "x", "id": 1})), None);
        let found = differs("", &expected, &json!({"success": true, "output": "y"}));
        assert_eq!(found.as_deref(), Some("`output` is \"y\", and was \"x\""));
    }
}
