//! Recognises the names that are protected in every directory, and the names of git repositories,
//! in every form that some file system resolves to them.

/// The name of a repository.
pub(super) const GIT: &str = ".git";
/// The name of a project's settings, which decide about the calls of runs in that project.
const SETTINGS: &str = "palisade.toml";
/// The name of a project's approvals, which tighten those of runs in that project.
const LOCK: &str = "palisade.lock";
/// The name of the approvals of MCP servers, beside the settings of a user.
const SERVERS: &str = "palisade.mcp";
/// The names that are protected in every directory.
pub(super) const PROTECTED: [&str; 4] = [GIT, SETTINGS, LOCK, SERVERS];
/// How the host names its own temporary files and directories, such as the next version of a file
/// that decides about rights. Guests can neither change nor read them, in whichever directory they
/// are made.
pub const PRIVATE_PREFIX: &str = "palisade.private-";
/// The beginning of the short names of the settings and of the approvals on Windows.
const SHORT: &str = "palisa~";
/// How they end.
const SHORT_ENDS: [&str; 3] = [".tom", ".loc", ".mcp"];
/// How the short names of private files end.
const PRIVATE_SHORT_END: &str = ".pri";

/// Returns the path up to the first component with a protected name, if any.
pub(super) fn protected_tree(path: &str) -> Option<&str> {
    up_to(path, is_protected)
}

/// Returns the path up to the first component with a private name, if any.
pub(super) fn private_tree(path: &str) -> Option<&str> {
    up_to(path, is_private)
}

/// Returns the path up to the first component with such a name, if any.
fn up_to(path: &str, has_name: fn(&str) -> bool) -> Option<&str> {
    let mut end = 0;
    for part in path.split('/') {
        end += part.len();
        if has_name(part) {
            return path.get(..end);
        }
        end += 1;
    }
    None
}

/// Returns whether some file system resolves this name to one of the host's own temporary files.
/// Folds like [`is_protected`].
fn is_private(name: &str) -> bool {
    // Fast path: the first byte rules out most names.
    if !name.starts_with(['p', 'P']) && name.is_ascii() {
        return false;
    }
    let folded = folded(name);
    let stem = stem(&folded);
    let short = stem.strip_prefix(SHORT).and_then(|it| it.strip_suffix(PRIVATE_SHORT_END));
    stem.starts_with(PRIVATE_PREFIX) || short.is_some_and(is_number)
}

/// Returns whether some file system resolves this name to a protected one. It folds letter case,
/// characters that HFS+, ext4 and F2FS ignore, and Windows forms: trailing dots and spaces, the
/// short names `GIT~1`, `PALISA~1.TOM`, `PALISA~1.LOC` and `PALISA~1.MCP`, and a stream behind a
/// colon. Refusing such a name on a file system without this folding costs little.
pub(super) fn is_protected(name: &str) -> bool {
    // Fast path: the first byte rules out most names.
    if !name.starts_with(['.', 'g', 'G', 'p', 'P']) && name.is_ascii() {
        return false;
    }
    let folded = folded(name);
    let stem = stem(&folded);
    let short = stem.strip_prefix(SHORT);
    let short = short.and_then(|it| SHORT_ENDS.iter().find_map(|end| it.strip_suffix(end)));
    let number = stem.strip_prefix("git~").or(short);
    PROTECTED.contains(&stem) || number.is_some_and(is_number)
}

/// Returns a name without the parts that Windows ignores.
pub(crate) fn stem(name: &str) -> &str {
    name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' '])
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
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        // Fast path: the first byte rules out most names.
        if name.is_ascii() && !name.starts_with(['h', 'H', 'o', 'O', 'r', 'R', 'c', 'C']) {
            return None;
        }
        let folded = folded(name);
        let stem = stem(&folded);
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

