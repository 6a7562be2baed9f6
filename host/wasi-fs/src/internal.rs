//! Parts that the crate `palisade` shares with this one, for the file API of its native tools. They
//! may change in any release.

pub use crate::access_list::{FormerPermissions, take_permissions};
pub use crate::direct::{is_temporary, is_the_kernels};
pub use crate::inspect::{Inspected, LastLink, Opener, QUIETLY, READ_DIRECTORY};
pub use crate::path_rules::Standing;
pub use crate::planted_link::may_be_planted;
pub use crate::protected_paths::{Admission, Forbidden, Identity, Mounts, PIN, PIN_ANY};
pub use crate::regular::{open_regular, open_regular_at};
