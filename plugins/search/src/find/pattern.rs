//! The globs of `find_files`.

use globset::{GlobBuilder, GlobMatcher};
use palisade_guest::{Error, Result};
use std::fmt;
use std::path::Path;

/// Maximum length of a glob, in bytes.
const MAX_BYTES: usize = 4_096;

/// Maximum nesting of braces. The glob compiler recurses per level, on a stack of 128 KiB.
const MAX_BRACES: usize = 8;

/// A compiled glob.
#[derive(Debug)]
pub(super) struct Pattern {
    matcher: GlobMatcher,
    scope: Scope,
}

/// The part of a path that a glob is matched against.
#[derive(Debug)]
enum Scope {
    /// The file name: the glob has no `/`.
    Name,
    /// The whole path.
    Path,
}

impl Pattern {
    /// Compiles a glob.
    pub(super) fn new(glob: &str) -> Result<Self> {
        let refuse = |reason: String| Error::invalid_input("pattern", reason);
        let trimmed = glob.strip_prefix("./").unwrap_or(glob).trim_start_matches('/');
        if trimmed.is_empty() {
            return Err(refuse(
                "it is empty; give a glob such as `*.rs`, or `*` for all files".to_owned(),
            ));
        }
        if trimmed.ends_with('/') {
            return Err(refuse(format!(
                "`{glob}` names a directory and only files are found; use `{trimmed}**` for all files in it"
            )));
        }
        if glob.len() > MAX_BYTES || deepest_brace(glob) > MAX_BRACES {
            return Err(refuse(format!(
                "it is longer than {MAX_BYTES} bytes or nests braces deeper than {MAX_BRACES}; split it"
            )));
        }
        let glob = GlobBuilder::new(trimmed)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build();
        let matcher = glob.map_err(|error| refuse(error.to_string()))?.compile_matcher();
        Ok(Self { matcher, scope: if trimmed.contains('/') { Scope::Path } else { Scope::Name } })
    }

    /// Returns true if the glob matches a path.
    pub(super) fn matches(&self, path: &Path) -> bool {
        match self.scope {
            Scope::Name => path.file_name().is_some_and(|name| self.matcher.is_match(name)),
            Scope::Path => self.matcher.is_match(path),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.matcher.glob().glob())
    }
}

/// Returns an upper bound of the nesting of braces; escaped braces are counted as well.
fn deepest_brace(glob: &str) -> usize {
    let mut depth: usize = 0;
    let mut deepest = 0;
    for c in glob.chars() {
        match c {
            '{' => depth = depth.saturating_add(1),
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn matches(glob: &str, path: &str) -> bool {
        Pattern::new(glob).unwrap().matches(Path::new(path))
    }

    fn refused(glob: &str) -> String {
        Pattern::new(glob).unwrap_err().to_string()
    }

    #[test]
    fn pattern_without_slash_matches_names_at_any_depth() {
        assert!(matches("*.rs", "lib.rs") && matches("*.rs", "src/deep/lib.rs"));
        assert!(matches("lib.rs", "src/lib.rs") && matches("**", "a/b"));
        assert!(!matches("src", "src/lib.rs") && !matches("*.rs", "lib.rs.bak"));
    }

    #[test]
    fn pattern_with_slash_matches_the_whole_path() {
        assert!(
            matches("src/*.rs", "src/lib.rs")
                && matches("./src/*.rs", "src/lib.rs")
                && matches("/src/*.rs", "src/lib.rs")
        );
        assert!(!matches("src/*.rs", "src/deep/lib.rs") && !matches("src/*.rs", "host/src/lib.rs"));
        assert!(matches("src/**/*.rs", "src/lib.rs") && matches("src/**/*.rs", "src/a/b/lib.rs"));
        assert!(matches("**/src/*.rs", "host/src/lib.rs") && matches("src/**", "src/a/b"));
        assert!(matches("/README.md", "README.md"));
    }

    #[test]
    fn classes_alternatives_and_escapes_work() {
        assert!(matches("[a-c]?.{rs,toml}", "b1.toml") && !matches("[a-c]?.{rs,toml}", "d1.toml"));
        assert!(matches("a{,b}c", "ac") && matches("\\*", "*") && !matches("\\*", "a"));
        assert!(!matches("*.RS", "lib.rs"));
    }

    #[test]
    fn invalid_glob_is_refused_with_the_compilers_error() {
        assert!(refused("[a").contains("unclosed character class"), "{}", refused("[a"));
        assert!(refused("{a").starts_with("pattern: "));
    }

    #[test]
    fn unmatchable_pattern_is_refused() {
        assert!(refused("").contains("it is empty") && refused("./").contains("it is empty"));
        assert!(refused("src/").contains("use `src/**` for all files in it"));
    }

    #[test]
    fn size_is_bounded() {
        assert!(refused(&"a".repeat(MAX_BYTES + 1)).contains("longer than 4096 bytes"));
        let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        assert!(matches(&nested(MAX_BRACES), "a"));
        assert!(refused(&nested(MAX_BRACES + 1)).contains("nests braces deeper than 8"));
    }
}
