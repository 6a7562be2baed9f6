//! The error of the pre-compilation check.

use super::cap::Cap;
use super::feature::Feature;
use super::foreign::Foreign;
use crate::tool::text::{cut, visible};

/// The reason why a file is rejected before any of it is compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrecheckError {
    /// The file is not a binary component.
    #[error(transparent)]
    Foreign(#[from] Foreign),
    /// The file is too large.
    #[error("it is {size} bytes large; at most {max} are accepted")]
    TooLarge {
        /// The size of the file, in bytes.
        size: u64,
        /// The limit, in bytes.
        max: u64,
    },
    /// The file exceeds a cap.
    #[error("it has {found} {}; at most {} are accepted", cap.what(), cap.max())]
    Cap {
        /// The exceeded cap.
        cap: Cap,
        /// The number found, or a lower bound of it.
        found: u64,
    },
    /// The component uses a disabled feature.
    #[error("it uses {0}, which is switched off here; build it without")]
    Feature(Feature),
    /// The component instantiates a component from outside itself, so that the number of instances
    /// cannot be determined.
    #[error(
        "it instantiates a component that it imports or takes from an instance; only components that lie inside it can be instantiated"
    )]
    ForeignComponent,
    /// The component has a section of an unknown kind.
    #[error("it is not a valid component: a section has the unknown number {id} (at byte {at})")]
    UnknownSection {
        /// The section number.
        id: u8,
        /// The offset of the section, in bytes.
        at: usize,
    },
    /// The file cannot be parsed.
    #[error("it is not a valid component: {reason} (at byte {at})")]
    Malformed {
        /// The offset of the fault, in bytes.
        at: usize,
        /// The description of the fault.
        reason: String,
    },
}

impl PrecheckError {
    pub(super) fn malformed(at: usize, reason: &str) -> Self {
        // The reason may quote names from the file, which are untrusted.
        Self::Malformed { at, reason: visible(cut(reason, 512)).replace('\n', " ") }
    }
}

impl From<wasmparser::Error> for PrecheckError {
    fn from(error: wasmparser::Error) -> Self {
        Self::malformed(error.offset(), error.message())
    }
}
