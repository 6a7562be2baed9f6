//! What is wrong with a value, said without repeating it.

use std::fmt;

use super::MAX_VIOLATIONS;

/// The longest list of violations, in bytes of pointers and reasons: the model reads it, and pays for it.
const MAX_TEXT: usize = 4 << 10;

/// One part of a value that breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// A JSON pointer to the part; empty for the whole value.
    pub pointer: String,
    /// What is wanted there. It never repeats the value, which may be a secret; names, types and figures only.
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

/// What is wrong with a value: from one to ten violations, 4 KiB in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// A single violation.
    pub fn one(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self(vec![Violation { pointer: pointer.into(), reason: reason.into() }])
    }

    /// Keeps what fits of `found`, each only once; `None` where nothing was found.
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

    /// All of them, in the order in which they were found.
    #[must_use]
    pub fn as_slice(&self) -> &[Violation] {
        &self.0
    }

    /// The first one, which there always is.
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
