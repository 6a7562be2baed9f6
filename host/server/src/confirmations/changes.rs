//! The files that a call would change, with a diff where the input says enough.

use super::unified::{COMPARED, Unified, unified};
use palisade::confirm::{ConfirmationRequest, DisplayedFiles};
use palisade::plugins::Plugin;
use palisade::tool::budget::Budget;
use palisade::tool::json::{JsonBounds, parse_within};
use palisade::tool::text::{cut, elided};
use palisade::workspace::{FileError, FileState, Workspace};
use palisade::{Host, SideEffects};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The number of files that are listed.
const FILES: usize = 100;
/// The longest path that is shown, in bytes.
const PATH: usize = 4096;

/// The change that a call would make to a file. Its serialized form is the one of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FileChange {
    /// The path: as the input names it, or that of the file behind a link.
    path: String,
    change: Change,
    /// A unified diff with three lines of context; its names are escaped.
    diff: Option<String>,
    /// True if the diff leaves out hunks at the end.
    diff_truncated: bool,
    /// The number of added lines, if there is a diff.
    added: Option<u64>,
    /// The number of removed lines, if there is a diff.
    removed: Option<u64>,
    /// Why there is no diff, or what to know about it.
    note: Option<String>,
}

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Change {
    Create,
    Modify,
    Delete,
    Unknown,
}

/// A change that an input describes.
#[derive(Debug, PartialEq, Eq)]
enum Edit<'a> {
    Write { path: &'a str, content: &'a str },
    Patch { path: &'a str, old: &'a str, new: &'a str },
    Delete { path: &'a str },
}

impl<'a> Edit<'a> {
    /// Returns the change that a shipped tool makes with this input. With any other member, the
    /// input may mean something else than it shows.
    fn of(tool: &str, input: &'a Value) -> Option<Self> {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let path = text("path")?;
        let has_only = |members: usize| input.as_object().is_some_and(|all| all.len() == members);
        match tool {
            "write_file" if has_only(2) => Some(Self::Write { path, content: text("content")? }),
            "patch_file" if has_only(3) => {
                Some(Self::Patch { path, old: text("old")?, new: text("new")? })
            }
            "delete_file" if has_only(1) => Some(Self::Delete { path }),
            _ => None,
        }
    }

    fn path(&self) -> &'a str {
        match self {
            Self::Write { path, .. } | Self::Patch { path, .. } | Self::Delete { path } => path,
        }
    }
}

/// Whose code a tool is. Only that of the shipped tools is known to do what an input says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    /// A plugin that ships with the library.
    Shipped,
    /// Any other plugin, or a native tool.
    Other,
}

impl Code {
    /// Returns whose code a question is about. A file may have the name of a shipped plugin.
    fn of(host: &Host, request: &ConfirmationRequest) -> Self {
        let is_shipped =
            |plugin: &Plugin| plugin.path().is_none() && Some(plugin.digest()) == request.digest;
        match host.plugins().iter().any(is_shipped) {
            true => Self::Shipped,
            false => Self::Other,
        }
    }
}

/// Returns the files that the call of a question would change, at most 100, in this workspace of
/// its session. Only a file that a shipped tool would change has a diff; its state is recorded in
/// the request, so that an answer applies to the file as it is displayed. Blocks while it reads the
/// files.
#[must_use]
pub fn file_changes(
    host: &Host,
    workspace: Option<&Workspace>,
    request: &ConfirmationRequest,
) -> Vec<FileChange> {
    changes(
        (request.tool.as_str(), request.side_effects, Code::of(host, request)),
        request.input.as_deref(),
        (&request.projected_modifications, &request.displayed),
        workspace,
        &host.limits().account(),
    )
}

/// Returns the same files without reading them, each with this note in place of its diff. The
/// question is then still about them, and not about no file.
pub(crate) fn unread_changes(request: &ConfirmationRequest, note: &str) -> Vec<FileChange> {
    unread(request.side_effects, &request.projected_modifications, note)
}

fn unread(class: SideEffects, projected: &[String], note: &str) -> Vec<FileChange> {
    match class {
        SideEffects::Write | SideEffects::Execute => {
            projected.iter().take(FILES).map(|path| FileChange::unknown(path, note)).collect()
        }
        SideEffects::None | SideEffects::Read | SideEffects::Network => Vec::new(),
    }
}

