//! The patterns of path rules: their checks, and the patterns that they stand for.

use globset::{Glob, GlobBuilder};

use super::PathRules;
use super::path_set::{Extent, PathSet, TooLarge};
use crate::protected_paths::names::{folded, shown};

/// The reason why path rules are not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathRuleError {
    /// A list has too many patterns.
    #[error("{count} patterns are too many; a list has at most {}", PathRules::PATTERNS)]
    Many {
        /// The number of patterns.
        count: usize,
    },
    /// A pattern is not accepted.
    #[error("the pattern `{pattern}` is not accepted: {reason}")]
    Pattern {
        /// The pattern, shortened.
        pattern: String,
        /// The reason, and the accepted form.
        reason: String,
    },
}

/// A pattern that passed the checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(String);

impl Pattern {
    /// Checks the patterns of a list.
    pub(super) fn all(list: &[String]) -> Result<Vec<Self>, PathRuleError> {
        if list.len() > PathRules::PATTERNS {
            return Err(PathRuleError::Many { count: list.len() });
        }
        list.iter().map(|text| Self::parse(text)).collect()
    }

    fn parse(text: &str) -> Result<Self, PathRuleError> {
        let refuse = |reason: &str| Err(refused(text, reason.to_owned()));
        let trimmed = text.trim_end_matches('/');
        if trimmed.is_empty() {
            return refuse("it is empty; write a path relative to the workspace");
        }
        if text.len() > PathRules::PATTERN_BYTES {
            return refuse(&format!("it is longer than {} bytes", PathRules::PATTERN_BYTES));
        }
        if text.starts_with('/') {
            return refuse("it is absolute; write a path relative to the workspace");
        }
        if text.contains(['\\', '\0']) {
            return refuse("it holds a `\\` or a NUL; names are separated by `/`");
        }
        if trimmed.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return refuse("it has an empty name, `.` or `..`; write the path without them");
        }
        if has_class_of_letters(trimmed) {
            return refuse(
                "`[]` holds a letter beyond ASCII; write `{}` with one alternative for each",
            );
        }
        if splits_alternatives(trimmed) {
            return refuse("`/` stands in `{}` or `[]`; write one pattern for each alternative");
        }
        glob(trimmed)?;
        Ok(Self(trimmed.to_owned()))
    }

    /// Returns the pattern as paths are compared with it that were folded.
    pub(super) fn folded(&self) -> Result<Self, PathRuleError> {
        let folded = folded(&self.0);
        glob(&folded).map_err(|error| match error {
            PathRuleError::Pattern { reason, .. } => refused(&self.0, reason),
            other => other,
        })?;
        Ok(Self(folded))
    }

    /// Returns the pattern of the matched paths without what is below them. The pattern `a/**`
    /// includes the directory `a`, so that it cannot be moved away with its contents.
    pub(super) fn top(&self) -> String {
        self.0.trim_end_matches("/**").to_owned()
    }

    /// Returns the patterns of the directories above a matched path.
    pub(super) fn ways(&self) -> Vec<String> {
        let mut ways = Vec::new();
        let mut way = String::new();
        let parts: Vec<&str> = self.0.split('/').collect();
        for part in parts.iter().take(parts.len().saturating_sub(1)) {
            if !way.is_empty() {
                way.push('/');
            }
            way.push_str(part);
            ways.push(way.clone());
            if *part == "**" {
                // Any directory may lead further.
                break;
            }
        }
        ways
    }
}

/// Compiles the patterns of a list.
pub(super) fn compile(
    patterns: impl Iterator<Item = String>,
    extent: Extent,
) -> Result<PathSet, PathRuleError> {
    let globs: Result<Vec<_>, _> = patterns.map(|pattern| glob(&pattern)).collect();
    let too_large = "its patterns need too much memory together; write fewer or shorter ones, \
        with fewer `*` and `?`";
    PathSet::new(&globs?, extent).map_err(|TooLarge| refused("the list", too_large.to_owned()))
}

fn glob(text: &str) -> Result<Glob, PathRuleError> {
    let built = GlobBuilder::new(text).literal_separator(true).backslash_escape(false).build();
    let glob = built.map_err(|error| refused(text, error.kind().to_string()))?;
    let too_large = "it needs too much memory; write `*` in place of many `?`, or fewer of both";
    match PathSet::new(std::slice::from_ref(&glob), Extent::SelfOrAbove) {
        Ok(_) => Ok(glob),
        Err(TooLarge) => Err(refused(text, too_large.to_owned())),
    }
}

fn refused(pattern: &str, reason: String) -> PathRuleError {
    PathRuleError::Pattern { pattern: shown(pattern), reason }
}

/// Returns whether a letter beyond ASCII stands in a class, which would match one byte of it.
fn has_class_of_letters(pattern: &str) -> bool {
    let mut classes = pattern.split('[').skip(1);
    classes.any(|rest| !rest.split_once(']').map_or(rest, |(class, _)| class).is_ascii())
}

/// Returns whether a `/` stands in an alternative: such a pattern has no single way.
fn splits_alternatives(pattern: &str) -> bool {
    let mut depth = 0_u32;
    for c in pattern.chars() {
        match c {
            '{' | '[' => depth = depth.saturating_add(1),
            '}' | ']' => depth = depth.saturating_sub(1),
            '/' if depth > 0 => return true,
            _ => {}
        }
    }
    false
}
