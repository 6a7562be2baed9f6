//! Why a file does not pass the border.

use super::{Cap, Feature, Foreign};
use crate::tool::text::{cut, visible};

/// Why a file is refused before any of it is compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BorderRefused {
    /// It is no component in binary form at all.
    #[error(transparent)]
    Foreign(#[from] Foreign),
    /// It is too large.
    #[error("it is {size} bytes large; at most {max} are accepted")]
    TooLarge {
        /// Its size, in bytes.
        size: u64,
        /// The limit, in bytes.
        max: u64,
    },
    /// It has too many of something.
    #[error("it has {found} {}; at most {} are accepted", cap.what(), cap.max())]
    Cap {
        /// Of what.
        cap: Cap,
        /// How many, or how many at least.
        found: u64,
    },
    /// It uses a feature that is off.
    #[error("it uses {0}, which is switched off here; build it without")]
    Feature(Feature),
    /// It instantiates a component that it is given, so that nobody can say how many instances come of it.
    #[error(
        "it instantiates a component that it imports or takes from an instance; only components that lie inside it can be instantiated"
    )]
    ForeignComponent,
    /// It has a section that no component has.
    #[error("it is not a valid component: a section has the unknown number {id} (at byte {at})")]
    UnknownSection {
        /// The number.
        id: u8,
        /// Where it starts.
        at: usize,
    },
    /// It cannot be read.
    #[error("it is not a valid component: {reason} (at byte {at})")]
    Malformed {
        /// Where.
        at: usize,
        /// What is wrong there.
        reason: String,
    },
}

impl BorderRefused {
    pub(super) fn malformed(at: usize, reason: &str) -> Self {
        // The reason may quote names of the file.
        Self::Malformed { at, reason: visible(cut(reason, 512)).replace('\n', " ") }
    }
}

impl From<wasmparser::Error> for BorderRefused {
    fn from(error: wasmparser::Error) -> Self {
        Self::malformed(error.offset(), error.message())
    }
}
