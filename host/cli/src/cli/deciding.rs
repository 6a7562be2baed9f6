//! The files beside a configuration that decide which plugins run and what they reach.

use super::{grants, servers, trust};
use palisade_trust::installed_folder;
use std::path::{Path, PathBuf};

/// Returns the files beside a configuration file that no tool may read or change: the approvals with
/// their words, the grants, and the approvals of MCP servers.
pub(super) fn beside(configuration: &Path) -> impl Iterator<Item = PathBuf> {
    let servers = servers::beside(configuration);
    trust::beside_all(configuration).chain(grants::beside(configuration)).chain(servers)
}

/// Returns the folder of installed plugins beside a configuration file, which no tool may change,
/// also while there is none.
pub(super) fn plugins_beside(configuration: &Path) -> Option<PathBuf> {
    trust::beside(configuration).map(|lock| installed_folder(&lock))
}
