//! The absolute paths by which a workspace was opened.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Returns the names under which an absolute path argument lies in the workspace: its real path
/// first, and every absolute form of the path by which it was opened. Only names that lead to the
/// workspace now are among them.
pub(super) fn names(given: &Path, root: &Path) -> Vec<PathBuf> {
    names_from(given, root, &bases(given))
}

/// Returns the directories that a path may be relative to. A shell that followed a link to the
/// current directory has its name in `PWD`.
fn bases(given: &Path) -> Vec<PathBuf> {
    if given.is_absolute() {
        return vec![PathBuf::new()];
    }
    let shells = std::env::var_os("PWD").filter(|name: &OsString| Path::new(name).is_absolute());
    std::env::current_dir().ok().into_iter().chain(shells.map(PathBuf::from)).collect()
}

fn names_from(given: &Path, root: &Path, bases: &[PathBuf]) -> Vec<PathBuf> {
    let mut names = vec![root.to_owned()];
    for base in bases {
        let whole = base.join(given);
        for name in [folded(&whole), whole] {
            let leads_here = || name.canonicalize().is_ok_and(|real| real == root);
            if !names.contains(&name) && leads_here() {
                names.push(name);
            }
        }
    }
    names
}

/// Returns a path without `.` and `..`. It may lead elsewhere, because a link may stand before a
/// `..`.
fn folded(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(component),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;
    use std::os::unix::fs::symlink;

    /// Creates `real/ws`, and the links `link` to it, `up` to `real` and `other` to another
    /// directory.
    fn places() -> (tempfile::TempDir, PathBuf) {
        let outer = tempfile::tempdir().unwrap();
        let place = outer.path().canonicalize().unwrap();
        std::fs::create_dir_all(place.join("real/ws")).unwrap();
        std::fs::create_dir_all(place.join("elsewhere/ws")).unwrap();
        symlink("real/ws", place.join("link")).unwrap();
        symlink("real", place.join("up")).unwrap();
        symlink("elsewhere/ws", place.join("other")).unwrap();
        (outer, place)
    }

    #[test]
    fn every_form_of_the_given_path_is_a_name() {
        let (_outer, place) = places();
        let root = place.join("real/ws");
        let none = vec![root.clone()];
        let and = |name: &str| vec![root.clone(), place.join(name)];
        for (given, base, expected) in [
            ("", "real/ws", none.clone()),
            (".", "link", and("link")),
            ("ws", "up", and("up/ws")),
            ("link", "", and("link")),
            (
                "real/../link",
                "",
                vec![root.clone(), place.join("link"), place.join("real/../link")],
            ),
            // The link leads elsewhere by now, or before the `..`.
            ("other", "", none.clone()),
            ("link/../ws", "", and("link/../ws")),
        ] {
            let names = names_from(Path::new(given), &root, &[place.join(base)]);
            assert_eq!(names, expected, "{given:?} in {base:?}");
        }
    }
}
