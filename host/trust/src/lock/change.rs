//! A difference between a plugin and its approval, and the words for it.

use palisade::SideEffects;
use palisade::tool::text::elided;
use std::fmt;

/// The most tools that a change lists by name.
const LISTED: usize = 5;

/// A difference between a plugin and its approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The bytes differ.
    Bytes,
    /// The bytes are those of another approved plugin, of this name.
    BytesOf(String),
    /// The bytes were approved before, and replaced by later ones since.
    Rollback,
    /// The words differ.
    Words,
    /// Tools were added.
    Added(Vec<String>),
    /// Tools were removed.
    Removed(Vec<String>),
    /// A tool has another class.
    Class {
        /// The tool.
        tool: String,
        /// The name of the approved class.
        from: String,
        /// The class now.
        to: SideEffects,
    },
    /// The lock of the project has another digest for a plugin of this name, or has revoked it.
    Project,
}

impl Change {
    /// Returns true for a class that allows more than the approved one, or more than is known.
    pub(super) fn is_wider(&self) -> bool {
        let Self::Class { from, to, .. } = self else { return false };
        let was = SideEffects::ALL.into_iter().find(|class| class.as_str() == from);
        was.is_none_or(|was| was < *to)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => f.write_str("its bytes differ"),
            Self::BytesOf(name) => {
                write!(f, "its bytes are those of `{}`, another plugin", elided(name, 80))
            }
            Self::Rollback => f.write_str("it is an earlier version, which was replaced"),
            Self::Words => f.write_str("its words differ"),
            Self::Added(tools) => write!(f, "it has new tools: {}", listed(tools)),
            Self::Removed(tools) => write!(f, "it has no longer these tools: {}", listed(tools)),
            Self::Class { tool, from, to } => {
                write!(f, "the class of `{tool}` is {to}, and was {}", elided(from, 16))
            }
            Self::Project => f.write_str("the `palisade.lock` of the project refuses its bytes"),
        }
    }
}

/// Lists names, which a plugin chose, within bounds.
fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| elided(name, 64)).collect();
    match names.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
