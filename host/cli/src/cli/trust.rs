//! The approvals of plugins for a command line: which lock decides, and which plugins it names
//! itself.

use super::args::Common;
use super::exit::{Exit, Failure};
use super::{hint, output, setup};
use crate::config::{Origin, Settings};
use palisade::internal::{Mounts, NATIVE, shipped_tools};
use palisade::plugins::Plugin;
use palisade::tool::Digest;
use palisade::tool::text::visible;
use palisade_trust::{Keys, Locator, Lock, LockError, LockedPlugins, Strictness, installed_folder};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name of a lock, beside the configuration of the user or in the workspace.
pub(super) const LOCK: &str = "palisade.lock";

/// The folder of the approved words, beside a lock.
pub(super) const WORDS: &str = "palisade.words";

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

/// Returns the lock beside a configuration file, and the folder of the approved words.
pub(super) fn beside_all(file: &Path) -> impl Iterator<Item = PathBuf> {
    let lock = beside(file);
    lock.into_iter().flat_map(|lock| [lock.with_file_name(WORDS), lock])
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

/// Returns the digests that the user has approved. Without a lock that can be read there are none.
pub(super) fn approved(common: &Common) -> Vec<Digest> {
    let lock = lock_path(common).and_then(|path| Lock::read(&path).ok()).unwrap_or_default();
    let approved = lock.entries().iter().filter(|entry| entry.revoked.is_none());
    approved.map(|entry| entry.digest).collect()
}

/// Returns true if the bytes of a plugin were revoked, and approved under no name since.
pub(super) fn is_revoked(common: &Common, name: &str, digest: Digest) -> bool {
    let lock = lock_path(common).and_then(|path| Lock::read(&path).ok()).unwrap_or_default();
    let of = Locator { name, source: "" };
    lock.judge_bytes(of, digest).is_revoked() && !approved(common).contains(&digest)
}

/// Returns true if settings, rules and grants under this name would mean something else, or would
/// to a person who overlooks a capital letter.
pub(super) fn is_taken(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    shipped_tools(&name).is_some() || matches!(&*name, NATIVE | "builtin" | "directories" | "keys")
}

/// Returns the approvals without an exception, for subcommands that look at them.
pub(super) fn of_all(common: &Common) -> Result<LockedPlugins, Failure> {
    let project = Some(common.workspace.join(LOCK));
    let approving = Common { locked: false, no_builtin: false, ..common.clone() };
    let command = hint::command(&approving, "approve");
    let update = hint::command(&approving, "update");
    let locked = match lock_path(common) {
        Some(own) if is_in_workspace(common, &own) => {
            LockedPlugins::open_with(None, project)?.distrusting(own, ELSEWHERE.to_owned())?
        }
        own => LockedPlugins::open_with(own, project)?,
    };
    Ok(locked.command(command).update_command(update))
}

/// The remedy where the approvals of the user are in the workspace.
const ELSEWHERE: &str = "approvals in the workspace are not used, since its tools could write them: run this with a \
     --workspace that the configuration is not in, or with a --config outside of the workspace";

/// Tells that the approvals of the user are not used in this workspace, if there are any.
pub(super) fn show_distrusted(common: &Common) {
    // A workspace that does not exist is told of when it is opened.
    let own = lock_path(common).filter(|_| common.workspace.exists());
    let own = own.filter(|own| is_in_workspace(common, own) && own.exists());
    if let Some(own) = own {
        output::note(&format!(
            "the approvals in {} are not used: the file is in the workspace, where tools of class execute can write it; name a project with --workspace, or a file elsewhere with --config",
            setup::shown(&own)
        ));
    }
}

/// Returns the lock in which an approval is written.
///
/// # Errors
///
/// A usage error if there is none, or if tools of this run could write it.
pub(super) fn writable_lock(common: &Common) -> Result<PathBuf, Failure> {
    let own = lock_path(common).ok_or_else(|| {
        Failure::usage("there is no directory for palisade.lock; name a file with --config")
    })?;
    match is_in_workspace(common, &own) {
        true => Err(Failure::usage(format!(
            "the approval would be in the workspace, in `{}`, where tools could write it; run this with another --workspace or --config",
            visible(&own.display().to_string())
        ))),
        false => Ok(own),
    }
}

/// Returns true if a file of the user's is in the workspace, where a tool of class execute can
/// change it: by its path, by a link on the way to it, or through a mount. Such a file cannot vouch
/// for anything.
pub(super) fn is_in_workspace(common: &Common, file: &Path) -> bool {
    let (Ok(workspace), Ok(file)) = (common.workspace.canonicalize(), std::path::absolute(file))
    else {
        // Nothing can be opened there, or nothing is known of the file.
        return true;
    };
    let mounts = Mounts::below(&workspace);
    let is_entry = |part: &Path| {
        let folder = part.parent().filter(|_| part.file_name().is_some());
        folder.and_then(|it| it.canonicalize().ok()).is_some_and(|it| mounts.show(&it))
    };
    let mut path = file;
    for _ in 0..MAX_LINKS {
        // An entry of the workspace can be replaced, also if it leads out of it.
        if path.ancestors().any(is_entry) {
            return true;
        }
        let parts: Vec<&Path> = path.ancestors().collect();
        let Some(link) = parts.into_iter().rev().find(|part| part.is_symlink()) else {
            return false;
        };
        let (Ok(target), Ok(rest)) = (link.read_link(), path.strip_prefix(link)) else {
            return true;
        };
        path = link.parent().unwrap_or(Path::new("/")).join(target).join(rest);
    }
    true
}

/// The most links on the way to a file, as in the kernel.
const MAX_LINKS: usize = 40;

/// Returns the keys that the configuration trusts.
pub(super) fn keys(settings: &Settings) -> Keys {
    Keys::new(settings.keys.value.clone())
}

/// Returns true if a plugin was approved before a key was configured for its source.
pub(super) fn lacks_signer(locked: &LockedPlugins, keys: &Keys, plugin: &Plugin) -> bool {
    let Some(folder) = folder(plugin) else { return false };
    let source = folder.to_string_lossy();
    let entry = locked.entry(Locator { name: plugin.name(), source: &source });
    entry.is_some_and(|entry| entry.signer.is_none()) && keys.of_source(&source).next().is_some()
}

/// Returns the directory of a plugin's file, as an absolute path.
pub(super) fn folder(plugin: &Plugin) -> Option<PathBuf> {
    let folder = plugin.path()?.parent().filter(|it| !it.as_os_str().is_empty());
    std::path::absolute(folder.unwrap_or(Path::new("."))).ok()
}

/// Tells of keys whose source is a directory or a URL without plugins of this run: it may be
/// misspelled.
pub(super) fn show_idle_keys(common: &Common, settings: &Settings, keys: &Keys) {
    let adapted = settings.adapted.iter().filter_map(|it| it.value.file.parent());
    let directories = settings.directories.value.iter().map(PathBuf::as_path).chain(adapted);
    let directories = directories.map(|directory| directory.to_string_lossy().into_owned());
    let lock = lock_path(common).and_then(|path| Lock::read(&path).ok()).unwrap_or_default();
    let installed = lock.installed().map(|entry| entry.source.clone());
    let sources: Vec<String> = directories.chain(installed).collect();
    for source in keys.idle_sources(&sources) {
        output::note(&format!(
            "`{source}` is the source of a key (`plugins.keys.source`), and no plugin of this run is in it: the key guards none of them"
        ));
    }
}

fn is_flag(origin: &Origin) -> bool {
    matches!(origin, Origin::Flag(_))
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        let exit = match &error {
            LockError::Busy { .. } => Exit::Limit,
            LockError::Revoked => Exit::Denied,
            _ => Exit::Usage,
        };
        Self::new(exit, visible(&error.to_string()))
    }
}
