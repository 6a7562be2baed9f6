//! Parts that the crate `palisade` shares with this one, for the file API of its native tools. They
//! may change in any release.

pub use crate::regular::{open_regular, open_regular_at};
pub use crate::rules::{Admission, Forbidden, Identity, Mounts, PIN, PIN_ANY};
pub use crate::seen::{LastLink, Opener, QUIETLY, READ_DIRECTORY, Seen};
