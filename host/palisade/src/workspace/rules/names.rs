//! Recognises names of git repositories, in every form that some file system resolves to `.git`.

use crate::tool::text::is_ignorable;

/// Returns the path up to the first component that means a repository, if any.
pub(super) fn git_tree(path: &str) -> Option<&str> {
    let mut end = 0;
    for part in path.split('/') {
        end += part.len();
        if means_git(part) {
            return path.get(..end);
        }
        end += 1;
    }
    None
}

/// Returns whether some file system resolves this name to `.git`. It folds letter case, characters
/// that HFS+, ext4 and F2FS ignore, and Windows forms: trailing dots and spaces, the short name
/// `GIT~1`, and a stream behind a colon. Refusing such a name on a file system without this folding
/// costs little.
fn means_git(name: &str) -> bool {
    // Fast path: the first byte rules out most names.
    if !name.starts_with(['.', 'g', 'G']) && name.is_ascii() {
        return false;
    }
    let shown: String =
        name.chars().filter(|c| !is_ignorable(*c)).map(|c| c.to_ascii_lowercase()).collect();
    let stem = shown.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    stem == ".git" || stem.strip_prefix("git~").is_some_and(is_number)
}

/// A name that makes git take its directory for a repository: `HEAD` beside `objects` and `refs`,
/// or `HEAD` beside `commondir`, which points to the two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// `HEAD`, which every repository has.
    Head,
    /// One of the other names.
    Store(&'static str),
}

impl Part {
    /// The names that git looks for beside `HEAD`.
    const STORE: [&str; 3] = ["objects", "refs", "commondir"];

    /// Returns the part that some file system finds under this name. Folds like the check for
    /// `.git`, except short names: a file created under a short name cannot be opened by a long
    /// one.
    pub(crate) fn of(name: &str) -> Option<Self> {
        // Fast path: the first byte rules out most names.
        if name.is_ascii() && !name.starts_with(['h', 'H', 'o', 'O', 'r', 'R', 'c', 'C']) {
            return None;
        }
        let folded = folded(name);
        let stem = folded.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
        if stem == "head" {
            return Some(Self::Head);
        }
        Self::STORE.into_iter().find(|part| *part == stem).map(Self::Store)
    }

    /// Returns whether the two names form a repository, or most of one.
    pub(super) fn meets(self, other: Self) -> bool {
        (self == Self::Head) != (other == Self::Head)
    }
}

/// Returns whether two names may be equal on a case-insensitive file system.
pub(super) fn is_same(one: &std::ffi::OsStr, other: &std::ffi::OsStr) -> bool {
    let folds = || !one.is_ascii() || !other.is_ascii();
    let same = || folded(&one.to_string_lossy()) == folded(&other.to_string_lossy());
    one.eq_ignore_ascii_case(other) || (folds() && same())
}

/// Folds a name through upper case, since some capital letters have two lower-case forms.
fn folded(name: &str) -> String {
    let capitals = name.chars().filter(|c| !is_ignorable(*c)).flat_map(char::to_uppercase);
    capitals.flat_map(char::to_lowercase).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_system_spelling_of_git_is_recognised() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".git.",
            ".git ",
            ".git . .",
            "GIT~1",
            "git~2",
            ".g\u{200c}it",
            "\u{feff}.git",
        ] {
            assert_eq!(git_tree(name), Some(name));
        }
        for ignored in
            ['\u{ad}', '\u{34f}', '\u{180e}', '\u{200b}', '\u{fe0f}', '\u{3164}', '\u{e0041}']
        {
            for name in
                [format!("{ignored}.git"), format!(".G{ignored}it"), format!("git~1{ignored}")]
            {
                assert_eq!(git_tree(&name), Some(&*name), "{ignored:?}");
            }
        }
        assert_eq!(git_tree(".git::$INDEX_ALLOCATION/config"), Some(".git::$INDEX_ALLOCATION"));
    }

    #[test]
    fn every_spelling_of_a_repository_part_is_recognised() {
        for name in
            ["HEAD", "head", "Head.", "HEAD ", "HEAD::$DATA", "HE\u{200c}AD", "\u{feff}head"]
        {
            assert_eq!(Part::of(name), Some(Part::Head), "{name}");
        }
        for (part, names) in [
            ("objects", ["objects", "OBJECTS", "object\u{17f}", "objects. ."]),
            ("refs", ["refs", "ReFs", "ref\u{17f}", "refs::$INDEX_ALLOCATION"]),
            ("commondir", ["commondir", "CommonDir", "common\u{ad}dir", "commondir "]),
        ] {
            for name in names {
                assert_eq!(Part::of(name), Some(Part::Store(part)), "{name}");
            }
        }
        for name in [
            "",
            "heads",
            "headers",
            "object",
            "HEAD.md",
            "refs.txt",
            "common",
            "ORIG_HEAD",
            "config",
            "häd",
        ] {
            assert_eq!(Part::of(name), None, "{name}");
        }
    }

    #[test]
    fn tree_is_named_by_its_path() {
        assert_eq!(git_tree("a/b/.git/hooks/x"), Some("a/b/.git"));
        assert_eq!(git_tree("é/.Git/.git"), Some("é/.Git"));
    }

    #[test]
    fn similar_names_are_allowed() {
        for name in [
            ".gitignore",
            ".gi\u{2800}t",
            ".github/x",
            "git",
            "a.git",
            ".gi",
            "git~",
            "git~x",
            "x/.gitmodules",
            "digit~1",
            "",
            ".",
        ] {
            assert_eq!(git_tree(name), None, "{name}");
        }
    }

    #[test]
    fn backslash_is_part_of_a_name() {
        assert_eq!(git_tree("a\\.git\\x"), None);
    }

    #[test]
    fn names_are_compared_case_folded() {
        let same = |one: &str, other: &str| is_same(one.as_ref(), other.as_ref());
        for (one, other) in [
            ("plugins", "PLUGINS"),
            ("plugin\u{17f}", "plugins"),
            ("plugins", "plugin\u{17f}"),
            ("\u{e9}", "\u{c9}"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        assert!(!same("plugins", "plugin") && !same("\u{e9}", "e"));
    }
}
