//! Records the configuration files and plugin directories of the user for the runs in other
//! workspaces: a tool that changed one of them there would decide about the calls of a later run.

use super::args::Common;
use super::{adapt, deciding, setup};
use crate::config::{FileConfig, FileOf, Settings};
use palisade::internal::{Recorded, recorded_settings, remember, within};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time limit for reading the configuration files of other runs.
const PATIENCE: Duration = Duration::from_secs(1);

/// Records the files and directories that this run uses, and the directories that the
/// configuration files of other runs name.
pub(super) fn for_other_runs(common: &Common, settings: &Settings) {
    let files: BTreeSet<_> =
        setup::user_files(common).iter().filter_map(|it| absolute(it)).collect();
    let own = absolute(&setup::user_file(common));
    // The usual file is hidden from every run.
    for file in files.iter().filter(|file| setup::usual_file().as_ref() != Some(*file)) {
        record(Recorded::Settings, file);
        deciding::beside(file).for_each(|path| record(Recorded::Decisions, &path));
        deciding::plugins_beside(file).iter().for_each(|path| record(Recorded::Plugins, path));
    }
    let others = files.into_iter().chain(recorded_settings()).filter(|it| Some(it) != own.as_ref());
    let named = plugin_directories(others.collect());
    let components = adapt::paths(&settings.adapted).filter_map(|path| absolute(path));
    for path in components {
        record(Recorded::Plugins, &path);
    }
    for directory in settings.directories.value.iter().chain(&named) {
        record(Recorded::Plugins, directory);
    }
}

fn absolute(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()
}

fn record(what: Recorded, path: &Path) {
    if let Err(error) = remember(what, path) {
        tracing::warn!("{} is not remembered: {error}", path.display());
    }
}

/// Returns the plugin directories and components that configuration files name. An invalid file
/// loads none, and a relative path leads elsewhere in each run.
fn plugin_directories(files: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    if files.is_empty() {
        return BTreeSet::new();
    }
    let read = move || {
        let read = |file: &PathBuf| FileConfig::read(file, FileOf::OtherRun).ok().flatten();
        let named = files.iter().filter_map(read).flat_map(|file| {
            let adapted = file.adapted.into_iter().flat_map(|it| [Some(it.file), it.wit]);
            file.directories.into_iter().chain(adapted.flatten())
        });
        named.filter(|directory| directory.is_absolute()).collect()
    };
    within(PATIENCE, read).unwrap_or_else(|error| {
        tracing::warn!(
            "the plugin directories of other configuration files are not known: {error}"
        );
        BTreeSet::new()
    })
}
