//! Warns of a workspace that contains the user's home directory, where tools reach far more than a
//! project.

use super::output;
use palisade::internal::Mounts;
use palisade::workspace::Workspace;
use std::path::Path;

/// The effect of such a workspace.
const REACH: &str =
    "tools of class read can read your keys and the settings of other programs without a question";
/// The remedy.
pub(super) const REMEDY: &str = "name a project with --workspace";

/// Prints the warning, if this workspace contains the home directory.
pub(super) fn show(workspace: &Workspace) {
    show_at(workspace.root());
}

/// Prints the warning, if the directory at this path without symlinks contains the home directory.
pub(super) fn show_at(root: &Path) {
    if let Some(finding) = finding(root) {
        output::note(&format!("the workspace {finding}; {REMEDY}"));
    }
}

/// Returns the warning for a resolved path, without its subject and its remedy.
pub(super) fn finding(root: &Path) -> Option<String> {
    let home = etcetera::home_dir().ok().filter(|home| home.is_absolute())?;
    let holds = holds(root, &home.canonicalize().unwrap_or(home))?;
    Some(format!("{holds}: {REACH}"))
}

fn holds(root: &Path, home: &Path) -> Option<&'static str> {
    match home.strip_prefix(root) {
        Ok(below) if below.as_os_str().is_empty() => Some("is your home directory"),
        Ok(_) => Some("contains your home directory"),
        Err(_) if Mounts::below(root).show(home) => Some("shows your home directory"),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_directory_and_its_parents_are_too_wide() {
        let holds = |root: &str| holds(Path::new(root), Path::new("/home/ann"));
        assert_eq!(holds("/home/ann"), Some("is your home directory"));
        for root in ["/home", "/"] {
            assert_eq!(holds(root), Some("contains your home directory"), "{root}");
        }
        for root in ["/home/ann/project", "/home/anna", "/home/an", "/srv"] {
            assert_eq!(holds(root), None, "{root}");
        }
    }
}
