//! The directories for the state that the program keeps between runs.

use std::path::PathBuf;

/// Returns the user's state directories, existing or not: the one named by the environment and the
/// default. Only absolute paths, because a relative one would be resolved in the workspace.
pub fn state_directories() -> Vec<PathBuf> {
    use etcetera::BaseStrategy as _;
    let base = etcetera::choose_base_strategy().ok();
    let named = base.map(|base| base.state_dir().unwrap_or_else(|| base.cache_dir()));
    let mut states: Vec<PathBuf> = named
        .into_iter()
        .chain(usual_state_directory())
        .filter(|state| state.is_absolute())
        .collect();
    states.dedup();
    states
}

/// Returns the user's state directory where the environment names none.
pub fn usual_state_directory() -> Option<PathBuf> {
    etcetera::home_dir().ok().map(|home| home.join(".local").join("state"))
}
