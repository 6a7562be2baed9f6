//! Where this program keeps what it remembers for its user from run to run.

use std::path::PathBuf;

/// The directories for a user's state, there or not: the one that the environment names, and the one that runs with another environment use. Absolute, since
/// a relative one would be the workspace's word.
pub(crate) fn state_directories() -> Vec<PathBuf> {
    use etcetera::BaseStrategy as _;
    let base = etcetera::choose_base_strategy().ok();
    let named = base.map(|base| base.state_dir().unwrap_or_else(|| base.cache_dir()));
    let mut states: Vec<PathBuf> = named.into_iter().chain(usual()).filter(|state| state.is_absolute()).collect();
    states.dedup();
    states
}

#[cfg(unix)]
fn usual() -> Option<PathBuf> {
    etcetera::home_dir().ok().map(|home| home.join(".local").join("state"))
}

/// On Windows the system names the directory, and the environment does not.
#[cfg(not(unix))]
fn usual() -> Option<PathBuf> {
    None
}
