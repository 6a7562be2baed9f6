//! The approvals of plugins for a command line: which lock decides, and which plugins it names
//! itself.

use super::args::Common;
use super::exit::{Exit, Failure};
use super::{hint, setup};
use crate::config::{Origin, Settings};
use palisade_trust::{Keys, LockError, LockedPlugins, Strictness, installed_folder};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name of a lock, beside the configuration of the user or in the workspace.
pub(super) const LOCK: &str = "palisade.lock";

/// Returns the lock of the user, if there is a configuration directory.
pub(super) fn lock_path(common: &Common) -> Option<PathBuf> {
    beside(&setup::user_file(common))
}

/// Returns the lock beside a configuration file. Without a configuration file there is none: a
/// relative path would lead into the workspace.
pub(super) fn beside(file: &Path) -> Option<PathBuf> {
    let file = Some(file).filter(|file| !file.as_os_str().is_empty())?;
    Some(std::path::absolute(file).ok()?.with_file_name(LOCK))
}

/// Returns the folder of installed plugins, if it has any.
pub(super) fn installed(common: &Common) -> Option<PathBuf> {
    let folder = installed_folder(&lock_path(common)?);
    let mut files = folder.read_dir().ok()?.flatten();
    let is_plugin = |name: OsString| Path::new(&name).extension().is_some_and(|it| it == "wasm");
    files.any(|file| is_plugin(file.file_name())).then_some(folder)
}

/// Returns the approvals of a run. Plugins that the command line names are loaded without one.
pub(super) fn of_run(common: &Common, settings: &Settings) -> Result<LockedPlugins, Failure> {
    let adapted = settings.adapted.iter().filter(|adapted| is_flag(&adapted.origin));
    let adapted = adapted.map(|adapted| adapted.value.file.clone());
    let strictness = if common.locked { Strictness::Locked } else { Strictness::Describe };
    // `doctor` leaves out of the settings what does not answer, and it must not be looked at here.
    let is_loaded = |directory: &&PathBuf| settings.directories.value.contains(*directory);
    let named = common.plugins.iter().filter(is_loaded).cloned().chain(adapted);
    Ok(of_all(common)?.explicit(named).strictness(strictness))
}

/// Returns the approvals without an exception, for subcommands that look at them.
pub(super) fn of_all(common: &Common) -> Result<LockedPlugins, Failure> {
    let project = common.workspace.join(LOCK);
    let locked = LockedPlugins::open_with(lock_path(common), Some(project))?;
    let approving = Common { locked: false, no_builtin: false, ..common.clone() };
    Ok(locked.command(hint::command(&approving, "approve")))
}

/// Returns the keys that the configuration trusts.
pub(super) fn keys(settings: &Settings) -> Keys {
    Keys::new(settings.keys.value.clone())
}

fn is_flag(origin: &Origin) -> bool {
    matches!(origin, Origin::Flag(_))
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        let exit = match &error {
            LockError::Busy { .. } => Exit::Limit,
            _ => Exit::Usage,
        };
        Self::new(exit, palisade::tool::text::visible(&error.to_string()))
    }
}
