//! Descriptions of violations that do not repeat the value.

use std::fmt;

use super::MAX_VIOLATIONS;

/// The maximum size of a list of violations, in bytes of pointers and reasons: it is sent to the
/// model and costs tokens.
const MAX_TEXT: usize = 4 << 10;

/// One violation of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// A JSON pointer to the violating part; empty for the whole value.
    pub pointer: String,
    /// The accepted form. Contains only names, types and numbers, never the value, which may be a
    /// secret.
    pub reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "`{}`: {}", self.pointer, self.reason)
        }
    }
}

/// A list of one to ten violations, 4 KiB in total.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Creates a list of a single violation.
    pub fn one(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self(vec![Violation { pointer: pointer.into(), reason: reason.into() }])
    }

    /// Collects violations without duplicates as far as they fit; `None` if there are none.
    pub(super) fn of(found: impl IntoIterator<Item = Violation>) -> Option<Self> {
        let mut kept: Vec<Violation> = Vec::new();
        let mut room = MAX_TEXT;
        for violation in found {
            let length = violation.pointer.len().saturating_add(violation.reason.len());
            if kept.len() == MAX_VIOLATIONS || length > room {
                break;
            }
            if !kept.contains(&violation) {
                room = room.saturating_sub(length);
                kept.push(violation);
            }
        }
        (!kept.is_empty()).then_some(Self(kept))
    }

    /// Returns all violations in the order in which they were found.
    #[must_use]
    pub fn as_slice(&self) -> &[Violation] {
        &self.0
    }

    /// Returns the first violation. The list is never empty.
    #[must_use]
    pub fn first(&self) -> &Violation {
        static NONE: Violation = Violation { pointer: String::new(), reason: String::new() };
        self.0.first().unwrap_or(&NONE)
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, violation) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}{violation}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'v> IntoIterator for &'v Violations {
    type Item = &'v Violation;
    type IntoIter = std::slice::Iter<'v, Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
