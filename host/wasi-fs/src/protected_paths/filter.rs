//! Path rules on real directories: a path is judged by the present place of its opened directory,
//! not by the names that led there.

use super::ancestors::{Identity, ascend};
use super::{Forbidden, ProtectedPaths};
use crate::fd_location::current;
use crate::path_rules::{PathRules, Standing, joined};
use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Component, Path};

/// The number of attempts to find the place of a directory that is being moved.
const ATTEMPTS: usize = 4;

impl ProtectedPaths {
    /// Returns whether there are path rules. Without them no path is judged.
    #[doc(hidden)]
    pub fn filter_anything(&self) -> bool {
        self.paths.is_some()
    }

    /// Returns a copy that also denies the paths that these rules deny. Their patterns are relative
    /// to the mounted directory, or to the one that it is a subdirectory of.
    #[must_use]
    pub fn narrowed(&self, rules: &PathRules) -> Self {
        let paths = match (&self.paths, rules.is_empty()) {
            (own, true) => own.clone(),
            (None, false) => Some(rules.clone()),
            (Some(own), false) => Some(own.and(rules)),
        };
        let (trees, hosts, around) = (self.trees.clone(), self.hosts.clone(), self.around.clone());
        Self { root: self.root, trees, hosts, paths, around }
    }

    /// Refuses a path that the path rules deny by its name. The path is relative to the mounted
    /// directory and has no `..`; a link on it may lead to another place.
    #[doc(hidden)]
    pub fn check_allowed(&self, path: &str) -> Result<(), Forbidden> {
        match self.standing_of(path) {
            Standing::Denied => Err(Forbidden::Excluded(path.into())),
            Standing::Way | Standing::Permitted => Ok(()),
        }
    }

    /// Judges a real path, relative to the mounted directory.
    #[doc(hidden)]
    pub fn standing_of(&self, path: &str) -> Standing {
        let path = if path == "." { "" } else { path };
        self.paths.as_ref().map_or(Standing::Permitted, |rules| self.standing_by(rules, path))
    }

    /// Judges a name in an open directory by the present place of the directory. The name `.` is
    /// the directory itself.
    #[doc(hidden)]
    pub fn standing_at(&self, dir: BorrowedFd<'_>, name: &OsStr) -> Result<Standing, Forbidden> {
        let Some(rules) = &self.paths else {
            self.check_around()?;
            return Ok(Standing::Permitted);
        };
        let place = self.place(dir)?;
        // No pattern can be compared with a name that is not UTF-8.
        Ok(place.as_deref().zip(name.to_str()).map_or(Standing::Denied, |(place, name)| {
            self.standing_by(rules, &joined(place, name))
        }))
    }

    /// Judges a path relative to the mounted directory, which is itself never denied.
    fn standing_by(&self, rules: &PathRules, path: &str) -> Standing {
        let standing = rules.standing(&joined(self.base(), path));
        if path.is_empty() { standing.max(Standing::Way) } else { standing }
    }

    /// Returns the present path of an open directory, relative to the mounted one, or none if it is
    /// not UTF-8.
    ///
    /// # Errors
    ///
    /// [`Forbidden::Outside`] if the directory does not lie in the mounted one any more, or that
    /// one has left its path; [`Forbidden::Unknown`] if the system cannot tell, or the directory is
    /// moved all the time.
    #[doc(hidden)]
    pub fn place(&self, dir: BorrowedFd<'_>) -> Result<Option<String>, Forbidden> {
        self.check_around()?;
        place_in(dir, self.root)
    }
}

/// Returns the present path of an open directory, relative to the one with this identity, or none
/// if it is not UTF-8.
pub(super) fn place_in(dir: BorrowedFd<'_>, root: Identity) -> Result<Option<String>, Forbidden> {
    for _ in 0..ATTEMPTS {
        let mut depth = 0_usize;
        ascend(dir, root, |_, _| {
            depth = depth.saturating_add(1);
            Ok(())
        })?;
        if depth == 0 {
            return Ok(Some(String::new()));
        }
        let unknown = || io::Error::other("the system cannot tell the path of a directory");
        let path = current(dir).ok_or_else(unknown)?;
        // The names and the number of directories have to be those of one moment.
        let mut again = 0_usize;
        ascend(dir, root, |_, _| {
            again = again.saturating_add(1);
            Ok(())
        })?;
        if again == depth && current(dir).as_ref() == Some(&path) {
            return Ok(last_names(&path, depth));
        }
    }
    Err(io::Error::other("the directory is moved all the time").into())
}

/// Returns the last names of a path, or none if one of them is not UTF-8.
fn last_names(path: &Path, count: usize) -> Option<String> {
    let names: Option<Vec<&str>> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_str()),
            _ => None,
        })
        .rev()
        .take(count)
        .collect();
    let mut names = names.filter(|names| names.len() == count)?;
    names.reverse();
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_names_of_a_path_are_its_place_in_the_directory() {
        assert_eq!(last_names(Path::new("/a/b/c"), 2).as_deref(), Some("b/c"));
        assert_eq!(last_names(Path::new("/a"), 2), None);
        use std::os::unix::ffi::OsStrExt as _;
        assert_eq!(last_names(Path::new(OsStr::from_bytes(b"/a/\xff/c")), 2), None);
    }
}
