//! No core file of this program: it would have the secrets of grants, and the tokens of a server.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of a core file, in bytes. Linux writes none that is smaller than a page, and starts no
/// program that a pipe in `core_pattern` names for this very limit; at 0 it does.
const LIMIT: u64 = 1;

/// Lets a crash of this process write no core file, and pass none to a program. The process stays
/// open to `/proc` for its user's other processes, as the compile child needs it: their rights are
/// those of this process.
///
/// A failure changes nothing: only a limit that is 0 for good refuses this one.
pub(super) fn forbid() {
    let maximum = getrlimit(Resource::Core).maximum;
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(LIMIT), maximum });
}