/// Returns the files that a call would change. Blocks while it reads them.
fn changes(
    (tool, class, code): (&str, SideEffects, Code),
    input: Option<&str>,
    (projected, displayed): (&[String], &DisplayedFiles),
    workspace: Option<&Workspace>,
    budget: &dyn Budget,
) -> Vec<FileChange> {
    if !matches!(class, SideEffects::Write | SideEffects::Execute) {
        return Vec::new();
    }
    let unknown = match input {
        Some(_) => "the input does not say how the file would change",
        // A request leaves out an input of more than 1 MiB.
        None => "the input is too long to be compared with the file",
    };
    // The memory of the input stays reserved until the budget ends, as the input does.
    let input = input.and_then(|text| parse_within(text, JsonBounds::CALL_INPUT, budget).ok());
    let input = input.map(|(input, _)| input);
    let edit = input.as_ref().filter(|_| code == Code::Shipped);
    let edit = edit.and_then(|input| Edit::of(tool, input));
    let mut files = Vec::new();
    let mut others = projected.iter();
    if let Some(edit) = &edit {
        // A shipped tool has one path. The projected one is that of the file behind links.
        let path = others.next().map_or(edit.path(), String::as_str);
        files.push(match workspace {
            Some(workspace) => change(edit, path, workspace, displayed),
            None => FileChange::unknown(path, "the workspace of the session is not known"),
        });
    }
    for path in others.take(FILES) {
        files.push(FileChange::unknown(path, unknown));
    }
    files
}

fn change(
    edit: &Edit<'_>,
    path: &str,
    workspace: &Workspace,
    displayed: &DisplayedFiles,
) -> FileChange {
    if let Edit::Delete { .. } = edit
        && let Some(link) = workspace.files().state_of_link(path)
    {
        displayed.record(path, link);
        let note = "a symbolic link, which is removed itself; the file behind it stays";
        return FileChange { change: Change::Delete, ..FileChange::unknown(path, note) };
    }
    // A link may lead from a harmless name into a protected tree.
    if let Err(error) = workspace.files().check_change(path) {
        return FileChange::unknown(path, error.to_string());
    }
    let (before, state) = match workspace.files().read_with_state(path) {
        Ok((bytes, state)) => (Some(bytes), state),
        Err(FileError::NotFound(_)) => (None, FileState::MISSING),
        Err(error) => return FileChange::unknown(path, error.to_string()),
    };
    displayed.record(path, state);
    let kind = match (edit, &before) {
        (Edit::Delete { .. }, Some(_)) => Change::Delete,
        (Edit::Write { .. }, None) => Change::Create,
        (Edit::Write { .. } | Edit::Patch { .. }, Some(_)) => Change::Modify,
        (Edit::Patch { .. } | Edit::Delete { .. }, None) => {
            return FileChange::unknown(path, "the file does not exist");
        }
    };
    let before = before.unwrap_or_default();
    let before = match text(&before) {
        Ok(text) => text,
        Err(note) => return FileChange { change: kind, ..FileChange::unknown(path, note) },
    };
    match after(edit, before) {
        Ok(after) => FileChange::compared(path, kind, before, &after),
        Err(note) => FileChange { change: kind, ..FileChange::unknown(path, note) },
    }
}

/// Returns the content of a file as a text that is compared.
fn text(bytes: &[u8]) -> Result<&str, String> {
    let length = bytes.len();
    if length > COMPARED {
        return Err(format!("the file has {length} bytes; at most {COMPARED} are compared"));
    }
    match str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(format!("the file is binary ({length} bytes)")),
    }
}

/// Returns the file's content after the change.
fn after(edit: &Edit<'_>, before: &str) -> Result<String, String> {
    match *edit {
        Edit::Write { content, .. } => {
            text(content.as_bytes()).map(str::to_owned).map_err(|why| format!("afterwards, {why}"))
        }
        Edit::Delete { .. } => Ok(String::new()),
        Edit::Patch { old, new, .. } => match before.split_once(old) {
            None => Err("the text to replace does not occur in the file".to_owned()),
            Some(_) if old.is_empty() => Err("the text to replace is empty".to_owned()),
            Some((_, rest)) if rest.contains(old) => {
                Err("the text to replace occurs more than once in the file".to_owned())
            }
            Some((head, rest)) => Ok([head, new, rest].concat()),
        },
    }
}

impl FileChange {
    fn unknown(path: &str, note: impl Into<String>) -> Self {
        Self {
            path: cut(path, PATH).to_owned(),
            change: Change::Unknown,
            diff: None,
            diff_truncated: false,
            added: None,
            removed: None,
            note: Some(note.into()),
        }
    }

    fn compared(path: &str, change: Change, before: &str, after: &str) -> Self {
        // On one line, whatever the name holds.
        let name = elided(path, 1024);
        let side = |letter: char, is_there: bool| match is_there {
            true => format!("{letter}/{name}"),
            false => "/dev/null".to_owned(),
        };
        let old_name = side('a', change != Change::Create);
        let new_name = side('b', change != Change::Delete);
        let Unified { text, truncated, added, removed } =
            unified((&old_name, before), (&new_name, after));
        let same = before == after && change == Change::Modify;
        Self {
            change,
            diff: Some(text),
            diff_truncated: truncated,
            added: Some(added),
            removed: Some(removed),
            note: same.then(|| "the file would stay as it is".to_owned()),
            ..Self::unknown(path, "")
        }
    }
}

#[cfg(test)]
mod tests;