/// Folds the case of a name: to lower case, to upper case, and to lower case again. One pass is not
/// enough: some capital letters have two lower-case forms, and only the first pass makes `ß` of
/// `ẞ`.
pub(crate) fn folded(name: &str) -> String {
    let small = name.chars().filter(|c| !is_ignorable(*c)).flat_map(char::to_lowercase);
    small.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Returns whether a character is a `Default_Ignorable_Code_Point` of Unicode, such as a direction
/// mark, a joiner or a variation selector. Case-insensitive file systems skip these when they
/// compare names, and fonts render them as nothing.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The maximum length of a name in a message, in characters.
const SHOWN: usize = 256;

/// The length of the shortest mark in place of the middle of a name, in characters.
const MARK: usize = 18;

/// Shows a name on one line: escapes the characters that would hide or reorder text, and replaces
/// the middle of a long name by a count.
pub(crate) fn shown(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            c if hides(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    let count = line.chars().count();
    if count <= SHOWN + MARK {
        return line;
    }
    let head: String = line.chars().take(SHOWN / 2).collect();
    let tail: String = line.chars().skip(count - SHOWN / 2).collect();
    format!("{head} … {} characters … {tail}", count - SHOWN)
}

/// Returns whether a reader could not see a character, or would see the others in another order.
/// The selectors of emoji stay, since emoji carry them.
fn hides(c: char) -> bool {
    match c {
        '\u{fe0e}' | '\u{fe0f}' => false,
        '\u{2028}' | '\u{2029}' | '\u{2800}' | '\u{fff9}'..='\u{fffb}' => true,
        c => c.is_control() || is_ignorable(c),
    }
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
            assert_eq!(protected_tree(name), Some(name));
        }
        for ignored in
            ['\u{ad}', '\u{34f}', '\u{180e}', '\u{200b}', '\u{fe0f}', '\u{3164}', '\u{e0041}']
        {
            for name in
                [format!("{ignored}.git"), format!(".G{ignored}it"), format!("git~1{ignored}")]
            {
                assert_eq!(protected_tree(&name), Some(&*name), "{ignored:?}");
            }
        }
        assert_eq!(
            protected_tree(".git::$INDEX_ALLOCATION/config"),
            Some(".git::$INDEX_ALLOCATION")
        );
    }

    #[test]
    fn folding_a_folded_name_changes_nothing() {
        for c in '\0'..=char::MAX {
            let once = folded(&c.to_string());
            assert_eq!(folded(&once), once, "{c:?}");
        }
        assert_eq!(folded("STRA\u{1e9e}E"), folded("stra\u{df}e"));
    }

    #[test]
    fn every_file_system_spelling_of_a_private_name_is_recognised() {
        for name in [
            "palisade.private-Ab1",
            "PALISADE.Private-x.",
            "palisade\u{200c}.private-x",
            "palisade.private-:stream",
            "PALISA~1.PRI",
        ] {
            let path = format!("a/{name}/b");
            assert_eq!(private_tree(&path), Some(&*format!("a/{name}")), "{name}");
            assert_eq!(protected_tree(&path), None, "{name}");
        }
        for name in ["palisade.private", "palisade.privat-x", "x-palisade.private-x", "PALISA~.PRI"]
        {
            assert_eq!(private_tree(name), None, "{name}");
        }
    }

    #[test]
    fn every_file_system_spelling_of_the_settings_is_recognised() {
        for name in [
            "palisade.toml",
            "PALISADE.Toml",
            "pali\u{17f}ade.toml",
            "palisa~2.tom",
            "palisade.lock",
            "Palisade.MCP",
            "palisa~1.mcp",
            "Palisade.LOCK.",
            "palisa~1.loc",
        ] {
            assert_eq!(protected_tree(&format!("a/{name}/b")), Some(&*format!("a/{name}")));
        }
        for name in [
            "palisade.tom",
            "palisade",
            "palisa~.tom",
            "palisa~1",
            "palisade.toml.x",
            "palisa~.loc",
        ] {
            assert_eq!(protected_tree(name), None, "{name}");
        }
    }

    #[test]
    fn every_spelling_of_a_repository_part_is_recognised() {
        for name in
            ["HEAD", "head", "Head.", "HEAD ", "HEAD::$DATA", "HE\u{200c}AD", "\u{feff}head"]
        {
            assert_eq!(Part::from_name(name), Some(Part::Head), "{name}");
        }
        for (part, names) in [
            ("objects", ["objects", "OBJECTS", "object\u{17f}", "objects. ."]),
            ("refs", ["refs", "ReFs", "ref\u{17f}", "refs::$INDEX_ALLOCATION"]),
            ("commondir", ["commondir", "CommonDir", "common\u{ad}dir", "commondir "]),
        ] {
            for name in names {
                assert_eq!(Part::from_name(name), Some(Part::Store(part)), "{name}");
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
            assert_eq!(Part::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn tree_is_named_by_its_path() {
        assert_eq!(protected_tree("a/b/.git/hooks/x"), Some("a/b/.git"));
        assert_eq!(protected_tree("é/.Git/.git"), Some("é/.Git"));
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
            assert_eq!(protected_tree(name), None, "{name}");
        }
    }

    #[test]
    fn what_file_systems_ignore_is_what_readers_do_not_see() {
        for c in '\0'..=char::MAX {
            assert_eq!(is_ignorable(c), palisade_schema::text::is_ignorable(c), "{c:?}");
        }
    }

    #[test]
    fn a_name_is_shown_like_every_other_text() {
        let elided = |name: &str| palisade_schema::text::elided(name, SHOWN);
        let long = "long\u{202e}".repeat(100);
        for name in [
            "plugins",
            "é ❤\u{fe0f}",
            "a\nb\tc",
            "a\u{1b}[2J\u{200b}\u{2028}",
            &long,
            &"x".repeat(SHOWN + MARK),
            &"x".repeat(SHOWN + MARK + 1),
        ] {
            assert_eq!(shown(name), elided(name), "{name:?}");
        }
    }

    #[test]
    fn backslash_is_part_of_a_name() {
        assert_eq!(protected_tree("a\\.git\\x"), None);
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
