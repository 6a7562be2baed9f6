//! The patterns of path rules: their checks, and the patterns that they stand for.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::PathRules;
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

    /// Returns the patterns of the matched paths and of everything below them. The pattern `a/**`
    /// includes the directory `a`, so that it cannot be moved away with its contents.
    pub(super) fn tree(&self) -> Vec<String> {
        let whole = self.0.trim_end_matches("/**");
        match whole {
            "**" => vec!["**".to_owned()],
            _ => vec![whole.to_owned(), format!("{whole}/**")],
        }
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

/// Compiles patterns to one set.
pub(super) fn compile(patterns: impl Iterator<Item = String>) -> Result<GlobSet, PathRuleError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(&pattern)?);
    }
    let whole = |error: globset::Error| refused("the list", error.kind().to_string());
    set.build().map_err(whole)
}

fn glob(text: &str) -> Result<globset::Glob, PathRuleError> {
    let built = GlobBuilder::new(text).literal_separator(true).backslash_escape(false).build();
    let glob = built.map_err(|error| refused(text, error.kind().to_string()))?;
    // `Glob` does not compile its expression; a set of it does.
    let alone = GlobSetBuilder::new().add(glob.clone()).build();
    alone.map_err(|error| refused(text, error.kind().to_string()))?;
    Ok(glob)
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
