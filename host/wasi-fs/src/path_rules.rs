//! Path rules: the patterns that decide which paths of a mounted directory guests reach.

mod path_set;
mod pattern;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use regex_automata::MatchError;

use crate::protected_paths::names::{folded, stem};
use path_set::{Extent, PathSet};
pub use pattern::PathRuleError;
use pattern::Pattern;

/// The rules of an operator about the paths of a mounted directory.
///
/// A path is denied if a pattern of `deny` matches it or a directory above it. If there is a list
/// `allow`, every path that none of its patterns matches, itself or by a directory above it, is
/// denied as well, except the directories on the way to such paths. Of several rules that were
/// joined by [`and`](Self::and), each has to permit a path.
///
/// Patterns are relative to the mounted directory. `*` and `?` stand for characters of one name
/// (`?` for one byte), `**` for any number of names, `[ab]` and `{a,b}` for alternatives. A pattern
/// of `deny` ignores letter case and the characters that some file system ignores; a pattern of
/// `allow` does not.
///
/// ```
/// use palisade_wasi_fs::PathRules;
///
/// let rules = PathRules::new(Some(&["src/**".to_owned()]), &["**/.env*".to_owned()])?;
/// assert!(rules.permits("src/main.rs"));
/// assert!(!rules.permits("src/.ENV.local") && !rules.permits("notes.txt"));
/// # Ok::<(), palisade_wasi_fs::PathRuleError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PathRules {
    layers: Vec<Arc<Layer>>,
}

/// The patterns of one origin.
struct Layer {
    /// The patterns of `deny` in folded form, for folded paths.
    deny: PathSet,
    /// The same patterns as they were written, for paths as they are: folding a path could make a
    /// pattern such as `[!A-Z]*` miss it, and may only add to what is denied.
    deny_as_written: PathSet,
    allow: Option<Allow>,
}

/// Leaves out the automata, which fill pages.
impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("deny", &self.deny.len()).finish_non_exhaustive()
    }
}

struct Allow {
    paths: PathSet,
    /// The directories that may lead to an allowed path.
    ways: PathSet,
}

/// The judgement of the rules on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The path is denied, whether it exists or not.
    Denied,
    /// The path may lead to an allowed one: it is permitted if it is a directory.
    Way,
    /// The path is permitted.
    Permitted,
}

impl PathRules {
    /// The most patterns of one list.
    pub const PATTERNS: usize = 128;
    /// The greatest length of one pattern, in bytes.
    pub const PATTERN_BYTES: usize = 256;

    /// Compiles the patterns of one origin. Without a list `allow`, every path that is not denied
    /// is permitted.
    ///
    /// # Errors
    ///
    /// [`PathRuleError`] if a list has more than [`PATTERNS`](Self::PATTERNS) patterns, a pattern
    /// is empty, longer than [`PATTERN_BYTES`](Self::PATTERN_BYTES), absolute, has a component `.`
    /// or `..`, or is malformed.
    pub fn new(allow: Option<&[String]>, deny: &[String]) -> Result<Self, PathRuleError> {
        let deny = Pattern::all(deny)?;
        let allow = allow.map(Pattern::all).transpose()?;
        if deny.is_empty() && allow.is_none() {
            return Ok(Self::default());
        }
        let allow = allow.map(|patterns| {
            Ok::<_, PathRuleError>(Allow {
                paths: pattern::compile(patterns.iter().map(Pattern::top), Extent::SelfOrAbove)?,
                ways: pattern::compile(patterns.iter().flat_map(Pattern::ways), Extent::Whole)?,
            })
        });
        let folded: Result<Vec<_>, _> = deny.iter().map(Pattern::folded).collect();
        let deny_as_written = pattern::compile(deny.iter().map(Pattern::top), Extent::SelfOrAbove)?;
        let deny = pattern::compile(folded?.iter().map(Pattern::top), Extent::SelfOrAbove)?;
        let allow = allow.transpose()?;
        Ok(Self { layers: vec![Arc::new(Layer { deny, deny_as_written, allow })] })
    }

    /// Returns rules that permit only the paths that both permit.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { layers: self.layers.iter().chain(&other.layers).cloned().collect() }
    }

    /// Returns whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Returns whether a file may have this path, relative to the mounted directory and without
    /// `.`, `..` and links.
    pub fn permits(&self, path: &str) -> bool {
        self.standing(path) == Standing::Permitted
    }

    /// Judges a path, relative to the mounted directory and without `.`, `..` and links. The empty
    /// path is the mounted directory, which is never denied.
    pub(crate) fn standing(&self, path: &str) -> Standing {
        if self.layers.is_empty() {
            return Standing::Permitted;
        }
        let forms = Forms::of(path);
        let all = self.layers.iter().map(|layer| layer.standing(path, &forms));
        all.min().unwrap_or(Standing::Permitted)
    }
}

impl Layer {
    /// Judges a path. A path that cannot be compared is denied.
    fn standing(&self, path: &str, forms: &Forms) -> Standing {
        self.compared(path, forms).unwrap_or(Standing::Denied)
    }

    fn compared(&self, path: &str, forms: &Forms) -> Result<Standing, MatchError> {
        if !self.deny.is_empty() && !path.is_empty() && self.denies(path, forms)? {
            return Ok(Standing::Denied);
        }
        let Some(allow) = &self.allow else { return Ok(Standing::Permitted) };
        if !path.is_empty() && allow.paths.is_match(path)? {
            return Ok(Standing::Permitted);
        }
        let is_way = path.is_empty() || allow.ways.is_match(path)?;
        Ok(if is_way { Standing::Way } else { Standing::Denied })
    }

    fn denies(&self, path: &str, forms: &Forms) -> Result<bool, MatchError> {
        if forms.is_short
            || self.deny_as_written.is_match(path)?
            || self.deny.is_match(&forms.folded)?
        {
            return Ok(true);
        }
        match &forms.stems {
            None => Ok(false),
            Some((written, folded)) => {
                Ok(self.deny_as_written.is_match(written)? || self.deny.is_match(folded)?)
            }
        }
    }
}

/// The forms of a path that some file system resolves to the same file.
struct Forms {
    folded: String,
    /// The path and its folded form without the parts of names that Windows ignores, if there are
    /// such parts.
    stems: Option<(String, String)>,
    /// Whether a name has the form of a short name of Windows, which may stand for any long one.
    is_short: bool,
}

impl Forms {
    fn of(path: &str) -> Self {
        let folded = folded(path);
        let is_short = folded.split('/').any(|name| is_short(stem(name)));
        let stems = stems(&folded);
        let stems = (stems != folded).then(|| (self::stems(path), stems));
        Self { stems, is_short, folded }
    }
}

/// Returns a path without the parts of its names that Windows ignores.
fn stems(path: &str) -> String {
    path.split('/').map(stem).collect::<Vec<_>>().join("/")
}

/// Returns whether a name has the form of a short name, such as `SECRET~1.TXT`.
fn is_short(name: &str) -> bool {
    let (base, ending) = name.split_once('.').unwrap_or((name, ""));
    let Some((head, number)) = base.rsplit_once('~') else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && base.chars().count() <= 8 && !head.is_empty() && ending.chars().count() <= 3
}

/// Joins a name to the path of its directory. A name `.` is the directory itself.
pub(crate) fn joined<'p>(dir: &'p str, name: &'p str) -> Cow<'p, str> {
    match (dir, name) {
        (dir, "." | "") => dir.into(),
        ("", name) => name.into(),
        (dir, name) => format!("{dir}/{name}").into(),
    }
}

#[cfg(test)]
mod tests;
